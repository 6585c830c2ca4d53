// What a client says first (RFC 9113 §3.4), in as many pieces as it comes.
import { ConnectionError, PROTOCOL_ERROR } from './error-code.ts';
import { PREFACE } from './frame.ts';

export class Preface {
  #left: number;

  constructor(role: 'client' | 'server') {
    this.#left = role === 'server' ? PREFACE.length : 0;
  }

  /** Whether some of it has not come. */
  get isDue(): boolean {
    return this.#left > 0;
  }

  /** What stands behind it in `bytes`. Throws ConnectionError when they are not it. */
  readFrom(bytes: Buffer): Buffer {
    if (this.#left === 0) return bytes;
    const from = PREFACE.length - this.#left;
    const length = Math.min(this.#left, bytes.length);
    if (bytes.toString('latin1', 0, length) !== PREFACE.slice(from, from + length)) {
      throw new ConnectionError(PROTOCOL_ERROR, 'no preface of HTTP/2');
    }
    this.#left -= length;
    return bytes.subarray(length);
  }

  /** No more of it is waited for. */
  drop(): void {
    this.#left = 0;
  }
}
