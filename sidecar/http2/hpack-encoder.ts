// Hot path. Writes field blocks (RFC 7541). Whether a line goes into the table is left to whoever sent it first: it knew
// which lines come again. Nothing is Huffman-coded (huffman.ts says why).
import { DEFAULT_TABLE_BYTES, DynamicTable } from './dynamic-table.ts';
import type { Field } from './field.ts';
import { STATIC_NAMES, STATIC_TABLE } from './static-table.ts';

/** An integer never takes more bytes than this here: sizes are below 2^28. */
const MAX_INTEGER_BYTES = 5;

/** Index in the static table by name, then value. */
const STATIC_LINES = new Map<string, Map<string, number>>();
for (const [at, { name, value }] of STATIC_TABLE.entries()) {
  if (value !== '') valuesOf(STATIC_LINES, name).set(value, at + 1);
}

/** Where blocks are written; one at a time. */
let out = Buffer.alloc(16_384);

export class HpackEncoder {
  readonly #table: DynamicTable = new DynamicTable((field) => {
    this.#forget(field);
  });
  /** Number in the table by name, then value. */
  readonly #numbers = new Map<string, Map<string, number>>();
  /** Sizes that the peer has not been told yet: the smallest in between, and the last (RFC 7541 §4.2). */
  #resizes: readonly number[] = [];
  #at = 0;

  /** The peer's SETTINGS_HEADER_TABLE_SIZE; told in the next block. */
  limitTable(bytes: number): void {
    const size = Math.min(bytes, DEFAULT_TABLE_BYTES);
    if (size === this.#table.maxBytes) return;
    this.#table.resize(size);
    const least = Math.min(size, ...this.#resizes);
    this.#resizes = least < size ? [least, size] : [size];
  }

  /** One block; valid until the next call to any encoder. */
  encode(fields: readonly Field[]): Buffer {
    this.#at = 0;
    if (this.#resizes.length > 0) this.#tellResizes();
    for (const field of fields) this.#write(field);
    return out.subarray(0, this.#at);
  }

  #tellResizes(): void {
    for (const size of this.#resizes) this.#writeInteger(0x20, 0x1f, size);
    this.#resizes = [];
  }

  #write(field: Field): void {
    this.#reserve(field.name.length + field.value.length + 3 * MAX_INTEGER_BYTES);
    if (field.indexing === 'never') {
      this.#writeLiteral(0x10, 0x0f, field);
      return;
    }
    const index = this.#indexOf(field);
    if (index !== undefined) {
      this.#writeInteger(0x80, 0x7f, index);
    } else if (field.indexing === 'indexed' && field.size <= this.#table.maxBytes) {
      this.#writeLiteral(0x40, 0x3f, field);
      valuesOf(this.#numbers, field.name).set(field.value, this.#table.nextNumber);
      this.#table.add(field);
    } else {
      this.#writeLiteral(0x00, 0x0f, field);
    }
  }

  #indexOf({ name, value }: Field): number | undefined {
    const number = this.#numbers.get(name)?.get(value);
    if (number !== undefined) return STATIC_TABLE.length + this.#table.nextNumber - number;
    return STATIC_LINES.get(name)?.get(value);
  }

  #writeLiteral(flags: number, mask: number, { name, value }: Field): void {
    const index = STATIC_NAMES.get(name);
    this.#writeInteger(flags, mask, index ?? 0);
    if (index === undefined) this.#writeString(name);
    this.#writeString(value);
  }

  #writeString(text: string): void {
    this.#writeInteger(0x00, 0x7f, text.length);
    this.#at += out.write(text, this.#at, 'latin1');
  }

  #writeInteger(flags: number, mask: number, value: number): void {
    if (value < mask) {
      out[this.#at] = flags | value;
      this.#at += 1;
      return;
    }
    out[this.#at] = flags | mask;
    this.#at += 1;
    let rest = value - mask;
    while (rest >= 0x80) {
      out[this.#at] = (rest & 0x7f) | 0x80;
      this.#at += 1;
      rest >>>= 7;
    }
    out[this.#at] = rest;
    this.#at += 1;
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= out.length) return;
    const larger = Buffer.alloc(2 * (this.#at + bytes));
    out.copy(larger, 0, 0, this.#at);
    out = larger;
  }

  #forget({ name, value }: Field): void {
    const values = this.#numbers.get(name);
    values?.delete(value);
    if (values?.size === 0) this.#numbers.delete(name);
  }
}

function valuesOf(lines: Map<string, Map<string, number>>, name: string): Map<string, number> {
  let values = lines.get(name);
  if (values === undefined) lines.set(name, (values = new Map<string, number>()));
  return values;
}
