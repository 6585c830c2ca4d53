// Keys that come in bursts: a thousand sidecars that take one push say so one after the other, and what follows from
// that is worked out once, not a thousand times.
import type { Clock } from '../clock.ts';

export interface GatheredKeysOptions {
  /** From the first key on. */
  readonly forMs: number;
  /** From one telling to the next, at least: while keys keep coming. */
  readonly apartMs: number;
  readonly clock: Clock;
  /** Each key once, in the order of their coming. */
  readonly onKeys: (keys: readonly string[]) => void;
}

export class GatheredKeys implements Disposable {
  readonly #options: GatheredKeysOptions;
  readonly #keys = new Set<string>();
  #timer: Disposable | undefined;
  #toldMs = -Infinity;

  constructor(options: GatheredKeysOptions) {
    this.#options = options;
  }

  add(keys: Iterable<string>): void {
    for (const key of keys) this.#keys.add(key);
    if (this.#timer !== undefined || this.#keys.size === 0) return;
    const { clock, forMs, apartMs } = this.#options;
    const waitMs = Math.max(forMs, this.#toldMs + apartMs - clock.nowMs());
    this.#timer = clock.after(waitMs, () => {
      this.#timer = undefined;
      this.#toldMs = clock.nowMs();
      const gathered = [...this.#keys];
      this.#keys.clear();
      this.#options.onKeys(gathered);
    });
  }

  /** What was gathered is dropped. */
  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
    this.#keys.clear();
  }
}
