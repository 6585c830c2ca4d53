// Lets a few new connections shake hands at a time. A thousand sidecars that lost one operator come to the next one
// together; if all of their handshakes were done in one turn of the event loop, nothing else would be for seconds where
// processor time is short: no renewal of the Lease, no answer to the webhook, no ping.
import type { Clock } from '../clock.ts';

/** About 50 ms of work in one turn; a storm is through no later for it. */
export const HANDSHAKES_AT_ONCE = 16;
/** Who takes longer to answer holds nobody else up; its own handshake goes on. */
export const PLACE_FOR_MS = 1_000;

/** Connections are named by whoever uses it. */
export class HandshakeLine {
  readonly #clock: Pick<Clock, 'after'>;
  /** Timers of those whose handshake is under way. */
  readonly #busy = new Map<string, Disposable>();
  readonly #waiting = new Map<string, () => void>();

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock;
  }

  /** Calls `begin` now or when it is the connection's turn. */
  add(connection: string, begin: () => void): void {
    this.#waiting.set(connection, begin);
    this.#fill();
  }

  /** The handshake is done, or the connection has gone. */
  leave(connection: string): void {
    this.#waiting.delete(connection);
    this.#busy.get(connection)?.[Symbol.dispose]();
    this.#busy.delete(connection);
    this.#fill();
  }

  /** Those whose turn has not come. */
  get waiting(): number {
    return this.#waiting.size;
  }

  #fill(): void {
    for (const [connection, begin] of this.#waiting) {
      if (this.#busy.size >= HANDSHAKES_AT_ONCE) return;
      this.#waiting.delete(connection);
      const timer = this.#clock.after(PLACE_FOR_MS, () => {
        this.leave(connection);
      });
      this.#busy.set(connection, timer);
      begin();
    }
  }
}
