// Hot path for values that no table holds. Huffman-coded strings (RFC 7541 §5.2, Appendix B) are read; ours are never
// written so: a few bytes of a loopback or cluster link are worth less than the time.

import { byteAt } from './byte-at.ts';

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
const SHORT_CODES = new DataView(new ArrayBuffer(2 * 256));

interface CodesOfALength {
  readonly first: number;
  /** What they stand for, in their order; the end mark is a character too. */
  readonly characters: string;
}

/** Those of nine bits and more, shortest first. */
const LONG_CODES: CodesOfALength[] = [];

fillTables();

function fillTables(): void {
  let code = 0;
  for (let bits = SHORTEST; bits <= LONGEST; bits += 1) {
    code *= 2;
    const first = code;
    let characters = '';
    for (let byte = 0; byte <= END_MARK; byte += 1) {
      if (LENGTHS.charCodeAt(byte) - 0x41 + SHORTEST !== bits) continue;
      characters += String.fromCharCode(byte);
      if (bits <= 8) setShortCode(code, bits, byte);
      code += 1;
    }
    if (bits > 8) LONG_CODES.push({ first, characters });
  }
}

function setShortCode(code: number, bits: number, byte: number): void {
  const end = (code + 1) << (8 - bits);
  for (let next = code << (8 - bits); next < end; next += 1) {
    SHORT_CODES.setUint16(2 * next, (bits << 8) | byte);
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
    const short = SHORT_CODES.getUint16(2 * eightBits(bytes, at, to));
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
  const first = index < to ? byteAt(bytes, index) : 0xff;
  const second = index + 1 < to ? byteAt(bytes, index + 1) : 0xff;
  return (((first << 8) | second) >>> (8 - (at & 7))) & 0xff;
}

/** What the last code of more than eight bits stands for. */
let longCodeByte = 0;

/** The length of the code of more than eight bits at bit `at`. There always is one: the code is complete. */
function longCodeBits(bytes: Buffer, at: number, to: number): number {
  let bits = 8;
  let code = eightBits(bytes, at, to);
  for (const { first, characters } of LONG_CODES) {
    code = code * 2 + (eightBits(bytes, at + bits, to) >>> 7);
    bits += 1;
    if (code - first >= characters.length) continue;
    longCodeByte = characters.charCodeAt(code - first);
    break;
  }
  return bits;
}
