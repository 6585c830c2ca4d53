// Field blocks as clients and applications of the fuzzer write them: in every way that RFC 7541 allows, and in some that
// it does not. Values that hold a mark are never Huffman-coded: the mark is put in afterwards.
import { HUFFMAN_CODES, STATIC_LINES } from './hpack-tables.ts';
import type { Line } from './hpack-tables.ts';

/** What begins a literal, and how many bits of its first byte are an index (RFC 7541 §6.2). */
const LITERALS = {
  indexed: { flags: 0x40, bits: 6 },
  plain: { flags: 0x00, bits: 4 },
  never: { flags: 0x10, bits: 4 },
} as const;
type Indexing = keyof typeof LITERALS;

const TABLE_BYTES = 4_096;
const ENTRY_OVERHEAD = 32;

/** A block without tables. */
export function literalBlock(lines: readonly Line[]): Buffer {
  return Buffer.concat(lines.map(([name, value]) => literal(0, [name, value], 'plain')));
}

/** An integer behind `bits` bits of a byte that begins with `flags` (RFC 7541 §5.1). */
export function integer(flags: number, bits: number, value: number): Buffer {
  const most = 2 ** bits - 1;
  if (value < most) return Buffer.from([flags | value]);
  const bytes = [flags | most];
  let rest = value - most;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  return Buffer.from([...bytes, rest]);
}

function literal(index: number, [name, value]: Line, indexing: Indexing, isCoded = false): Buffer {
  const { flags, bits } = LITERALS[indexing];
  const parts = [integer(flags, bits, index)];
  if (index === 0) parts.push(text(name, isCoded));
  parts.push(text(value, isCoded));
  return Buffer.concat(parts);
}

function text(value: string, isCoded: boolean): Buffer {
  const bytes = isCoded && !value.includes('@') ? huffman(value) : Buffer.from(value, 'latin1');
  const isHuffman = isCoded && !value.includes('@');
  return Buffer.concat([integer(isHuffman ? 0x80 : 0, 7, bytes.length), bytes]);
}

function huffman(value: string): Buffer {
  let digits = '';
  for (const char of value) {
    const { bits, code } = HUFFMAN_CODES[char.charCodeAt(0)] ?? { bits: 0, code: 0 };
    digits += code.toString(2).padStart(bits, '0');
  }
  digits = digits.padEnd(Math.ceil(digits.length / 8) * 8, '1');
  return Buffer.from((digits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}

/** One direction of a connection, with its table. */
export class HpackWriter {
  readonly #random: () => number;
  /** Newest first. */
  readonly #entries: Line[] = [];
  #maxBytes = TABLE_BYTES;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** A block that is right. */
  block(lines: readonly Line[]): Buffer {
    const resizes = this.#random() < 0.08 ? [this.#resize(), this.#resize()] : [];
    return Buffer.concat([...resizes, ...lines.map((line) => this.#line(line))]);
  }

  #resize(): Buffer {
    const share = this.#random() < 0.3 ? 0 : this.#random() < 0.5 ? 1 : this.#random();
    this.#maxBytes = Math.floor(TABLE_BYTES * share);
    this.#evict();
    return integer(0x20, 5, this.#maxBytes);
  }

  #line(line: Line): Buffer {
    const at = this.#indexOf(([name, value]) => name === line[0] && value === line[1]);
    if (at > 0 && this.#random() < 0.8) return integer(0x80, 7, at);
    const named = this.#random() < 0.8 ? this.#indexOf(([name]) => name === line[0]) : 0;
    const indexing = this.#indexing();
    const bytes = literal(named, line, indexing, this.#random() < 0.3);
    if (indexing === 'indexed') this.#add(line);
    return bytes;
  }

  #indexOf(isIt: (line: Line) => boolean): number {
    const fixed = STATIC_LINES.findIndex(isIt);
    if (fixed >= 0) return fixed + 1;
    const at = this.#entries.findIndex(isIt);
    return at < 0 ? 0 : STATIC_LINES.length + at + 1;
  }

  #indexing(): Indexing {
    const throwing = this.#random();
    return throwing < 0.4 ? 'indexed' : throwing < 0.8 ? 'plain' : 'never';
  }

  #add(line: Line): void {
    this.#entries.unshift(line);
    this.#evict();
  }

  #evict(): void {
    while (this.#bytes > this.#maxBytes) this.#entries.pop();
  }

  get #bytes(): number {
    return this.#entries.reduce(
      (sum, [name, value]) => sum + name.length + value.length + ENTRY_OVERHEAD,
      0,
    );
  }
}
