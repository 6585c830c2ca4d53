// Hot path for values that no table holds. Huffman-coded strings (RFC 7541 §5.2, Appendix B) are read; ours are never
// written so: a few bytes of a loopback or cluster link are worth less than the time.

/** Bits of each byte's code and, last, of the end mark: A = 5 … Z = 30. The code is canonical, so lengths say all. */
const LENGTHS =
  'ISXXXXXXXTZXXZXXXXXXXXZXXXXXXXXXBFFHIBDGFFDGDBBBAAABBBBBBBCDKBHF' +
  'IBCCCCCCCCCCCCCCCCCCCCCCDCDIOIJBKABABABBBACCBBBABCBAABCCCCCKGJIX' +
  'PRPPRRRSRSSSSSTSTTRSTSSSSQRSRSSTRQPRRSSQSRRTQRSSQQRQSRSSPRRRSRRS' +
  'VVPORSRUVVVWWVTUOQVWWVWTQQVVXWWWPTPQRQQSRRUUTTVSVWVVWWWWWXWWWWWVZ';
const SHORTEST = 5;
const LONGEST = 30;
const END_MARK = 256;

/** Codes of up to eight bits, by the next eight: `bits << 8 | byte`, or 0. Nearly all text is made of them. */
const SHORT_CODES = new Uint16Array(256);
/** By length: the first code, the number of codes, and where their bytes begin in BYTES. */
const FIRST = new Uint32Array(LONGEST + 1);
const COUNT = new Uint16Array(LONGEST + 1);
const OFFSET = new Uint16Array(LONGEST + 1);
/** All bytes and the end mark in the order of their codes. */
const BYTES = new Uint16Array(END_MARK + 1);

fillTables();

function fillTables(): void {
  let [code, offset] = [0, 0];
  for (let bits = SHORTEST; bits <= LONGEST; bits += 1) {
    code *= 2;
    FIRST[bits] = code;
    OFFSET[bits] = offset;
    for (let byte = 0; byte <= END_MARK; byte += 1) {
      if (LENGTHS.charCodeAt(byte) - 0x41 + SHORTEST !== bits) continue;
      BYTES[offset] = byte;
      if (bits <= 8) {
        SHORT_CODES.fill((bits << 8) | byte, code << (8 - bits), (code + 1) << (8 - bits));
      }
      code += 1;
      offset += 1;
    }
    COUNT[bits] = code - (FIRST[bits] ?? 0);
  }
}

let scratch = Buffer.alloc(4_096);

/** The text of bytes[from, to) as Latin-1; undefined when it is no valid coding. */
export function decodeHuffman(bytes: Buffer, from: number, to: number): string | undefined {
  const most = Math.ceil(((to - from) * 8) / SHORTEST);
  if (scratch.length < most) scratch = Buffer.alloc(most);
  const end = to * 8;
  let length = 0;
  for (let at = from * 8; at < end;) {
    const short = SHORT_CODES[eightBits(bytes, at, to)] ?? 0;
    let taken = short >>> 8;
    let byte = short & 0xff;
    if (taken === 0) {
      taken = longCodeBits(bytes, at, to);
      byte = longCodeByte;
      // Less than a byte of ones at the end is padding; an end mark anywhere else is a fault.
      if (byte === END_MARK)
        return end - at < 8 ? scratch.toString('latin1', 0, length) : undefined;
    }
    at += taken;
    if (at > end) return undefined;
    scratch[length] = byte;
    length += 1;
  }
  return scratch.toString('latin1', 0, length);
}

/** What follows at bit `at`; past the end there are only ones, as in padding. */
function eightBits(bytes: Buffer, at: number, to: number): number {
  const index = at >>> 3;
  const first = index < to ? (bytes[index] ?? 0xff) : 0xff;
  const second = index + 1 < to ? (bytes[index + 1] ?? 0xff) : 0xff;
  return (((first << 8) | second) >>> (8 - (at & 7))) & 0xff;
}

/** What the last code of more than eight bits stands for. */
let longCodeByte = 0;

/** The length of the code of more than eight bits at bit `at`. */
function longCodeBits(bytes: Buffer, at: number, to: number): number {
  let code = eightBits(bytes, at, to);
  for (let bits = 9; bits <= LONGEST; bits += 1) {
    code = code * 2 + (eightBits(bytes, at + bits - 1, to) >>> 7);
    const index = code - (FIRST[bits] ?? 0);
    if (index >= (COUNT[bits] ?? 0)) continue;
    longCodeByte = BYTES[(OFFSET[bits] ?? 0) + index] ?? END_MARK;
    return bits;
  }
  longCodeByte = END_MARK;
  return LONGEST;
}
