// Hot path. The distinct keys of one call and their places in it. A Map would make a table anew for every call; here
// emptying costs one addition.
import type { KeyedBucket } from '../limiter/bucket.ts';
import { clear } from '../limiter/element.ts';

/** A power of two; twice the keys of a full call, so that probes are short. */
const SLOTS = 256;
const MAX_EPOCH = 2 ** 31 - 1;

export class KeyPositions {
  /** One per key, in order; a key's position is its place here, from 1. */
  readonly buckets: KeyedBucket[] = [];
  #positions: Int32Array = new Int32Array(SLOTS);
  /** A slot is in use when it bears the epoch that runs. */
  #epochs: Int32Array = new Int32Array(SLOTS);
  #epoch = 1;

  /** The position of `bucket`'s key; 0 when it has none yet. */
  find(bucket: KeyedBucket): number {
    const mask = this.#positions.length - 1;
    for (let slot = bucket.hash & mask; ; slot = (slot + 1) & mask) {
      if (this.#epochs[slot] !== this.#epoch) return 0;
      const position = this.#positions[slot] ?? 0;
      // Two objects may stand for one key, while a bundle replaces another.
      if (this.buckets[position - 1]?.key === bucket.key) return position;
    }
  }

  /** Gives `bucket`'s key the next position; it must have none. */
  add(bucket: KeyedBucket): number {
    const position = this.buckets.push(bucket);
    if (2 * position > this.#positions.length) this.#grow();
    else this.#place(bucket, position);
    return position;
  }

  clear(): void {
    clear(this.buckets);
    if (this.#epoch === MAX_EPOCH) {
      this.#epochs.fill(0);
      this.#epoch = 0;
    }
    this.#epoch += 1;
  }

  #place(bucket: KeyedBucket, position: number): void {
    const mask = this.#positions.length - 1;
    let slot = bucket.hash & mask;
    while (this.#epochs[slot] === this.#epoch) slot = (slot + 1) & mask;
    this.#epochs[slot] = this.#epoch;
    this.#positions[slot] = position;
  }

  /** For a single decision over more buckets than a call has otherwise. */
  #grow(): void {
    this.#positions = new Int32Array(2 * this.#positions.length);
    this.#epochs = new Int32Array(this.#positions.length);
    for (const [i, bucket] of this.buckets.entries()) this.#place(bucket, i + 1);
  }
}
