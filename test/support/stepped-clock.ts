// The operator's time for tests: it stands still until a test moves it.
import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../operator/clock.ts';

interface Timer {
  readonly dueMs: number;
  readonly task: () => void;
}

export class SteppedClock implements Clock {
  readonly #timers = new Set<Timer>();
  #nowMs = 1_000;

  nowMs(): number {
    return this.#nowMs;
  }

  /** 2026-01-01, moved by as much as the clock. */
  wallMs(): number {
    return Date.UTC(2026, 0, 1) + this.#nowMs;
  }

  after(ms: number, task: () => void): Disposable {
    const timer = { dueMs: this.#nowMs + ms, task };
    this.#timers.add(timer);
    return {
      [Symbol.dispose]: () => {
        this.#timers.delete(timer);
      },
    };
  }

  get timers(): number {
    return this.#timers.size;
  }

  /** Until the next timer; undefined when there is none. */
  get nextInMs(): number | undefined {
    const next = this.#next();
    return next === undefined ? undefined : next.dueMs - this.#nowMs;
  }

  /** Moves on and runs what is due on the way, at its time, leaving turns for what it sets off. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    for (;;) {
      await settle();
      const next = this.#next();
      if (next === undefined || next.dueMs > endMs) break;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.task();
    }
    this.#nowMs = endMs;
    await settle();
  }

  #next(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (next === undefined || timer.dueMs < next.dueMs) next = timer;
    }
    return next;
  }
}

/** Lets promises and immediates that are under way finish. */
export async function settle(): Promise<void> {
  for (let turns = 0; turns < 3; turns += 1) await turn();
}
