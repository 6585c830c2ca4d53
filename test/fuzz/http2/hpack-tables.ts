// What both ends of HPACK know beforehand (RFC 7541, Appendix A and B), written down a second time: the oracle must not
// share its tables with what it judges.

/** A line of fields. */
export type Line = readonly [name: string, value: string];

/** Names with the values that the table has of them, in its order; `|` separates, and a name alone has no value. */
const STATIC = `:authority
:method|GET|POST
:path|/|/index.html
:scheme|http|https
:status|200|204|206|304|400|404|500
accept-charset
accept-encoding|gzip, deflate
accept-language
accept-ranges
accept
access-control-allow-origin
age
allow
authorization
cache-control
content-disposition
content-encoding
content-language
content-length
content-location
content-range
content-type
cookie
date
etag
expect
expires
from
host
if-match
if-modified-since
if-none-match
if-range
if-unmodified-since
last-modified
link
location
max-forwards
proxy-authenticate
proxy-authorization
range
referer
refresh
retry-after
server
set-cookie
strict-transport-security
transfer-encoding
user-agent
vary
via
www-authenticate`;

/** The static table; index 1 is its first. */
export const STATIC_LINES: readonly Line[] = STATIC.split('\n').flatMap((line) => {
  const [name = '', ...values] = line.split('|');
  return (values.length === 0 ? [''] : values).map((value): Line => [name, value]);
});

/** Bits of the code of each byte, and last of the end mark, in base 36. */
const CODE_BITS =
  'dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca' +
  'd67777777777777777777777878djde6f56565666577666567655677777fbeds' +
  'kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn' +
  'qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq' +
  'u';

export interface HuffmanCode {
  readonly bits: number;
  readonly code: number;
}

/** By byte; 256 is the end mark. The code is canonical: shorter ones first, bytes of one length in their order. */
export const HUFFMAN_CODES: readonly HuffmanCode[] = canonicalCodes();

function canonicalCodes(): HuffmanCode[] {
  const lengths = Array.from(CODE_BITS, (digit) => Number.parseInt(digit, 36));
  const codes: HuffmanCode[] = [];
  let next = 0;
  for (let bits = 1; bits <= Math.max(...lengths); bits += 1) {
    next *= 2;
    for (const [byte, length] of lengths.entries()) {
      if (length !== bits) continue;
      codes[byte] = { bits, code: next };
      next += 1;
    }
  }
  return codes;
}
