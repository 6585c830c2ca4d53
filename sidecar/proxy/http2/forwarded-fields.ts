// Hot path. The fields that the next hop gets: those that came, as they came, and what the proxy knows; forwarded-head.ts
// does the same for HTTP/1.1 and says why. Lines that are the same for many requests are one object, so that they find
// their place in the table of HPACK at once.
import {
  bitOf,
  CONTENT_LENGTH,
  DATE,
  FORWARDED,
  RATE_LIMIT,
  RATE_LIMIT_POLICY,
  X_FORWARDED_FOR,
  X_FORWARDED_HOST,
  X_FORWARDED_PROTO,
  X_RATE_LIMIT,
  X_RATE_LIMIT_REMAINING,
} from '../../http1/field-kind.ts';
import { Field } from '../../http2/field.ts';
import type { Http2Request } from '../../http2/request.ts';
import { forwardedElement, type HopFields } from '../forwarded-head.ts';

/** What one client connection adds to each of its requests; made once per connection. */
export class Http2HopFields {
  readonly hop: HopFields;
  readonly #for: Field;
  readonly #proto: Field;
  readonly #via: Field | undefined;
  #host: Field | undefined;

  /** `via` is the pseudonym; absent = no Via. */
  constructor(hop: HopFields, via: string | undefined) {
    this.hop = hop;
    this.#for = new Field('x-forwarded-for', hop.address, 'indexed');
    this.#proto = new Field('x-forwarded-proto', hop.proto, 'indexed');
    this.#via = via === undefined ? undefined : new Field('via', `2 ${via}`, 'indexed');
  }

  /** The fields of a request for the application. */
  request(request: Http2Request): readonly Field[] {
    const out: Field[] = [];
    const seen = copyInto(out, request.fields, 0);
    if ((seen & GROWING_BITS) !== 0) this.#grow(out, request);
    if ((seen & bitOf(X_FORWARDED_FOR)) === 0) out.push(this.#for);
    if ((seen & bitOf(X_FORWARDED_PROTO)) === 0) out.push(this.#proto);
    if ((seen & bitOf(X_FORWARDED_HOST)) === 0) out.push(this.#forwardedHost(request.host));
    if (this.#via !== undefined) out.push(this.#via);
    return out;
  }

  /** A list in several lines grows at its last one (RFC 9110 §5.3). */
  #grow(out: Field[], request: Http2Request): void {
    let grown = 0;
    for (let at = out.length - 1; at >= 0; at -= 1) {
      const field = out[at];
      const bit = field === undefined ? 0 : bitOf(field.kind) & GROWING_BITS;
      if (field === undefined || bit === 0 || (grown & bit) !== 0) continue;
      grown |= bit;
      out[at] = this.#appended(request, field);
    }
  }

  #appended(request: Http2Request, { kind, name, value }: Field): Field {
    const element =
      kind === FORWARDED ? forwardedElement(request.host, this.hop) : this.hop.address;
    return new Field(name, value === '' ? element : `${value}, ${element}`, 'plain');
  }

  #forwardedHost(host: string): Field {
    if (this.#host?.value !== host) this.#host = new Field('x-forwarded-host', host, 'indexed');
    return this.#host;
  }

  /** The fields of a final response for the client. */
  response(fields: readonly Field[], additions: Http2Additions): readonly Field[] {
    const removed =
      (additions.replacesQuota ? QUOTA_BITS : 0) |
      (additions.status === 204 ? bitOf(CONTENT_LENGTH) : 0);
    const out: Field[] = [];
    const seen = copyInto(out, fields, removed);
    for (const field of additions.fields) out.push(field);
    if ((seen & bitOf(DATE)) === 0) out.push(additions.date);
    if (this.#via !== undefined) out.push(this.#via);
    return out;
  }
}

export interface Http2Additions {
  readonly status: number;
  readonly fields: readonly Field[];
  /** Whether the quota fields of the application give way to those in `fields`. */
  readonly replacesQuota: boolean;
  /** Used when the application sent none (RFC 9110 §6.6.1). */
  readonly date: Field;
}

/** Adds the fields to `out` but those whose bit is in `removed`; the bits of all. Kind 0 has one too, never removed. */
function copyInto(out: Field[], fields: readonly Field[], removed: number): number {
  let seen = 0;
  for (const field of fields) {
    const bit = bitOf(field.kind);
    seen |= bit;
    if ((bit & removed) === 0) out.push(field);
  }
  return seen;
}

const GROWING_BITS = bitOf(X_FORWARDED_FOR) | bitOf(FORWARDED);

const QUOTA_BITS =
  bitOf(RATE_LIMIT) |
  bitOf(RATE_LIMIT_POLICY) |
  bitOf(X_RATE_LIMIT) |
  bitOf(X_RATE_LIMIT_REMAINING);

/** Lines that end with CRLF each, as fields of HTTP/2. The same text gives the same objects as long as it is the last one. */
export class FieldLines {
  #text = '';
  #fields: readonly Field[] = [];

  read(text: string): readonly Field[] {
    if (text === this.#text) return this.#fields;
    this.#text = text;
    this.#fields = text
      .split('\r\n')
      .filter((line) => line !== '')
      .map(readLine);
    return this.#fields;
  }
}

// Numbers that change with every response: no table should hold them.
function readLine(line: string): Field {
  const colon = line.indexOf(':');
  return new Field(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim(), 'plain');
}
