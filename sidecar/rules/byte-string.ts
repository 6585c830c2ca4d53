// Hot path.
// A request arrives as bytes, one char per byte (Latin-1); a policy is written in Unicode. They are compared
// as byte strings: a policy's value is turned into its UTF-8 bytes once, when the bundle is compiled. Only what has
// to see characters (regular expressions, CEL) turns bytes back into text.

const LAST_ASCII = 0x7f;

/** The UTF-8 bytes of `text`, one char per byte. */
export function bytesOf(text: string): string {
  return isAscii(text) ? text : Buffer.from(text, 'utf8').toString('latin1');
}

/** The text that `bytes` encode in UTF-8; what is not UTF-8 becomes U+FFFD. */
export function textOf(bytes: string): string {
  return isAscii(bytes) ? bytes : Buffer.from(bytes, 'latin1').toString('utf8');
}

function isAscii(value: string): boolean {
  for (let i = 0; i < value.length; i += 1) {
    if (value.charCodeAt(i) > LAST_ASCII) return false;
  }
  return true;
}
