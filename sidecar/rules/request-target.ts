// Hot path.
// What rules see of a request-target. The line itself goes upstream byte for byte; only matching looks through
// escapes, dot segments and doubled slashes, so that `/v1/%2e%2e/admin` cannot dodge a rule for `/admin`.

const SLASH = 0x2f;
const PERCENT = 0x25;
const PLUS = 0x2b;

/**
 * The path for matching: decoded once (`%2F` too), without dot segments and doubled slashes, a final slash kept.
 * Always begins with `/`, or is `*`. Undefined when an escape is invalid or the target has no path.
 */
export function normalPath(target: string): string | undefined {
  const path = rawPath(target);
  if (path === undefined || isNormal(path)) return path;
  const decoded = percentDecoded(path);
  return decoded === undefined ? undefined : withoutDotSegments(decoded);
}

/** The path as it was sent: the target without scheme, authority and query. Undefined when there is none. */
export function rawPath(target: string): string | undefined {
  if (target.charCodeAt(0) === SLASH) return beforeQuery(target);
  if (target === '*') return target;
  // absolute-form, RFC 9112 §3.2.2: the authority ends at the first `/` or `?`.
  const authority = target.indexOf('://');
  if (authority <= 0) return undefined;
  const rest = beforeQuery(target.slice(authority + 3));
  const slash = rest.indexOf('/');
  return slash < 0 ? '/' : rest.slice(slash);
}

/** What follows the first `?`; empty when there is none. */
export function rawQuery(target: string): string {
  const mark = target.indexOf('?');
  return mark < 0 ? '' : target.slice(mark + 1);
}

/** The first segment of a normal path: `v1` of `/v1/x`, empty for `/`. */
export function firstSegment(path: string): string {
  const end = path.indexOf('/', 1);
  return end < 0 ? path.slice(1) : path.slice(1, end);
}

/** The n-th segment (1 = the first) of a normal path; empty when there is none. */
export function segmentAt(path: string, index: number): string {
  let start = 1;
  for (let n = 1; n < index; n += 1) {
    const slash = path.indexOf('/', start);
    if (slash < 0) return '';
    start = slash + 1;
  }
  const end = path.indexOf('/', start);
  return end < 0 ? path.slice(start) : path.slice(start, end);
}

/** A query name or value as forms mean it: `+` is a space; an invalid escape stands for itself, as in browsers. */
export function formDecoded(text: string): string {
  let out = '';
  let from = 0;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === PLUS) {
      out += text.slice(from, i) + ' ';
      from = i + 1;
    } else if (code === PERCENT) {
      const byte = escapedByte(text, i);
      if (byte < 0) continue;
      out += text.slice(from, i) + String.fromCharCode(byte);
      i += 2;
      from = i + 1;
    }
  }
  return from === 0 ? text : out + text.slice(from);
}

function beforeQuery(target: string): string {
  const mark = target.indexOf('?');
  return mark < 0 ? target : target.slice(0, mark);
}

function isNormal(path: string): boolean {
  return !path.includes('%') && !path.includes('//') && !path.includes('/.');
}

function percentDecoded(path: string): string | undefined {
  let out = '';
  let from = 0;
  let i = path.indexOf('%');
  while (i >= 0) {
    const byte = escapedByte(path, i);
    if (byte < 0) return undefined;
    out += path.slice(from, i) + String.fromCharCode(byte);
    from = i + 3;
    i = path.indexOf('%', from);
  }
  return out + path.slice(from);
}

function withoutDotSegments(path: string): string {
  const kept: string[] = [];
  const segments = path.split('/');
  for (const segment of segments) {
    if (segment === '' || segment === '.') continue;
    if (segment === '..') kept.pop();
    else kept.push(segment);
  }
  const last = segments.at(-1);
  const isFolder = last === '' || last === '.' || last === '..';
  return '/' + kept.join('/') + (isFolder && kept.length > 0 ? '/' : '');
}

/** The byte of the escape at `percent`, -1 when it is not two hexadecimal digits. */
function escapedByte(text: string, percent: number): number {
  const high = hexDigit(text.charCodeAt(percent + 1));
  const low = hexDigit(text.charCodeAt(percent + 2));
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
