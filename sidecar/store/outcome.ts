// What the limiter says about a request, and to whom.
import type { CompiledPolicy } from '../../contract/bundle.ts';
import type { Bucket } from '../limiter/bucket.ts';

/** Valid only during the call that hands it over, and there only until the limiter is called again. */
export type Outcome = Allowed | Denied | Unavailable;

export interface Allowed {
  readonly kind: 'allowed';
  /** The bucket with the lowest level for its capacity; undefined when no level is known. */
  readonly tightest: Bucket | undefined;
  /** Units left in it after this request; −1 = unknown. */
  readonly level: number;
  /** Decided without the store, by the policies' failure mode. */
  readonly degraded: boolean;
}

export interface Denied {
  readonly kind: 'denied';
  /** The bucket that is the last to be able to pay. */
  readonly refusedBy: Bucket;
  /** µs from now until a retry passes if nobody else takes tokens; −1 = never, the cost is above the capacity. */
  readonly waitUs: number;
  /** Units in it; −1 = unknown. */
  readonly level: number;
  readonly degraded: boolean;
}

export interface Unavailable {
  readonly kind: 'unavailable';
  /** The policy that fails closed. */
  readonly policy: CompiledPolicy;
}

/** A request that waits for an outcome. One object may ask again and again, but only once at a time. */
export interface LimitWaiter {
  /** Called exactly once per `acquire`, often before it returns, unless `cancel` came first. */
  onOutcome(outcome: Outcome): void;
  /** The limiter's mark while the request waits. Starts as undefined; its owner never writes it. */
  pending: PendingRequest | undefined;
}

/** Whatever holds a waiting request. */
export interface PendingRequest {
  /** Whether the store has been asked: then its answer charges or refuses, whoever still waits for it. */
  isAsked(waiter: LimitWaiter): boolean;
  cancel(waiter: LimitWaiter): void;
}

/** Who counts what a shadow rule would have done. */
export interface ShadowSink {
  /** `unknown`: the store gave no answer. Called once per `shadow`, never in a way that delays a request. */
  onShadow(verdict: 'allowed' | 'denied' | 'unknown'): void;
}

/** The limiter's one object per kind, overwritten for every outcome. */
export class AllowedOutcome implements Allowed {
  readonly kind = 'allowed';
  tightest: Bucket | undefined = undefined;
  level = -1;
  degraded = false;
}

export class DeniedOutcome implements Denied {
  readonly kind = 'denied';
  refusedBy: Bucket;
  waitUs = -1;
  level = -1;
  degraded = false;

  constructor(refusedBy: Bucket) {
    this.refusedBy = refusedBy;
  }
}
