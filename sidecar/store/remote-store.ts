import { WeirError } from '../../contract/errors.ts';
import type { Clock } from './clock.ts';
import type { Store } from './store.ts';

/** A store behind connections. */
export interface RemoteStore extends Store {
  /** Resolves once a server answers; rejects with WeirError STORE_UNREACHABLE when `signal` fires first. */
  connected(signal: AbortSignal): Promise<void>;
}

/** What every kind of remote store needs. */
export interface RemoteStoreContext {
  readonly script: string;
  readonly digest: string;
  readonly clock: Clock;
}

/** Lets callers wait for the first connection. */
export class Readiness {
  #isReady = false;
  #waiting: (() => void)[] = [];

  onReady(): void {
    this.#isReady = true;
    for (const resolve of this.#waiting) resolve();
    this.#waiting = [];
  }

  wait(signal: AbortSignal, reason: () => string): Promise<void> {
    if (this.#isReady) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const fail = (): void => {
        reject(new WeirError('STORE_UNREACHABLE', { reason: reason() }));
      };
      if (signal.aborted) {
        fail();
        return;
      }
      signal.addEventListener('abort', fail, { once: true });
      this.#waiting.push(() => {
        signal.removeEventListener('abort', fail);
        resolve();
      });
    });
  }
}
