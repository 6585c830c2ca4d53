// Hot path. Requests that ask for the same: the same buckets at the same cost. One call is under way for a
// group; who arrives meanwhile waits for the next, which asks for all of them at once. No timer, no minimum:
// an idle group's first request goes out in its own turn.
import type { Bucket, KeyedBucket, KeyedBuckets } from '../limiter/bucket.ts';
import { clear } from '../limiter/element.ts';
import type { Call } from './call.ts';
import type { Ask } from './ask.ts';
import type { Lane } from './lane.ts';
import type { LimitWaiter, PendingRequest } from './outcome.ts';

/** Counts requests that wait anywhere in a limiter; it bounds them. */
export interface PendingCount {
  pending: number;
}

export class Group implements PendingRequest {
  hash = 0;
  lane: Lane | undefined = undefined;
  shadow = false;
  readonly parts: KeyedBuckets[] = [];
  readonly weights: number[] = [];
  /** The buckets of all parts with the tokens a request takes from each. */
  readonly buckets: KeyedBucket[] = [];
  readonly costs: number[] = [];
  /** Requests that wait for the next call, in order, and when each came. */
  waiting: (LimitWaiter | undefined)[] = [];
  waitingSince: number[] = [];
  /** Requests of the call under way; a cancelled or expired one leaves a hole that keeps its tokens. */
  flying: (LimitWaiter | undefined)[] = [];
  flyingSince: number[] = [];
  /** Per bucket, in units, after the decision just answered. */
  readonly levels: number[] = [];
  /** The call under way. */
  flight: Call | undefined = undefined;
  /** Requests asked for beyond those on the call under way. */
  prefetch = 0;
  /** Requests paid for that nobody has made yet: the group's lease. While it lasts nobody waits, save during a call's end. */
  held = 0;
  heldUntilUs = 0;
  /** False once other policies are in force. */
  mayLease = true;
  /** Stays although it is idle, because of its lease. */
  isKept = false;
  /** Can be found by its hash. */
  isRegistered = false;
  /** Stands in its lane's queue. */
  isReady = false;
  /** The next group with the same hash. */
  next: Group | undefined = undefined;
  /** What each bucket was when the lease was granted. */
  readonly #limits: Bucket[] = [];
  readonly #count: PendingCount;

  constructor(count: PendingCount) {
    this.#count = count;
  }

  /** Takes up what a request asks for; the arrays are its scratch and are copied. */
  open(lane: Lane, ask: Ask): void {
    this.lane = lane;
    this.shadow = ask.shadow;
    for (let i = 0; i < ask.count; i += 1) {
      const part = ask.parts[i];
      const weight = ask.weights[i];
      if (part === undefined || weight === undefined)
        throw new RangeError('a part without a weight');
      this.parts.push(part);
      this.weights.push(weight);
      for (const bucket of part.buckets) {
        this.buckets.push(bucket);
        this.costs.push(weight);
      }
    }
  }

  asks(ask: Ask): boolean {
    if (this.shadow !== ask.shadow || this.parts.length !== ask.count) return false;
    for (let i = 0; i < ask.count; i += 1) {
      if (this.parts[i] !== ask.parts[i] || this.weights[i] !== ask.weights[i]) return false;
    }
    return true;
  }

  /** What a request takes from all buckets together. */
  get tokens(): number {
    return this.costs.reduce((sum, cost) => sum + cost, 0);
  }

  noteLimits(): void {
    clear(this.#limits);
    for (const { bucket } of this.buckets) this.#limits.push(bucket);
  }

  /** False when the store has named another limit for a bucket since the lease was granted. */
  isUnderSameLimits(): boolean {
    return this.buckets.every(({ bucket }, i) => bucket === this.#limits[i]);
  }

  /** When the first request that still waits came; Infinity when nobody does. */
  oldestUs(): number {
    for (let i = 0; i < this.flying.length; i += 1) {
      if (this.flying[i] !== undefined) return this.flyingSince[i] ?? Infinity;
    }
    return this.waitingSince[0] ?? Infinity;
  }

  /** `sinceUs` is when the request came: the queue stays ordered by it, also for one that was asked elsewhere first. */
  join(waiter: LimitWaiter, sinceUs: number): void {
    waiter.pending = this;
    this.#count.pending += 1;
    let at = this.waiting.length;
    while (at > 0 && (this.waitingSince[at - 1] ?? 0) > sinceUs) at -= 1;
    if (at === this.waiting.length) {
      this.waiting.push(waiter);
      this.waitingSince.push(sinceUs);
      return;
    }
    this.waiting.splice(at, 0, waiter);
    this.waitingSince.splice(at, 0, sinceUs);
  }

  /** How many of the first `count` on the call still wait. */
  countLive(count: number): number {
    let live = 0;
    for (let i = 0; i < count; i += 1) if (this.flying[i] !== undefined) live += 1;
    return live;
  }

  /** Everybody who waits is on `call`, or leaves without one. Returns how many. */
  depart(call: Call | undefined): number {
    const { flying, flyingSince } = this;
    this.flying = this.waiting;
    this.flyingSince = this.waitingSince;
    this.waiting = flying;
    this.waitingSince = flyingSince;
    this.flight = call;
    return this.flying.length;
  }

  /** The first `count` who wait leave without a call: their deadline has passed. Only while none is under way. */
  departFirst(count: number): void {
    this.flying.push(...this.waiting.splice(0, count));
    this.flyingSince.push(...this.waitingSince.splice(0, count));
  }

  /** Takes the `i`-th request of the call out; undefined when it was cancelled or has expired. */
  take(i: number): LimitWaiter | undefined {
    const waiter = this.flying[i];
    if (waiter === undefined) return undefined;
    this.flying[i] = undefined;
    waiter.pending = undefined;
    this.#count.pending -= 1;
    return waiter;
  }

  /** Takes the first request out that waits for the next call. */
  takeWaiting(): LimitWaiter | undefined {
    const waiter = this.waiting.shift();
    if (waiter === undefined) return undefined;
    this.waitingSince.shift();
    waiter.pending = undefined;
    this.#count.pending -= 1;
    return waiter;
  }

  /** The call is over for this group. */
  land(): void {
    this.prefetch = 0;
    clear(this.flying);
    clear(this.flyingSince);
    this.flight = undefined;
  }

  isAsked(waiter: LimitWaiter): boolean {
    return this.flying.includes(waiter);
  }

  cancel(waiter: LimitWaiter): void {
    const inFlight = this.flying.indexOf(waiter);
    if (inFlight >= 0) {
      this.take(inFlight);
      return;
    }
    const at = this.waiting.indexOf(waiter);
    if (at < 0) return;
    this.waiting.splice(at, 1);
    this.waitingSince.splice(at, 1);
    waiter.pending = undefined;
    this.#count.pending -= 1;
  }

  /** Back to what a new group is. */
  close(): void {
    this.lane = undefined;
    this.shadow = false;
    clear(this.parts);
    clear(this.weights);
    clear(this.buckets);
    clear(this.costs);
    this.mayLease = true;
    this.isRegistered = false;
    this.next = undefined;
  }
}
