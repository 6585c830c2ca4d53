// Field blocks (RFC 7541) for the oracle: slow, strict, and written apart from the sidecar's.
import { Http2Fault } from './fault.ts';
import { HUFFMAN_CODES, STATIC_LINES } from './hpack-tables.ts';
import type { Line } from './hpack-tables.ts';

const DEFAULT_TABLE_BYTES = 4_096;
const ENTRY_OVERHEAD = 32;
/** Continuation bytes of an integer. Every decoder has a limit (RFC 7541 §5.1); this is Weir's. */
const MOST_CONTINUED = 4;
const END_MARK = 256;

/** What a code of so many bits stands for. */
const MEANINGS = new Map<number, number>(
  HUFFMAN_CODES.map(({ bits, code }, byte) => [keyOf(bits, code), byte]),
);

function keyOf(bits: number, code: number): number {
  return bits * 2 ** 32 + code;
}

export class HpackReader {
  /** Newest first. */
  readonly #entries: Line[] = [];
  #bytes = 0;
  #maxBytes = DEFAULT_TABLE_BYTES;
  /** What the reader lets the writer have. */
  #limit = DEFAULT_TABLE_BYTES;
  #block: Buffer = Buffer.alloc(0);
  #at = 0;

  /** The writer has acknowledged that its table may have so many bytes, and must say so if that is less (RFC 7541 §4.2). */
  limit(bytes: number): void {
    this.#limit = bytes;
  }

  /** Throws Http2Fault: then nobody knows what the table holds. */
  read(block: Buffer): Line[] {
    this.#block = block;
    this.#at = 0;
    const lines: Line[] = [];
    while (this.#at < block.length && (this.#first & 0xe0) === 0x20) this.#resize();
    if (this.#maxBytes > this.#limit) throw new Http2Fault('a table that was to be smaller');
    while (this.#at < block.length) lines.push(this.#line());
    return lines;
  }

  get #first(): number {
    const byte = this.#block[this.#at];
    if (byte === undefined) throw new Http2Fault('a field block that breaks off');
    return byte;
  }

  #resize(): void {
    const bytes = this.#integer(5);
    if (bytes > this.#limit) throw new Http2Fault(`a table of ${bytes} bytes`);
    this.#maxBytes = bytes;
    this.#evict();
  }

  #line(): Line {
    const first = this.#first;
    if (first >= 0x80) return this.#known(this.#integer(7));
    if (first >= 0x40) {
      const line = this.#literal(6);
      this.#add(line);
      return line;
    }
    if (first >= 0x20) throw new Http2Fault('a table size within a block');
    return this.#literal(4);
  }

  #literal(prefixBits: number): Line {
    const index = this.#integer(prefixBits);
    const name = index === 0 ? this.#string() : this.#known(index)[0];
    return [name, this.#string()];
  }

  #known(index: number): Line {
    const line = STATIC_LINES[index - 1] ?? this.#entries[index - 1 - STATIC_LINES.length];
    if (index === 0 || line === undefined) throw new Http2Fault(`no line ${index}`);
    return line;
  }

  #add(line: Line): void {
    this.#entries.unshift(line);
    this.#bytes += sizeOf(line);
    this.#evict();
  }

  #evict(): void {
    while (this.#bytes > this.#maxBytes) {
      const last = this.#entries.pop();
      if (last !== undefined) this.#bytes -= sizeOf(last);
    }
  }

  #integer(prefixBits: number): number {
    const most = 2 ** prefixBits - 1;
    let value = this.#first & most;
    this.#at += 1;
    if (value < most) return value;
    for (let count = 0; count < MOST_CONTINUED; count += 1) {
      const byte = this.#first;
      this.#at += 1;
      value += (byte & 0x7f) * 2 ** (7 * count);
      if (byte < 0x80) return value;
    }
    throw new Http2Fault('an integer without end');
  }

  #string(): string {
    const isCoded = this.#first >= 0x80;
    const length = this.#integer(7);
    const bytes = this.#block.subarray(this.#at, this.#at + length);
    if (bytes.length < length) throw new Http2Fault('a string that breaks off');
    this.#at += length;
    return isCoded ? huffmanText(bytes) : bytes.toString('latin1');
  }
}

function sizeOf([name, value]: Line): number {
  return name.length + value.length + ENTRY_OVERHEAD;
}

function huffmanText(bytes: Buffer): string {
  let text = '';
  let [code, bits] = [0, 0];
  for (let at = 0; at < bytes.length * 8; at += 1) {
    code = code * 2 + (((bytes[at >>> 3] ?? 0) >>> (7 - (at & 7))) & 1);
    bits += 1;
    const byte = MEANINGS.get(keyOf(bits, code));
    if (byte === undefined) continue;
    if (byte === END_MARK) throw new Http2Fault('an end mark within a string');
    text += String.fromCharCode(byte);
    [code, bits] = [0, 0];
  }
  // Padding is the beginning of the end mark, and less than a byte (RFC 7541 §5.2).
  if (bits > 7 || code !== 2 ** bits - 1) throw new Http2Fault('a string that ends within a code');
  return text;
}
