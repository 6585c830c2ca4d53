// Hot path. Names the field lines the engine or the proxy treats specially; every other line passes unread.
// Kinds are small integers so that a head can remember which it has seen in one bit set.
import { equalsFolded } from './characters.ts';

export type FieldKind = number;

export const OTHER = 0;
export const HOST = 1;
export const CONTENT_LENGTH = 2;
export const TRANSFER_ENCODING = 3;
export const DATE = 4;
export const RATE_LIMIT = 5;
export const RATE_LIMIT_POLICY = 6;
export const X_RATE_LIMIT = 7;
export const X_RATE_LIMIT_REMAINING = 8;
export const X_FORWARDED_PROTO = 9;
export const X_FORWARDED_HOST = 10;
export const X_FORWARDED_FOR = 11;
export const FORWARDED = 12;
// From here on: hop-by-hop, never forwarded as it came (RFC 9110 §7.6.1).
export const CONNECTION = 13;
export const KEEP_ALIVE = 14;
export const PROXY_CONNECTION = 15;
export const UPGRADE = 16;
export const TE = 17;
export const HTTP2_SETTINGS = 18;
/** A line whose name the Connection field nominated; set after the whole head is known. */
export const NOMINATED = 19;

/** One bit per kind, for the set a head keeps. */
export function bitOf(kind: FieldKind): number {
  return 1 << kind;
}

export const hopByHopBits: number =
  bitOf(CONNECTION) |
  bitOf(KEEP_ALIVE) |
  bitOf(PROXY_CONNECTION) |
  bitOf(UPGRADE) |
  bitOf(TE) |
  bitOf(HTTP2_SETTINGS) |
  bitOf(NOMINATED);

/** The kind of the name in text[from, to). The length decides which names can be meant at all. */
export function fieldKindOf(text: string, from: number, to: number): FieldKind {
  switch (to - from) {
    case 2:
      return pick(text, from, 'te', TE);
    case 4:
      return pick(text, from, 'host', HOST) || pick(text, from, 'date', DATE);
    case 7:
      return pick(text, from, 'upgrade', UPGRADE);
    case 9:
      return pick(text, from, 'ratelimit', RATE_LIMIT) || pick(text, from, 'forwarded', FORWARDED);
    case 10:
      return (
        pick(text, from, 'connection', CONNECTION) || pick(text, from, 'keep-alive', KEEP_ALIVE)
      );
    default:
      return to - from < 14 ? OTHER : longFieldKindOf(text, from, to - from);
  }
}

function longFieldKindOf(text: string, from: number, length: number): FieldKind {
  switch (length) {
    case 14:
      return (
        pick(text, from, 'content-length', CONTENT_LENGTH) ||
        pick(text, from, 'http2-settings', HTTP2_SETTINGS)
      );
    case 15:
      return pick(text, from, 'x-forwarded-for', X_FORWARDED_FOR);
    case 16:
      return pickFirst(text, from, names16);
    case 17:
      return pickFirst(text, from, names17);
    case 21:
      return pick(text, from, 'x-ratelimit-remaining', X_RATE_LIMIT_REMAINING);
    default:
      return OTHER;
  }
}

const names16: readonly (readonly [string, FieldKind])[] = [
  ['proxy-connection', PROXY_CONNECTION],
  ['x-forwarded-host', X_FORWARDED_HOST],
  ['ratelimit-policy', RATE_LIMIT_POLICY],
];

const names17: readonly (readonly [string, FieldKind])[] = [
  ['transfer-encoding', TRANSFER_ENCODING],
  ['x-forwarded-proto', X_FORWARDED_PROTO],
  ['x-ratelimit-limit', X_RATE_LIMIT],
  ['x-ratelimit-reset', X_RATE_LIMIT],
];

function pickFirst(
  text: string,
  from: number,
  names: readonly (readonly [string, FieldKind])[],
): FieldKind {
  for (const [name, kind] of names) if (equalsFolded(text, from, name)) return kind;
  return OTHER;
}

function pick(text: string, from: number, name: string, kind: FieldKind): FieldKind {
  return equalsFolded(text, from, name) ? kind : OTHER;
}
