// The two fields that say where a body ends (RFC 9112 §6), read in the one way all parsers share.
import { isDigit } from './characters.ts';
import { CONTENT_LENGTH, TRANSFER_ENCODING } from './field-kind.ts';
import type { FieldSection } from './field-section.ts';
import { maxLengthDigits } from './limits.ts';

/** How a message's end is found. `close`: the end of the connection (responses only). */
export type Framing = 'none' | 'length' | 'chunked' | 'close';

/**
 * Whether the first Transfer-Encoding is exactly `chunked`. Whitespace behind it is allowed by the grammar, but some
 * parsers (llhttp, at a tab) then see another coding: two readings, hence refused.
 */
export function isChunked(head: FieldSection): boolean {
  const line = head.lineOf(TRANSFER_ENCODING, 0);
  return head.endsWithValue(line) && head.value(line).toLowerCase() === 'chunked';
}

/** The first Content-Length as a number; −1 when it is none or whitespace follows it. */
export function declaredLength(head: FieldSection): number {
  const line = head.lineOf(CONTENT_LENGTH, 0);
  return head.endsWithValue(line) ? parseContentLength(head.value(line)) : -1;
}

/** Content-Length = 1*DIGIT (RFC 9110 §8.6); −1 when it is not, or is past 2^53 − 1. */
export function parseContentLength(value: string): number {
  if (value.length === 0 || value.length > maxLengthDigits) return -1;
  let length = 0;
  for (let i = 0; i < value.length; i += 1) {
    const code = value.charCodeAt(i);
    if (!isDigit(code)) return -1;
    length = length * 10 + (code - 0x30);
  }
  return Number.isSafeInteger(length) ? length : -1;
}
