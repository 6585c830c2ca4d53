// Hot path, where leases are on. A hot group asks the store for a little more than waits for it; what is granted
// beyond that is its lease, handed out at once to whoever asks for the same next. Tokens are debited in the store
// before they are handed out, so nothing is ever admitted in excess; what is left when a lease ends goes back. A
// refund that may have been lost is not sent again.
import type { Ask } from './ask.ts';
import type { Clock, ScheduledTask, Scheduler } from './clock.ts';
import type { Group } from './group.ts';
import type { GroupTable } from './group-table.ts';
import type { LimiterCounters } from './limiter-counters.ts';
import type { LimitWaiter } from './outcome.ts';
import type { Settlement } from './settlement.ts';

/**
 * How long tokens are held. Another sidecar's client may be refused meanwhile: no longer than a request may wait
 * for the store by default.
 */
export const LEASE_US = 50_000;
/**
 * Requests on one call that make a group hot. At 1 000 a second and 0.3 ms a call four come together once in
 * 4 000 calls; 13 000 a second do so always.
 */
export const HOT_REQUESTS = 4;
/** Groups that may hold one at once: more than 1 000 hot keys are not few, and coalescing serves them. */
export const MAX_LEASES = 1_024;
/** What is held of a bucket at most: this share of its capacity, and what it earns in a lease's life. */
const CAPACITY_SHARE = 100;
/** A hundredth of the largest capacity a policy can have. */
const MAX_PREFETCH = 1_000_000;

export interface LeaseOwner {
  /** Gives the tokens of `times` requests back to the store. */
  giveBack(group: Group, times: number): void;
}

export interface LeasesOptions {
  readonly owner: LeaseOwner;
  readonly groups: GroupTable;
  readonly settlement: Settlement;
  readonly counters: LimiterCounters;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
}

