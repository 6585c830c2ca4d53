import { Histogram } from '../counters/histogram.ts';
import type { Reply } from '../limiter/token-bucket.ts';
import { FAILURE_KINDS, type FailureKind } from './store.ts';

/** From a call on the same host to the longest deadline that can be set. */
const STORE_BOUNDS_SECONDS = [
  0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1,
];

/** What the limiter has done, in plain numbers that a scrape reads. */
export class LimiterCounters {
  /** Calls sent to a store, and decisions in them. */
  storeCalls = 0;
  decisions = 0;
  /** Requests that shared a decision with another one. */
  coalesced = 0;
  /** Requests refused without asking the store. */
  denyCacheHits = 0;
  /** Requests decided by a failure mode. */
  degraded = 0;
  /** Tokens may have been charged for these requests, or not: their call's answer never came. */
  chargeUnknown = 0;
  /** Answers that came after nobody waited for them any more. */
  lateReplies = 0;
  /** Keys that were decided under a newer limit than this sidecar's policy. */
  limitNewer = 0;
  /** Charges by response cost, and refunds between lanes, that were not done: queue full, store away, foreign value. */
  chargesLost = 0;
  /** Tokens taken ahead of requests; each is then used, refunded, lost, or held now. */
  leaseGranted = 0;
  leaseUsed = 0;
  /** Given back, and the store said so. */
  leaseRefunded = 0;
  /** The grant or the refund was not confirmed, or could not be sent. */
  leaseLost = 0;
  readonly errors: Record<FailureKind, number>;
  /** Per call, from sending it to its answer. */
  readonly storeSeconds: Histogram = new Histogram(STORE_BOUNDS_SECONDS);

  constructor() {
    this.errors = {
      timeout: 0,
      down: 0,
      oom: 0,
      readonly: 0,
      auth: 0,
      script: 0,
      busy: 0,
      foreign: 0,
      overload: 0,
    };
  }

  /** A refund or charge was not done, or nobody knows. `leased`: tokens of a lease it gave back, else 0. */
  countLost(leased: number): void {
    if (leased > 0) this.leaseLost += leased;
    else this.chargesLost += 1;
  }

  /** The store answered a call that begins with refunds and charges, `leased` as in `countLost` for each. */
  countReturned(leased: readonly number[], reply: Reply): void {
    for (let m = 0; m < leased.length; m += 1) {
      const tokens = leased[m] ?? 0;
      // −1 = a foreign value took the bucket's place.
      if (Number(reply[1 + 2 * m]) < 0) this.countLost(tokens);
      else this.leaseRefunded += tokens;
    }
  }

  /** All failures, over all kinds. */
  get failures(): number {
    return FAILURE_KINDS.reduce((sum, kind) => sum + this.errors[kind], 0);
  }
}
