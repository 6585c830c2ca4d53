// How long to wait before asking again. Doubling with jitter, so that replicas that lost the same server do not come
// back in step, and starting anew after a time without failure.
import type { Random } from '../clock.ts';

/** As client-go's reflector. */
const FIRST_WAIT_MS = 800;
/** With its jitter of up to once more: 30 s at most. */
const MOST_BASE_MS = 15_000;
/** Healthy for so long: what failed before says nothing any more. */
export const HEALTHY_AFTER_MS = 120_000;

export class BackOff {
  readonly #random: Random;
  #failures = 0;
  #endsAtMs = Number.NEGATIVE_INFINITY;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Call at each failure, with the clock's time; answers the wait in milliseconds. */
  next(nowMs: number): number {
    if (nowMs - this.#endsAtMs >= HEALTHY_AFTER_MS) this.#failures = 0;
    const base = Math.min(FIRST_WAIT_MS * 2 ** this.#failures, MOST_BASE_MS);
    // Doubling further would only overflow.
    if (base < MOST_BASE_MS) this.#failures += 1;
    const wait = base * (1 + this.#random());
    this.#endsAtMs = nowMs + wait;
    return wait;
  }
}
