// The embedded store: standalone sidecars, `scope: Pod`, and what several workers share through their parent.
import { TokenBuckets, type Reply } from '../limiter/token-bucket.ts';
import { BoundedBuckets, MAX_BUCKETS } from './bounded-buckets.ts';
import type { Clock } from './clock.ts';
import type { Store, StoreCall, StoreLane, StoreListener, StoreNode } from './store.ts';

export class MemoryStore implements Store, StoreLane {
  readonly partitions = 1;
  readonly node: StoreNode = { name: 'memory' };
  readonly synchronous = true;
  listener: StoreListener | undefined = undefined;
  readonly #buckets: BoundedBuckets;
  readonly #twin: TokenBuckets;
  readonly #clock: Clock;

  constructor(clock: Clock, most: number = MAX_BUCKETS) {
    this.#clock = clock;
    this.#buckets = new BoundedBuckets(most);
    this.#twin = new TokenBuckets(this.#buckets);
  }

  /** Buckets held, for metrics. */
  get size(): number {
    return this.#buckets.size;
  }

  laneOf(): StoreLane {
    return this;
  }

  decide(call: StoreCall): void {
    const reply: Reply = [];
    this.#twin.decide(call, this.#clock.nowUs(), reply);
    call.onReply(reply);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}
