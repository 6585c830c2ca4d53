// Hot path. Turns what the store said, or that it said nothing, into the outcome of every request of a group.
// Each decision is complete before the first request hears of it: a request may call the limiter again at once.
import type { CompiledPolicy } from '../../contract/bundle.ts';
import type { Bucket, KeyedBucket } from '../limiter/bucket.ts';
import { clear } from '../limiter/element.ts';
import type { Group } from './group.ts';
import type { LocalShares } from './local-shares.ts';
import { AllowedOutcome, DeniedOutcome, type LimitWaiter, type Unavailable } from './outcome.ts';

export class Settlement {
  readonly #shares: LocalShares;
  readonly #allowed = new AllowedOutcome();
  #denied: DeniedOutcome | undefined = undefined;
  /** Positions in the failing group of the buckets that have a local share. */
  readonly #local: number[] = [];

  constructor(shares: LocalShares) {
    this.#shares = shares;
  }

  /** Lets a request pass about which no level is known. */
  allow(waiter: LimitWaiter, degraded: boolean): void {
    this.#allowed.tightest = undefined;
    this.#allowed.level = -1;
    this.#allowed.degraded = degraded;
    waiter.onOutcome(this.#allowed);
  }

  deny(waiter: LimitWaiter, refusedBy: Bucket, waitUs: number, level: number): void {
    waiter.onOutcome(this.#refusal(refusedBy, waitUs, level, false));
  }

  /** Hands out a grant: the first `granted` requests pass, the others are refused. `group.levels` is after it. */
  grant(group: Group, granted: number, waitUs: number): void {
    const { length } = group.flying;
    const refusing = granted < length ? slowest(group) : undefined;
    for (let i = 0; i < length; i += 1) {
      const waiter = group.take(i);
      if (waiter === undefined) continue;
      if (i < granted) {
        waiter.onOutcome(this.allowedFrom(group, granted - 1 - i));
      } else if (refusing !== undefined) {
        const level = group.levels[refusing.at] ?? -1;
        this.deny(waiter, refusing.keyed.bucket, waitUs, level);
      }
    }
  }

  /** For a request of a grant with `behind` others after it, by `group.levels`. */
  allowedFrom(group: Group, behind: number): AllowedOutcome {
    const allowed = this.#allowed;
    allowed.degraded = false;
    allowed.tightest = undefined;
    allowed.level = -1;
    let least = Infinity;
    for (let i = 0; i < group.buckets.length; i += 1) {
      const bucket = group.buckets[i]?.bucket;
      if (bucket === undefined) continue;
      // Those behind in the same grant have not passed yet when this request does.
      const ahead = behind * (group.costs[i] ?? 0) * bucket.stored.unitsPerToken;
      const level = (group.levels[i] ?? 0) + ahead;
      const share = level / bucket.stored.full;
      if (share < least) {
        least = share;
        allowed.tightest = bucket;
        allowed.level = level;
      }
    }
    return allowed;
  }

  /** Charges the pod's own buckets with what the store granted, so that they are warm when it goes away. */
  warm(group: Group, granted: number, nowUs: number): void {
    for (let i = 0; i < group.buckets.length; i += 1) {
      const keyed = group.buckets[i];
      if (keyed?.origin.local === undefined) continue;
      this.#shares.charge(keyed, granted * (group.costs[i] ?? 0), nowUs);
    }
  }

  /** Charges the pod's own buckets with a response's cost. */
  warmBuckets(buckets: readonly KeyedBucket[], tokens: number, nowUs: number): void {
    for (const keyed of buckets) this.#shares.charge(keyed, tokens, nowUs);
  }

  /**
   * The store gave no answer for the first `count` requests on the call: Closed anywhere answers 503, else all
   * Local buckets have to pay, else they pass. A shadow decision is unknown.
   */
  fail(group: Group, count: number, nowUs: number): void {
    const refusing = this.#refusingPolicy(group);
    if (refusing !== undefined) {
      this.#failClosed(group, count, refusing);
    } else if (this.#local.length > 0) {
      this.#failLocally(group, count, nowUs);
    } else {
      for (let i = 0; i < count; i += 1) {
        const waiter = group.take(i);
        if (waiter !== undefined) this.allow(waiter, true);
      }
    }
  }

  /** A policy that answers 503, if any; otherwise the local shares have been opened for a decision. */
  #refusingPolicy(group: Group): CompiledPolicy | undefined {
    for (const { tier } of group.parts) {
      if (group.shadow || tier.policy.failureMode === 'Closed') return tier.policy;
    }
    this.#shares.begin();
    clear(this.#local);
    for (let i = 0; i < group.buckets.length; i += 1) {
      const keyed = group.buckets[i];
      if (keyed?.origin.local === undefined) continue;
      // A cost above the share could never be paid here: as if the policy were Closed.
      if (!this.#shares.add(keyed, group.costs[i] ?? 0)) return keyed.bucket.policy;
      this.#local.push(i);
    }
    return undefined;
  }

  #failClosed(group: Group, count: number, policy: CompiledPolicy): void {
    const outcome: Unavailable = { kind: 'unavailable', policy };
    for (let i = 0; i < count; i += 1) group.take(i)?.onOutcome(outcome);
  }

  #failLocally(group: Group, count: number, nowUs: number): void {
    const granted = this.#shares.decide(group.countLive(count), nowUs);
    const { waitUs } = this.#shares;
    const refusing = this.#slowestShare(group);
    let heard = 0;
    for (let i = 0; i < count; i += 1) {
      const waiter = group.take(i);
      if (waiter === undefined) continue;
      heard += 1;
      if (heard <= granted || refusing === undefined) {
        this.allow(waiter, true);
      } else {
        waiter.onOutcome(this.#refusal(refusing.bucket, waitUs, -1, true));
      }
    }
  }

  /** Of the local shares just decided, the one that is the last to be able to pay. */
  #slowestShare(group: Group): KeyedBucket | undefined {
    let longest = -Infinity;
    let found: KeyedBucket | undefined = undefined;
    for (let n = 0; n < this.#local.length; n += 1) {
      const i = this.#local[n] ?? 0;
      const keyed = group.buckets[i];
      const limit = keyed?.origin.local;
      if (limit === undefined) continue;
      const need = (group.costs[i] ?? 0) * limit.unitsPerToken - this.#shares.levelOf(n);
      const us = (need / limit.unitsPerTick) * limit.tickUs;
      if (us > longest) {
        longest = us;
        found = keyed;
      }
    }
    return found;
  }

  #refusal(refusedBy: Bucket, waitUs: number, level: number, degraded: boolean): DeniedOutcome {
    const denied = (this.#denied ??= new DeniedOutcome(refusedBy));
    denied.refusedBy = refusedBy;
    denied.waitUs = waitUs;
    denied.level = level;
    denied.degraded = degraded;
    return denied;
  }
}

/** A group's bucket that is the last to be able to pay. */
export interface SlowestBucket {
  readonly keyed: KeyedBucket;
  /** Position in the group. */
  readonly at: number;
  /** µs its level lacks, in whole ticks; Infinity when it never can pay. */
  readonly lackUs: number;
}

/** By `group.levels`, which have to be set. */
export function slowest(group: Group): SlowestBucket | undefined {
  let found: SlowestBucket | undefined = undefined;
  let longest = -Infinity;
  for (let at = 0; at < group.buckets.length; at += 1) {
    const keyed = group.buckets[at];
    if (keyed === undefined) continue;
    const { capacity, unitsPerToken, unitsPerTick, tickUs } = keyed.bucket.stored;
    const cost = group.costs[at] ?? 0;
    const need = cost * unitsPerToken - (group.levels[at] ?? 0);
    const lackUs = cost > capacity ? Infinity : Math.ceil(need / unitsPerTick) * tickUs;
    if (lackUs > longest) {
      longest = lackUs;
      found = { keyed, at, lackUs };
    }
  }
  return found;
}
