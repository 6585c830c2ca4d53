// A bounded table of buckets. Only full buckets are ever evicted: a missing bucket counts as full, so evicting
// a drained one would give its tokens back. Keys that find no place share one overflow bucket per rule and
// bucket name, and go on sharing it until it is full again, because only then would their own be full too.
import type { BucketTable } from '../limiter/token-bucket.ts';
import { BucketState, bringToNow } from '../limiter/token-bucket.ts';
import { overflowKey } from '../limiter/bucket-key.ts';
import type { StoredLimit } from '../limiter/stored-limit.ts';

/**
 * About 200 bytes a bucket, key text included: 13 MB at the bound. A batch may exceed it by its own keys
 * (at most 128), because places are counted before they are taken.
 */
export const MAX_BUCKETS = 65_536;
/**
 * Below this many buckets nothing is swept: a bucket that refills within milliseconds would otherwise be made and
 * dropped with every request. 1 MB at most.
 */
export const SWEEP_FROM = 4_096;
/** How many buckets an insertion looks at for full ones. Two would keep pace with arrivals; more catch up after a burst. */
const SWEEP_STEP = 4;
/** How many are looked at before a key is sent to the overflow bucket. */
const SWEEP_WHEN_FULL = 64;

export class BoundedBuckets implements BucketTable {
  readonly #states = new Map<string, BucketState>();
  readonly #overflow = new Map<string, BucketState>();
  readonly #most: number;
  #hand: MapIterator<[string, BucketState]>;
  #probe: BucketState | undefined = undefined;
  /** The instant of the batch under way: a bucket is full now or it is not, whatever its stamp says. */
  #nowUs = 0;

  constructor(most: number = MAX_BUCKETS) {
    this.#most = most;
    this.#hand = this.#states.entries();
  }

  /** Buckets in the table, shared ones not counted. */
  get size(): number {
    return this.#states.size;
  }

  /** Buckets shared by keys without a place. */
  get overflowSize(): number {
    return this.#overflow.size;
  }

  open(key: string, limit: StoredLimit, nowUs: number): BucketState | undefined {
    this.#nowUs = nowUs;
    const state = this.#states.get(key);
    if (state !== undefined) return state;
    if (this.#overflow.size > 0) {
      const shared = this.#sharedStillInUse(key);
      if (shared !== undefined) return shared;
    }
    if (this.#states.size < this.#most) return undefined;
    this.#sweep(SWEEP_WHEN_FULL);
    if (this.#states.size < this.#most) return undefined;
    const shared = new BucketState(0, 0, limit);
    shared.reset(limit, nowUs);
    this.#overflow.set(overflowKey(key), shared);
    return shared;
  }

  insert(key: string, state: BucketState): void {
    state.isHeld = true;
    this.#states.set(key, state);
    if (this.#states.size > SWEEP_FROM) this.#sweep(SWEEP_STEP);
  }

  #sharedStillInUse(key: string): BucketState | undefined {
    const name = overflowKey(key);
    const shared = this.#overflow.get(name);
    if (shared === undefined) return undefined;
    if (shared.openedAs < 0 && this.#isFull(shared)) {
      this.#overflow.delete(name);
      return undefined;
    }
    return shared;
  }

  #sweep(count: number): void {
    for (let i = 0; i < count; i += 1) {
      const next = this.#hand.next();
      if (next.done === true) {
        this.#hand = this.#states.entries();
        return;
      }
      const [key, state] = next.value;
      if (state.openedAs >= 0 || !this.#isFull(state)) continue;
      state.isHeld = false;
      this.#states.delete(key);
    }
  }

  #isFull(state: BucketState): boolean {
    const probe = (this.#probe ??= new BucketState(0, 0, state.limit));
    probe.copy(state);
    bringToNow(probe, state.limit, this.#nowUs);
    return probe.level === probe.limit.full;
  }
}
