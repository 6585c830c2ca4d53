// The circuit breaker of one store node: after a few failures in a row the node is left alone, then one call
// probes it. An outage so costs one deadline per cycle, not one per request. Pure: clock and jitter come in.

export type BreakerState = 'closed' | 'half-open' | 'open';

/** A single lost reply is weather; this many in a row, without one answer between, is an outage. */
export const FAILURES_TO_OPEN = 5;
/** How long an open breaker rests: the upper half is jitter, so that a fleet does not probe in step. Below 1 s, because recovery must show within 2 s. */
export const MAX_REST_US = 800_000;

export class Breaker {
  #state: BreakerState = 'closed';
  #failures = 0;
  #probeAtUs = 0;
  readonly #random: () => number;

  /** `random` gives numbers in [0, 1). */
  constructor(random: () => number) {
    this.#random = random;
  }

  get state(): BreakerState {
    return this.#state;
  }

  /** Whether a call may be sent now. Half-open lets exactly one through; its caller must report how it ended. */
  tryEnter(nowUs: number): boolean {
    if (this.#state === 'closed') return true;
    if (this.#state === 'half-open' || nowUs < this.#probeAtUs) return false;
    this.#state = 'half-open';
    return true;
  }

  /** Whether a request should wait for a call at all: false while the node rests or is being probed. */
  admits(nowUs: number): boolean {
    return this.#state === 'closed' || (this.#state === 'open' && nowUs >= this.#probeAtUs);
  }

  onSuccess(): void {
    this.#state = 'closed';
    this.#failures = 0;
  }

  onFailure(nowUs: number): void {
    this.#failures += 1;
    if (this.#state === 'closed' && this.#failures < FAILURES_TO_OPEN) return;
    this.#state = 'open';
    this.#probeAtUs = nowUs + Math.round((MAX_REST_US * (1 + this.#random())) / 2);
  }

  /** A call ended without saying anything about the node: a probe has to be repeated. */
  onUnknown(nowUs: number): void {
    if (this.#state !== 'half-open') return;
    this.#state = 'open';
    this.#probeAtUs = nowUs;
  }

  /** The connection is back: the next call may probe at once. */
  onReconnect(nowUs: number): void {
    if (this.#state === 'open') this.#probeAtUs = nowUs;
  }
}
