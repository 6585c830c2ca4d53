// What comes of a request's body before the application has taken its stream. It counts with what waits for clients: each
// stream's share is bounded by its window, all together by the backlog.
import type { Backlog } from '../../http2/backlog.ts';

export class EarlyBody {
  readonly #backlog: Backlog;
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(backlog: Backlog) {
    this.#backlog = backlog;
  }

  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  /** Keeps a copy. */
  add(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#pieces.push(Buffer.from(bytes));
    this.#count(bytes.length);
  }

  /** Gives it all, and keeps nothing. */
  take(): readonly Buffer[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#count(-this.#bytes);
    return pieces;
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#backlog.bytes += bytes;
  }
}
