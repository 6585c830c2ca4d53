import { Histogram } from '../counters/histogram.ts';
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
  /** Charges by response cost that were dropped because the queue was full or the store away. */
  chargesLost = 0;
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

  /** All failures, over all kinds. */
  get failures(): number {
    return FAILURE_KINDS.reduce((sum, kind) => sum + this.errors[kind], 0);
  }
}