export class Leases {
  readonly #options: LeasesOptions;
  /** Groups with a lease, or one used up or asked for, in the order in which their time is over. */
  readonly #kept = new Set<Group>();
  #task: ScheduledTask | undefined = undefined;
  #isClosed = false;
  readonly #ring = (): void => {
    this.#task = undefined;
    this.#expire(this.#options.clock.nowUs());
  };

  constructor(options: LeasesOptions) {
    this.#options = options;
  }

  /** Serves a request from what its group holds; false when the store has to be asked. */
  serve(ask: Ask, waiter: LimitWaiter): boolean {
    if (this.#kept.size === 0) return false;
    const group = this.#options.groups.find(ask);
    if (group === undefined || group.held === 0) return false;
    if (group.flight !== undefined) {
      // The answer is being handed out: behind those who came before, if it reaches that far.
      if (group.waiting.length >= group.held) return false;
      group.join(waiter, ask.sinceUs);
      return true;
    }
    if (ask.sinceUs >= group.heldUntilUs || !group.isUnderSameLimits()) {
      this.#release(group);
      return false;
    }
    this.#spend(group, waiter, ask.sinceUs);
    return true;
  }

  /** Decides for groups about to be asked for how many requests each takes ahead. */
  prepare(groups: readonly Group[], nowUs: number): void {
    for (const group of groups) {
      if (!this.#isHot(group) || this.#isLeasedElsewhere(group)) continue;
      group.prefetch = prefetchOf(group);
      if (group.prefetch > 0) this.#keep(group, nowUs);
    }
  }

  /** The store granted `surplus` requests more than were on the call. Before anybody hears of it. */
  begin(group: Group, surplus: number, nowUs: number): void {
    group.held = surplus;
    group.noteLimits();
    this.#options.counters.leaseGranted += surplus * group.tokens;
    this.#keep(group, nowUs);
  }

  /** Those who came while the call was under way go first; what then is left is the lease. */
  handOut(group: Group, nowUs: number): void {
    while (group.held > 0) {
      const waiter = group.takeWaiting();
      if (waiter === undefined) break;
      this.#spend(group, waiter, nowUs);
    }
    if (!group.mayLease) this.#dissolve(group);
  }

  /** The group's call ended and nobody knows how: what it asked for ahead may be gone. */
  doubt(group: Group): void {
    const tokens = group.prefetch * group.tokens;
    group.prefetch = 0;
    this.#options.counters.leaseGranted += tokens;
    this.#options.counters.leaseLost += tokens;
  }

  /** Gives everything back: other policies are in force. Groups of now hold nothing any more. */
  end(): void {
    for (const group of this.#options.groups.all()) group.mayLease = false;
    for (const group of [...this.#kept]) if (group.flight === undefined) this.#release(group);
  }

  /** Gives everything back, and no lease begins any more. */
  close(): void {
    this.#isClosed = true;
    this.end();
    this.#task?.cancel();
    this.#task = undefined;
  }

  #isHot(group: Group): boolean {
    // Nobody waits any more when all have given up since the group became ready.
    if (group.waiting.length === 0) return false;
    if (group.shadow || !group.mayLease || this.#isClosed) return false;
    // A lease used up before its time was over.
    if (group.isKept) return true;
    return group.waiting.length >= HOT_REQUESTS && this.#kept.size < MAX_LEASES;
  }

  /** One lease per bucket: clients that vary their costs would park a hundredth of it for each. */
  #isLeasedElsewhere(group: Group): boolean {
    return group.buckets.some(({ lease }) => lease !== undefined && lease !== group);
  }

  #spend(group: Group, waiter: LimitWaiter, nowUs: number): void {
    const { settlement, counters } = this.#options;
    group.held -= 1;
    counters.leaseUsed += group.tokens;
    settlement.warm(group, 1, nowUs);
    waiter.onOutcome(settlement.allowedFrom(group, group.held));
  }

  #keep(group: Group, nowUs: number): void {
    group.heldUntilUs = nowUs + LEASE_US;
    group.isKept = true;
    for (const keyed of group.buckets) keyed.lease = group;
    // Moved to the end: the first one is always the next to be over.
    this.#kept.delete(group);
    this.#kept.add(group);
    if (this.#task === undefined && !this.#isClosed) this.#arm(nowUs);
  }

  #arm(nowUs: number): void {
    const [first] = this.#kept;
    if (first === undefined) return;
    const ms = Math.ceil((first.heldUntilUs - nowUs) / 1_000);
    this.#task = this.#options.scheduler.after(Math.max(1, ms), this.#ring);
  }

  #expire(nowUs: number): void {
    for (const group of [...this.#kept]) {
      if (group.heldUntilUs > nowUs) break;
      // Its call may still bring a lease; the call's own deadline bounds that.
      if (group.flight === undefined) this.#release(group);
      else this.#keep(group, nowUs);
    }
    if (this.#task === undefined) this.#arm(nowUs);
  }

  #release(group: Group): void {
    this.#dissolve(group);
    if (group.waiting.length === 0 && !group.isReady) this.#options.groups.close(group);
  }

  #dissolve(group: Group): void {
    const { held } = group;
    group.held = 0;
    group.isKept = false;
    this.#kept.delete(group);
    for (const keyed of group.buckets) keyed.lease = undefined;
    if (held > 0) this.#options.owner.giveBack(group, held);
  }
}

/** Whole requests that every bucket of the group can spare. */
function prefetchOf(group: Group): number {
  let most = MAX_PREFETCH;
  for (let i = 0; i < group.buckets.length; i += 1) {
    const stored = group.buckets[i]?.bucket.stored;
    if (stored === undefined) continue;
    const share = stored.capacity / CAPACITY_SHARE;
    const earned = (LEASE_US * stored.unitsPerTick) / (stored.tickUs * stored.unitsPerToken);
    most = Math.min(most, Math.floor(Math.min(share, earned) / (group.costs[i] ?? Infinity)));
  }
  return most;
}
