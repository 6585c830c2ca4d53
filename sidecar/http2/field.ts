// One field line of HTTP/2 as both directions use it. Decoded lines that a table of HPACK holds are one object for as
// long as they stand there, so what is to be known about a line is worked out once, not once a request.
import { isTokenChar } from '../http1/characters.ts';
import {
  CONNECTION,
  type FieldKind,
  fieldKindOf,
  HTTP2_SETTINGS,
  KEEP_ALIVE,
  PROXY_CONNECTION,
  TE,
  TRANSFER_ENCODING,
  UPGRADE,
} from '../http1/field-kind.ts';

/** How a line stood in its block: what its sender wants to be done with it on every hop (RFC 7541 §6.2). */
export type Indexing =
  /** Worth a place in the table. */
  | 'indexed'
  /** Not worth it. */
  | 'plain'
  /** A secret that no table may hold. */
  | 'never';

/** A line takes this much more in a table, and in what SETTINGS_MAX_HEADER_LIST_SIZE counts (RFC 7541 §4.1). */
const ENTRY_OVERHEAD = 32;

export class Field {
  /** Latin-1, as `value`. */
  readonly name: string;
  readonly value: string;
  readonly indexing: Indexing;
  /** What HTTP/1.1 and HTTP/2 treat specially; 0 for all others, and for pseudo-fields. */
  readonly kind: FieldKind;
  /** `:method` and the like. */
  readonly isPseudo: boolean;
  /** Whether the line may not stand in any message (RFC 9113 §8.2.1, §8.2.2). */
  readonly isMalformed: boolean;

  constructor(name: string, value: string, indexing: Indexing) {
    this.name = name;
    this.value = value;
    this.indexing = indexing;
    this.isPseudo = name.charCodeAt(0) === 0x3a;
    this.kind = this.isPseudo ? 0 : fieldKindOf(name, 0, name.length);
    this.isMalformed = !isName(name) || !isValue(value) || isOfOneHop(this.kind, value);
  }

  /** What it takes in a table, in bytes. */
  get size(): number {
    return this.name.length + this.value.length + ENTRY_OVERHEAD;
  }
}

function isName(name: string): boolean {
  const from = name.charCodeAt(0) === 0x3a ? 1 : 0;
  if (name.length === from) return false;
  for (let i = from; i < name.length; i += 1) {
    const code = name.charCodeAt(i);
    if (!isTokenChar(code) || (code >= 0x41 && code <= 0x5a)) return false;
  }
  return true;
}

function isValue(value: string): boolean {
  for (let i = 0; i < value.length; i += 1) {
    const code = value.charCodeAt(i);
    if (code < 0x20 ? code !== 0x09 : code === 0x7f) return false;
  }
  return !isBlank(value.charCodeAt(0)) && !isBlank(value.charCodeAt(value.length - 1));
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

function isOfOneHop(kind: FieldKind, value: string): boolean {
  switch (kind) {
    case CONNECTION:
    case HTTP2_SETTINGS:
    case KEEP_ALIVE:
    case PROXY_CONNECTION:
    case TRANSFER_ENCODING:
    case UPGRADE:
      return true;
    case TE:
      return value !== 'trailers';
    default:
      return false;
  }
}
