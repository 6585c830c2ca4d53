// Hot path. The character classes of RFC 9110 §5.6 over char codes 0..255 (text is Latin-1: one char per byte).
// Comparisons instead of a table: no state, and the common letters leave after two of them.

/** The marks of tchar besides `-`, which is common enough for a comparison of its own. */
const marks = "!#$%&'*+.^_`|~";

/** tchar, RFC 9110 §5.6.2. */
export function isTokenChar(code: number): boolean {
  const lower = code | 0x20;
  if (lower >= 0x61 && lower <= 0x7a) return true;
  if (code === 0x2d) return true;
  if (code >= 0x30 && code <= 0x39) return true;
  return marks.includes(String.fromCharCode(code));
}

/** VCHAR, obs-text, SP or HTAB: what a field value may hold (RFC 9110 §5.5). */
export function isValueChar(code: number): boolean {
  return (code >= 0x20 && code !== 0x7f) || code === 0x09;
}

export function isWhitespace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

export function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** The value of a hexadecimal digit, −1 for anything else. */
export function hexValue(code: number): number {
  if (isDigit(code)) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** Whether text[from, to) equals `lower` (which has no upper-case letters), ASCII case aside. */
export function equalsFolded(text: string, from: number, lower: string): boolean {
  for (let i = 0; i < lower.length; i += 1) {
    const wanted = lower.charCodeAt(i);
    const code = text.charCodeAt(from + i);
    if (code !== wanted && !(code >= 0x41 && code <= 0x5a && code + 0x20 === wanted)) return false;
  }
  return true;
}

/**
 * What a request-target may hold: visible ASCII but `#` (a target has no fragment, RFC 9112 §3.2), and bytes above ASCII,
 * which many clients send raw and many servers take; they pass as they are.
 */
export function isTargetChar(code: number): boolean {
  return code > 0x20 && code !== 0x7f && code !== 0x23;
}
