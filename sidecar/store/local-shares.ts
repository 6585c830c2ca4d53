// Hot path. The pod's own buckets behind `failureMode: Local`. They are charged along with every admission by
// the store, so that they are as drained as the shared ones when the store goes away: a fresh bucket per
// outage would admit a capacity per outage.
import type { KeyedBucket } from '../limiter/bucket.ts';
import { clear } from '../limiter/element.ts';
import {
  ACQUIRE,
  BucketState,
  TokenBuckets,
  bringToNow,
  type Reply,
} from '../limiter/token-bucket.ts';
import type { StoredLimit } from '../limiter/stored-limit.ts';
import { BoundedBuckets } from './bounded-buckets.ts';

export class LocalShares {
  readonly #table: BoundedBuckets;
  readonly #twin: TokenBuckets;
  readonly #keys: string[] = [];
  readonly #limits: StoredLimit[] = [];
  readonly #operations: number[] = [];
  readonly #reply: Reply = [];

  constructor(most?: number) {
    this.#table = new BoundedBuckets(most);
    this.#twin = new TokenBuckets(this.#table);
  }

  /** Takes what the store granted, down to zero, never refusing. `tokens` ≥ 0. */
  charge(keyed: KeyedBucket, tokens: number, nowUs: number): void {
    const limit = keyed.origin.local;
    if (limit === undefined) return;
    const known = this.#shareOf(keyed, limit, nowUs);
    const units = tokens * limit.unitsPerToken;
    if (known === undefined) {
      const state = new BucketState(0, 0, limit);
      state.reset(limit, nowUs);
      state.level = Math.max(0, state.level - units);
      this.#table.insert(keyed.key, state);
      keyed.share = state;
      return;
    }
    bringToNow(known, limit, nowUs);
    known.level = Math.max(0, known.level - tokens * known.limit.unitsPerToken);
  }

  /** Without a lookup for who was here before: the table is large, and cold with many keys. */
  #shareOf(keyed: KeyedBucket, limit: StoredLimit, nowUs: number): BucketState | undefined {
    const { share } = keyed;
    if (share?.isHeld === true) return share;
    const known = this.#table.open(keyed.key, limit, nowUs);
    keyed.share = known;
    return known;
  }

  /** Starts a decision over several buckets. */
  begin(): void {
    clear(this.#keys);
    clear(this.#limits);
    clear(this.#operations);
  }

  /** Adds a bucket whose policy has the failure mode Local. False when `weight` can never be paid here. */
  add(keyed: KeyedBucket, weight: number): boolean {
    const limit = keyed.origin.local;
    if (limit === undefined || weight > limit.capacity) return false;
    this.#keys.push(keyed.key);
    this.#limits.push(limit);
    this.#operations.push(this.#keys.length, weight);
    return true;
  }

  /** Decides for `want` requests over the buckets added. Returns how many are admitted. */
  decide(want: number, nowUs: number): number {
    this.#operations.unshift(ACQUIRE, want, 0, this.#keys.length);
    const batch = { keys: this.#keys, limits: this.#limits, operations: this.#operations };
    this.#twin.decide(batch, nowUs, this.#reply);
    return Number(this.#reply[1]);
  }

  /** µs until the next request passes, after `decide` refused some. */
  get waitUs(): number {
    return Number(this.#reply[2]);
  }

  /** Units in the `i`-th bucket added (from 0) after `decide`. */
  levelOf(i: number): number {
    return Number(this.#reply[3 + i]);
  }
}
