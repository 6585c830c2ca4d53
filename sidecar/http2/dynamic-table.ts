// The lines that two peers have told each other (RFC 7541 §2.3.2): the newest first, bounded in bytes.
import type { Field } from './field.ts';

/** Both directions stay within the size that holds unless somebody asks for another one (RFC 7541 §4.2). */
export const DEFAULT_TABLE_BYTES = 4_096;
/** A line takes 32 bytes at least, so more never fit. A power of two: positions wrap by a mask. */
const SLOTS = 128;

export class DynamicTable {
  readonly #onEvict: ((field: Field) => void) | undefined;
  readonly #slots: (Field | undefined)[] = new Array<Field | undefined>(SLOTS).fill(undefined);
  #maxBytes = DEFAULT_TABLE_BYTES;
  #bytes = 0;
  #count = 0;
  /** How many were ever added: the number of the next one. */
  #added = 0;

  constructor(onEvict?: (field: Field) => void) {
    this.#onEvict = onEvict;
  }

  get count(): number {
    return this.#count;
  }

  get maxBytes(): number {
    return this.#maxBytes;
  }

  /** The number of the next line that is added; numbers of lines are never used twice. */
  get nextNumber(): number {
    return this.#added;
  }

  /** 0 is the newest. Undefined past the oldest. */
  at(index: number): Field | undefined {
    if (index >= this.#count) return undefined;
    return this.#slots[(this.#added - 1 - index) & (SLOTS - 1)];
  }

  /** `maxBytes` ≤ DEFAULT_TABLE_BYTES. */
  resize(maxBytes: number): void {
    this.#maxBytes = maxBytes;
    this.#evict(maxBytes);
  }

  /** A line that is larger than the table empties it (RFC 7541 §4.4). */
  add(field: Field): void {
    const { size } = field;
    this.#evict(this.#maxBytes - size);
    if (size > this.#maxBytes) return;
    this.#slots[this.#added & (SLOTS - 1)] = field;
    this.#added += 1;
    this.#count += 1;
    this.#bytes += size;
  }

  #evict(toBytes: number): void {
    while (this.#bytes > toBytes) {
      const slot = (this.#added - this.#count) & (SLOTS - 1);
      const oldest = this.#slots[slot];
      // None is left.
      if (oldest === undefined) return;
      this.#slots[slot] = undefined;
      this.#count -= 1;
      this.#bytes -= oldest.size;
      this.#onEvict?.(oldest);
    }
  }
}
