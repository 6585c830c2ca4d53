// What a peer may make us do for nothing: frames that cost it little and us work, of which floods are made.
import { ConnectionError, ENHANCE_YOUR_CALM } from './error-code.ts';

/** Between two calls of `forgive`: some thousand PINGs a second are what a busy stream of gRPC measures its link with. */
const MAX_CHORES = 10_000;
/** A request that is reset, or was never allowed, costs more than a PING. */
export const CHORES_OF_A_RESET = 20;

export class Chores {
  #count = 0;

  /** Throws ConnectionError when there have been too many. */
  add(count: number): void {
    this.#count += count;
    if (this.#count > MAX_CHORES) {
      throw new ConnectionError(ENHANCE_YOUR_CALM, 'too many frames that bring nothing');
    }
  }

  /** Time has passed. */
  forgive(): void {
    this.#count = 0;
  }
}
