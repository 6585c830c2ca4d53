// The parent's side of the embedded store: what all workers of one pod share.
import type { StoredLimit } from '../limiter/stored-limit.ts';
import { parseStoredLimit } from '../limiter/stored-limit.ts';
import type { Reply } from '../limiter/token-bucket.ts';
import { systemClock } from '../store/clock.ts';
import { MemoryStore } from '../store/memory-store.ts';
import type { FailureKind, StoreCall } from '../store/store.ts';
import type { FromWorker, StoreName, ToWorker } from './message.ts';

type Decide = Extract<FromWorker, { kind: 'decide' }>;

/** Limits are few and repeat; a policy edited for years would still not reach this. */
const MOST_LIMITS = 4_096;

export class WorkerStores {
  readonly #stores: Readonly<Record<StoreName, MemoryStore>> = {
    shared: new MemoryStore(systemClock),
    pod: new MemoryStore(systemClock),
  };
  readonly #limits = new Map<string, StoredLimit>();

  /** Answers at once: the store is this process' memory. */
  decide(message: Decide, answer: (message: ToWorker) => void): void {
    const { id } = message;
    const call: StoreCall = {
      keys: message.keys,
      limits: message.limits.map((text) => this.#limit(text)),
      operations: message.operations,
      settled: false,
      onReply: (reply: Reply) => {
        answer({ kind: 'decided', id, reply });
      },
      onFailure: (failure: FailureKind, detail: string) => {
        answer({ kind: 'undecided', id, failure, detail });
      },
    };
    this.#stores[message.store].decide(call);
  }

  #limit(text: string): StoredLimit {
    const known = this.#limits.get(text);
    if (known !== undefined) return known;
    if (this.#limits.size >= MOST_LIMITS) this.#limits.clear();
    const limit = parseStoredLimit(text);
    this.#limits.set(text, limit);
    return limit;
  }
}
