// Hot path. A request of HTTP/2: what its fields say, and whether they may stand together (RFC 9113 §8.3.1).
import { isAuthority } from '../http1/authority.ts';
import { isTargetChar, isTokenChar } from '../http1/characters.ts';
import { CONTENT_LENGTH, HOST } from '../http1/field-kind.ts';
import { parseContentLength } from '../http1/framing.ts';
import { maxMethodBytes } from '../http1/limits.ts';
import type { RefusalReason } from '../http1/refusal.ts';
import type { RequestView } from '../rules/request-view.ts';
import type { Field } from './field.ts';
import type { FieldBlock } from './hpack-decoder.ts';

export class Http2Request implements RequestView {
  readonly fields: readonly Field[];
  readonly peerAddress: string;
  target = '';
  host = '';
  /** Of an extended CONNECT (RFC 8441), e.g. `websocket`; empty otherwise. */
  protocol = '';
  /** Bytes that the body has by its own word; −1 when it does not say. */
  contentLength = -1;
  /** Why it is not served; `malformed` = not a message at all. */
  readonly refusal: RefusalReason | undefined;
  #method = '';
  #hasAuthority = false;

  constructor(block: FieldBlock, options: RequestOptions) {
    this.fields = block.fields;
    this.peerAddress = options.peerAddress;
    // Of too many fields the first are there: a refusal of HEAD must not have a body either.
    const flaw = this.#readFields();
    this.refusal = block.isTooLarge ? 'head-too-large' : (flaw ?? this.#judge(options));
  }

  // Whoever limits GET means a WebSocket too, whichever version of HTTP opened it.
  get method(): string {
    return this.protocol === '' ? this.#method : 'GET';
  }

  /** Whether a request may be sent twice without harm (RFC 9110 §9.2.2). */
  get isIdempotent(): boolean {
    return IDEMPOTENT.has(this.#method);
  }

  get isGrpc(): boolean {
    return GRPC_TYPE.test(this.header('content-type') ?? '');
  }

  header(name: string): string | undefined {
    return valueOf(this.fields, name);
  }

  headerCount(name: string): number {
    let count = 0;
    for (const field of this.fields) if (field.name === name) count += 1;
    return count;
  }

  eachHeader(visit: (name: string, value: string) => void): void {
    for (const { isPseudo, name, value } of this.fields) if (!isPseudo) visit(name, value);
  }

  #readFields(): RefusalReason | undefined {
    let [isPastPseudo, seen] = [false, 0];
    for (const field of this.fields) {
      if (field.isMalformed) return 'malformed';
      if (!field.isPseudo) {
        isPastPseudo = true;
        if (!this.#readRegular(field)) return 'content-length';
        continue;
      }
      const bit = this.#readPseudo(field);
      if (isPastPseudo || bit === 0 || (seen & bit) !== 0) return 'malformed';
      seen |= bit;
    }
    return this.#lacks(seen) ? 'malformed' : undefined;
  }

  #readRegular({ kind, value }: Field): boolean {
    // An authority that is there and empty is not made up for by another field (RFC 9113 §8.3.1): who reads the one and who
    // reads the other would see two hosts.
    if (kind === HOST && this.host === '' && !this.#hasAuthority) this.host = value;
    if (kind !== CONTENT_LENGTH) return true;
    const length = parseContentLength(value);
    const isClear = length >= 0 && (this.contentLength < 0 || this.contentLength === length);
    this.contentLength = length;
    return isClear;
  }

  #readPseudo({ name, value }: Field): number {
    switch (name) {
      case ':method':
        this.#method = value;
        return METHOD;
      case ':path':
        this.target = value;
        return PATH;
      case ':scheme':
        return SCHEME;
      case ':authority':
        this.host = value;
        this.#hasAuthority = true;
        return AUTHORITY;
      case ':protocol':
        this.protocol = value;
        return PROTOCOL;
      default:
        return 0;
    }
  }

  #lacks(seen: number): boolean {
    if (this.#method !== 'CONNECT') return (seen & (ALL | PROTOCOL)) !== ALL || this.target === '';
    // A plain CONNECT says where to and nothing else; an extended one is like any other request.
    const needed = this.protocol === '' ? METHOD | AUTHORITY : ALL | AUTHORITY | PROTOCOL;
    return seen !== needed;
  }

  #judge({ maxTargetBytes, knownHost, isWhole }: RequestOptions): RefusalReason | undefined {
    if (isWhole && this.contentLength > 0) return 'malformed';
    if (this.#method === 'CONNECT' && this.protocol === '') return 'connect';
    if (!isMethod(this.#method)) return 'method';
    if (this.target.length > maxTargetBytes) return 'target-too-long';
    return this.#judgeTarget() ?? this.#judgeHost(knownHost);
  }

  #judgeTarget(): RefusalReason | undefined {
    const target = this.target;
    if (target === '*') return this.#method === 'OPTIONS' ? undefined : 'target';
    if (target.charCodeAt(0) !== 0x2f) return 'target';
    for (let i = 0; i < target.length; i += 1) {
      if (!isTargetChar(target.charCodeAt(i))) return 'target';
    }
    return undefined;
  }

  #judgeHost(knownHost: string): RefusalReason | undefined {
    if (this.host === '') return 'host-missing';
    if (this.host !== knownHost && !isAuthority(this.host)) return 'host-invalid';
    let lines = 0;
    for (const { kind, value } of this.fields) {
      if (kind !== HOST) continue;
      lines += 1;
      if (lines > 1) return 'host-repeated';
      if (value.toLowerCase() !== this.host.toLowerCase()) return 'host-mismatch';
    }
    return undefined;
  }
}

export interface RequestOptions {
  readonly peerAddress: string;
  readonly maxTargetBytes: number;
  /** A host that was found valid before, or empty. */
  readonly knownHost: string;
  /** Whether nothing follows the fields. */
  readonly isWhole: boolean;
}

/** The lines of one (lower-case) name as one value; undefined when there is none. */
export function valueOf(fields: readonly Field[], name: string): string | undefined {
  let joined: string | undefined;
  for (const field of fields) {
    if (field.name !== name) continue;
    joined = joined === undefined ? field.value : `${joined}, ${field.value}`;
  }
  return joined;
}

const [METHOD, PATH, SCHEME, AUTHORITY, PROTOCOL] = [1, 2, 4, 8, 16];
/** What every request but CONNECT has. */
const ALL = METHOD | PATH | SCHEME;

/** With a coding or a parameter, but no other type that begins so: gRPC-Web is HTTP. */
const GRPC_TYPE = /^application\/grpc(?:$|[+;])/;

const IDEMPOTENT: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'OPTIONS',
  'TRACE',
  'PUT',
  'DELETE',
]);

function isMethod(method: string): boolean {
  if (method === '' || method.length > maxMethodBytes || method === 'PRI') return false;
  for (let i = 0; i < method.length; i += 1) if (!isTokenChar(method.charCodeAt(i))) return false;
  return true;
}
