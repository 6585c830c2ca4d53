import type { Clock } from '../clock.ts';

/** Rings once when nothing was heard for `limitMs`. One timer, moved on when it finds that something was. */
export class SilenceAlarm implements Disposable {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #ring: () => void;
  #timer: Disposable;
  #heardAtMs: number;
  #hasRung = false;

  constructor(clock: Clock, limitMs: number, ring: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#ring = ring;
    this.#heardAtMs = clock.nowMs();
    this.#timer = this.#arm(limitMs);
  }

  get hasRung(): boolean {
    return this.#hasRung;
  }

  heard(): void {
    this.#heardAtMs = this.#clock.nowMs();
  }

  [Symbol.dispose](): void {
    this.#timer[Symbol.dispose]();
  }

  #arm(ms: number): Disposable {
    return this.#clock.after(ms, () => {
      this.#look();
    });
  }

  #look(): void {
    const leftMs = this.#heardAtMs + this.#limitMs - this.#clock.nowMs();
    if (leftMs > 0) {
      this.#timer = this.#arm(leftMs);
      return;
    }
    this.#hasRung = true;
    this.#ring();
  }
}
