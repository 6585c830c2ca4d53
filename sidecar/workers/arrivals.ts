// When connections last came: at the end the listener stays open while they do, as that of a single process does.
import { setTimeout } from 'node:timers/promises';
import { quietMs } from '../proxy/proxy-options.ts';

const LOOK_EVERY_MS = 100;

export class Arrivals {
  #lastMs = -Infinity;

  /** A connection has come. */
  note(): void {
    this.#lastMs = performance.now();
  }

  /** Resolves once none has come for a second, or after `mostMs`. */
  async untilQuiet(mostMs: number): Promise<void> {
    const endMs = performance.now() + mostMs;
    for (;;) {
      const nowMs = performance.now();
      if (nowMs >= endMs || nowMs - this.#lastMs >= quietMs) return;
      await setTimeout(LOOK_EVERY_MS);
    }
  }
}
