// Data of many connections that waits to be sent: each stream's share is bounded by its window, all together by this.

/** A connection of which less than this part of the bound waits is not asked to give way first. */
const SHARES = 32;

export class Backlog {
  bytes = 0;
  readonly #maxBytes: number;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Whether a connection of which `ownBytes` wait has to give way; past twice the bound whoever it is. */
  isTooMuch(ownBytes: number): boolean {
    if (this.bytes <= this.#maxBytes) return false;
    return ownBytes > this.#maxBytes / SHARES || this.bytes > 2 * this.#maxBytes;
  }
}
