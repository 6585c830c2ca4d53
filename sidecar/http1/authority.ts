// The grammar of `uri-host [ ":" port ]` (RFC 9110 §7.2, RFC 3986 §3.2.2): what a Host field and the authority
// of an absolute-form target may hold. No userinfo: it is deprecated and a way to hide the real host.
import { hexValue, isDigit } from './characters.ts';

const maxPort = 65_535;

/** Whether `text` is a non-empty host with an optional port. */
export function isAuthority(text: string): boolean {
  const hostEnd = text.startsWith('[') ? bracketedHostEnd(text) : registeredNameEnd(text);
  if (hostEnd <= 0) return false;
  if (hostEnd === text.length) return true;
  return text.charCodeAt(hostEnd) === 0x3a && isPort(text, hostEnd + 1);
}

// IP-literal: only the characters are checked; an impossible address names no virtual host anyhow.
function bracketedHostEnd(text: string): number {
  const close = text.indexOf(']');
  if (close < 3) return 0;
  for (let i = 1; i < close; i += 1) {
    const code = text.charCodeAt(i);
    if (hexValue(code) < 0 && code !== 0x3a && code !== 0x2e) return 0;
  }
  return close + 1;
}

function registeredNameEnd(text: string): number {
  let i = 0;
  while (i < text.length && isHostChar(text, i)) i += 1;
  return i;
}

// unreserved / sub-delims / pct-encoded
function isHostChar(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  const lower = code | 0x20;
  if (lower >= 0x61 && lower <= 0x7a) return true;
  if (isDigit(code)) return true;
  if (code === 0x25) {
    return hexValue(text.charCodeAt(at + 1)) >= 0 && hexValue(text.charCodeAt(at + 2)) >= 0;
  }
  return "-._~!$&'()*+,;=".includes(text.charAt(at));
}

// port = *DIGIT: empty is allowed (RFC 3986 §3.2.3).
function isPort(text: string, from: number): boolean {
  for (let i = from; i < text.length; i += 1) if (!isDigit(text.charCodeAt(i))) return false;
  return Number(text.slice(from)) <= maxPort;
}
