// Hot path. Brings requests to the store and answers back: groups what asks for the same, fills calls at the end
// of a turn of the event loop, keeps deadlines and circuit breakers. Every request that enters leaves exactly
// once: by an answer, by a failure mode at its deadline, or because it was cancelled.
import type { BreakerState } from '../limiter/breaker.ts';
import { clear } from '../limiter/element.ts';
import { REFUND, type Reply } from '../limiter/token-bucket.ts';
import type { Ask } from './ask.ts';
import { Alarm, type AlarmOwner } from './alarm.ts';
import { Call, type CallOwner } from './call.ts';
import type { Clock, Scheduler } from './clock.ts';
import type { Group, PendingCount } from './group.ts';
import { GroupTable } from './group-table.ts';
import { Lane, MAX_MAINTENANCE, type Maintenance } from './lane.ts';
import { Leases, type LeaseOwner } from './leases.ts';
import type { LimiterCounters } from './limiter-counters.ts';
import { NodeBreakers, type BreakerTransition } from './node-breakers.ts';
import type { LimitWaiter } from './outcome.ts';
import { slowest, type Settlement } from './settlement.ts';
import type { FailureKind, StoreLane, StoreListener, StoreNode } from './store.ts';

/** Calls kept for reuse: what a busy turn needs; beyond it the garbage collector may have them. */
const MAX_SPARE_CALLS = 512;

export interface DispatcherOptions {
  readonly settlement: Settlement;
  readonly counters: LimiterCounters;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  /** Numbers in [0, 1), for the breaker's jitter. */
  readonly random: () => number;
  readonly deadlineUs: number;
  /** Requests that may wait at once. */
  readonly maxPending: number;
  readonly lease: boolean;
  readonly onTransition: (event: BreakerTransition) => void;
}

export class Dispatcher implements CallOwner, StoreListener, PendingCount, AlarmOwner, LeaseOwner {
  pending = 0;
  /** Ends with every reconnect: levels known before it refuse nobody any more. */
  period = 1;
  readonly leases: Leases | undefined;
  readonly #settlement: Settlement;
  readonly #counters: LimiterCounters;
  readonly #clock: Clock;
  readonly #scheduler: Scheduler;
  readonly #options: DispatcherOptions;
  readonly alarm: Alarm;
  readonly #lanes = new Map<StoreLane, Lane>();
  readonly #breakers: NodeBreakers;
  readonly #groups: GroupTable = new GroupTable(this);
  readonly #calls = new Set<Call>();
  #toFlush: Lane[] = [];
  #flushing: Lane[] = [];
  readonly #spareCalls: Call[] = [];
  /** Somebody waits until nothing is under way. */
  #onQuiet: (() => void) | undefined = undefined;
  readonly #flushAll = (): void => {
    const lanes = this.#toFlush;
    this.#toFlush = this.#flushing;
    this.#flushing = lanes;
    for (const lane of lanes) {
      lane.isScheduled = false;
      this.#flush(lane);
    }
    clear(lanes);
    this.#noteQuiet();
  };

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#settlement = options.settlement;
    this.#counters = options.counters;
    this.#clock = options.clock;
    this.#scheduler = options.scheduler;
    this.#breakers = new NodeBreakers(options, this);
    this.alarm = new Alarm(this, options.deadlineUs, options.clock, options.scheduler);
    const groups = this.#groups;
    this.leases = options.lease ? new Leases({ ...options, owner: this, groups }) : undefined;
  }

  laneFor(route: StoreLane): Lane {
    let lane = this.#lanes.get(route);
    if (lane === undefined) {
      lane = new Lane(route, this.#breakers.of);
      this.#lanes.set(route, lane);
    }
    return lane;
  }

  /** The store of all lanes but `kept` was replaced. */
  retireLanes(kept: StoreLane): void {
    for (const [route, lane] of this.#lanes) {
      if (route === kept) continue;
      lane.isRetired = true;
      this.#lanes.delete(route);
      this.#breakers.forget(lane.node);
    }
    this.period += 1;
  }

  /** The states of all nodes' breakers, for metrics. */
  breakerStates(): { readonly node: string; readonly state: BreakerState }[] {
    return this.#breakers.states();
  }

  /** Decides one request in one lane: at once when nothing has to be asked, else when the answer comes. */
  request(lane: Lane, ask: Ask, waiter: LimitWaiter): void {
    if (lane.route.synchronous) {
      this.#decideNow(lane, ask, waiter);
      return;
    }
    if (this.pending >= this.#options.maxPending) {
      this.#counters.errors.overload += 1;
      this.#refuseToAsk(lane, ask, waiter);
      return;
    }
    if (!lane.breaker.admits(ask.sinceUs)) {
      this.#refuseToAsk(lane, ask, waiter);
      return;
    }
    const group = this.#groups.join(lane, ask);
    group.join(waiter, ask.sinceUs);
    if (group.flight === undefined && !group.isReady) this.#makeReady(group, lane);
    this.alarm.arm(ask.sinceUs);
  }

  /** Refunds or charges in the background. Lost, and counted, when the queue is full or the store away. */
  maintain(lane: Lane, work: Maintenance): void {
    const nowUs = this.#clock.nowUs();
    if (lane.route.synchronous) {
      const call = this.#takeCall(lane);
      call.addMaintenance(work);
      this.#send(call, lane, nowUs);
      return;
    }
    if (lane.maintenance.length >= MAX_MAINTENANCE || !lane.breaker.admits(nowUs)) {
      this.#counters.countLost(work.leased);
      return;
    }
    lane.maintenance.push(work);
    this.#schedule(lane);
  }

  giveBack(group: Group, times: number): void {
    const { lane, parts, weights } = group;
    if (lane === undefined) return;
    for (let i = 0; i < parts.length; i += 1) {
      const buckets = parts[i]?.buckets ?? [];
      const weight = times * (weights[i] ?? 0);
      for (const keyed of buckets) keyed.forget();
      this.maintain(lane, { operation: REFUND, buckets, weight, leased: weight * buckets.length });
    }
  }

  onReply(call: Call, reply: Reply): void {
    const { breaker } = call;
    if (call.settled || breaker === undefined) {
      this.#counters.lateReplies += 1;
      return;
    }
    if (reply.length < call.levelsAt + call.keys.length) {
      this.onFailure(call, 'script', `a reply of ${reply.length} elements`);
      return;
    }
    const nowUs = this.#close(call);
    this.#counters.storeSeconds.observe((nowUs - call.sentUs) / 1_000_000);
    const before = breaker.state;
    if (before !== 'closed') this.period += 1;
    breaker.onSuccess();
    this.#breakers.report(call, before, undefined, '');
    call.reply = reply;
    if (call.maintenance > 0) this.#counters.countReturned(call.returned, reply);
    this.#learn(call, nowUs);
    this.#settle(call, nowUs);
    this.#recycleCall(call);
    this.#noteQuiet();
  }

  onFailure(call: Call, kind: FailureKind, detail: string): void {
    if (call.settled) return;
    const nowUs = this.#close(call);
    this.#countFailure(call, kind);
    const before = call.breaker?.state ?? 'closed';
    call.breaker?.onFailure(nowUs);
    this.#breakers.report(call, before, kind, detail);
    this.#failCall(call, nowUs);
    this.#noteQuiet();
  }

  onReconnect(node: StoreNode): void {
    this.period += 1;
    this.#breakers.onReconnect(node, this.#clock.nowUs());
  }

  onDeparture(node: StoreNode): void {
    this.#breakers.forget(node);
  }

  oldestUs(): number | undefined {
    let oldest = Infinity;
    for (const group of this.#groups.all()) oldest = Math.min(oldest, group.oldestUs());
    for (const call of this.#calls) oldest = Math.min(oldest, call.sentUs);
    return oldest === Infinity ? undefined : oldest;
  }

  expire(nowUs: number, lagUs: number): void {
    const { deadlineUs } = this.alarm;
    for (const call of [...this.#calls]) {
      if (call.sentUs + deadlineUs > nowUs) continue;
      this.#close(call);
      this.#countFailure(call, 'timeout');
      const before = call.breaker?.state ?? 'closed';
      // An event loop this late was the one that did not answer: it says nothing about the store.
      if (lagUs >= deadlineUs / 2) call.breaker?.onUnknown(nowUs);
      else call.breaker?.onFailure(nowUs);
      this.#breakers.report(call, before, 'timeout', 'no reply within the deadline');
      this.#failCall(call, nowUs);
    }
    for (const group of this.#groups.all()) this.#expireGroup(group, nowUs, nowUs - deadlineUs);
    this.#noteQuiet();
  }

  /**
   * Gives all leases back and resolves once nothing is under way: at the latest a deadline after the last call,
   * whether the store answers or not.
   */
  async drain(): Promise<void> {
    this.leases?.close();
    this.#flushAll();
    if (this.#isQuiet()) return;
    await new Promise<void>((resolve) => {
      this.#onQuiet = resolve;
    });
  }

  /** Ends every wait by failure mode and stops the timer. */
  stop(): void {
    const nowUs = this.#clock.nowUs();
    for (const call of [...this.#calls]) {
      this.#close(call);
      this.#failCall(call, nowUs);
    }
    for (const group of this.#groups.all()) this.#expireGroup(group, nowUs, Infinity);
    this.alarm.stop();
    this.#breakers.stop();
  }

  #decideNow(lane: Lane, ask: Ask, waiter: LimitWaiter): void {
    const group = this.#groups.open(lane, ask);
    group.join(waiter, ask.sinceUs);
    const call = this.#takeCall(lane);
    call.addGroup(group);
    this.#send(call, lane, ask.sinceUs);
  }

  /** By failure mode, at once. */
  #refuseToAsk(lane: Lane, ask: Ask, waiter: LimitWaiter): void {
    const group = this.#groups.open(lane, ask);
    group.join(waiter, ask.sinceUs);
    group.depart(undefined);
    this.#failFlying(group, 1, ask.sinceUs);
    group.land();
    this.#groups.close(group);
  }

  #flush(lane: Lane): void {
    const nowUs = this.#clock.nowUs();
    this.leases?.prepare(lane.ready, nowUs);
    while (lane.hasWork) {
      const { breaker } = lane;
      const before = breaker.state;
      if (!breaker.tryEnter(nowUs)) {
        this.#abandon(lane, nowUs);
        return;
      }
      const call = this.#takeCall(lane);
      lane.load(call);
      // Also where no request has: a refund, or a group whose requests have all left.
      this.alarm.arm(nowUs);
      this.#breakers.report(call, before, undefined, '');
      this.#send(call, lane, nowUs);
    }
  }

  #send(call: Call, lane: Lane, nowUs: number): void {
    call.sentUs = nowUs;
    this.#calls.add(call);
    this.#counters.storeCalls += 1;
    this.#counters.decisions += call.decisions;
    for (const group of call.groups) {
      if (group !== undefined) this.#counters.coalesced += group.flying.length - 1;
    }
    lane.route.decide(call);
  }

  /** The breaker keeps the lane's calls back. */
  #abandon(lane: Lane, nowUs: number): void {
    for (const { leased } of lane.maintenance) this.#counters.countLost(leased);
    clear(lane.maintenance);
    const groups = lane.ready;
    lane.ready = [];
    for (const group of groups) {
      group.isReady = false;
      this.#failFlying(group, group.depart(undefined), nowUs);
      this.#land(group);
    }
  }

  #close(call: Call): number {
    call.settled = true;
    this.#calls.delete(call);
    return this.#clock.nowUs();
  }

  /** What the reply says about each key's level holds until somebody takes more, never less. */
  #learn(call: Call, nowUs: number): void {
    const { buckets, reply, levelsAt } = call;
    for (let k = 0; k < buckets.length; k += 1) {
      const keyed = buckets[k];
      if (keyed === undefined) continue;
      keyed.bucket = keyed.origin.bucket;
      keyed.level = Number(reply[levelsAt + k]);
      keyed.sentUs = call.sentUs;
      keyed.receivedUs = nowUs;
      keyed.aheadUs = 0;
      keyed.period = this.period;
    }
    for (let i = levelsAt + buckets.length; i + 1 < reply.length; i += 2) {
      const keyed = buckets[Number(reply[i]) - 1];
      if (keyed === undefined) continue;
      keyed.bucket = keyed.origin.under(String(reply[i + 1]));
      this.#counters.limitNewer += 1;
    }
  }

  /** From the last decision to the first, taking each back once it is told: so every one sees its own levels. */
  #settle(call: Call, nowUs: number): void {
    for (let g = call.groups.length - 1; g >= 0; g -= 1) {
      const group = call.groups[g];
      if (group !== undefined) {
        call.groups[g] = undefined;
        this.#settleGroup(group, call, g, nowUs);
      }
      call.takeBack(g);
    }
  }

  #settleGroup(group: Group, call: Call, g: number, nowUs: number): void {
    const granted = call.grantedTo(g);
    const waitUs = call.waitOf(g);
    if (granted < 0) {
      this.#counters.errors.foreign += 1;
      this.#failFlying(group, group.flying.length, nowUs);
      this.#land(group);
      return;
    }
    call.readLevels(g, group);
    if (granted < group.flying.length && waitUs > 0) {
      const refusing = slowest(group);
      if (refusing !== undefined) refusing.keyed.aheadUs = waitUs - refusing.lackUs;
    }
    const surplus = granted - group.flying.length;
    if (granted > 0) this.#settlement.warm(group, granted - Math.max(0, surplus), nowUs);
    if (surplus > 0) this.leases?.begin(group, surplus, nowUs);
    this.#settlement.grant(group, granted, waitUs);
    if (surplus > 0) this.leases?.handOut(group, nowUs);
    this.#land(group);
  }

  #failCall(call: Call, nowUs: number): void {
    for (let g = 0; g < call.groups.length; g += 1) {
      const group = call.groups[g];
      if (group === undefined) continue;
      call.groups[g] = undefined;
      this.#failFlying(group, group.flying.length, nowUs);
      this.#land(group);
    }
  }

  #failFlying(group: Group, count: number, nowUs: number): void {
    if (!group.shadow) this.#counters.degraded += group.countLive(count);
    this.#settlement.fail(group, count, nowUs);
  }

  /** A request that waited behind an earlier call can be due before its own call is. */
  #expireGroup(group: Group, nowUs: number, beforeUs: number): void {
    const { flight } = group;
    if (flight !== undefined) {
      const due = countUpTo(group.flyingSince, beforeUs);
      if (due === 0) return;
      this.#counters.chargeUnknown += group.countLive(due);
      this.#failFlying(group, due, nowUs);
      if (due < group.flying.length) return;
      this.leases?.doubt(group);
      flight.dismiss(group);
      this.#land(group);
      return;
    }
    const due = countUpTo(group.waitingSince, beforeUs);
    if (due === 0) return;
    group.departFirst(due);
    this.#failFlying(group, due, nowUs);
    this.#land(group);
  }

  #countFailure(call: Call, kind: FailureKind): void {
    this.#counters.errors[kind] += 1;
    for (const leased of call.returned) this.#counters.countLost(leased);
    if (kind !== 'timeout' && kind !== 'down') return;
    this.#counters.chargeUnknown += call.countLive();
    for (const group of call.groups) if (group !== undefined) this.leases?.doubt(group);
  }

  #isQuiet(): boolean {
    return this.#calls.size === 0 && this.#toFlush.length === 0;
  }

  #noteQuiet(): void {
    if (this.#onQuiet !== undefined && this.#isQuiet()) this.#onQuiet();
  }

  #makeReady(group: Group, lane: Lane): void {
    group.isReady = true;
    lane.ready.push(group);
    this.#schedule(lane);
  }

  #schedule(lane: Lane): void {
    if (lane.isScheduled) return;
    lane.isScheduled = true;
    if (this.#toFlush.push(lane) === 1) this.#scheduler.atEndOfTurn(this.#flushAll);
  }

  /** The group's call is over: who came meanwhile goes next, an idle group is given back. */
  #land(group: Group): void {
    group.land();
    const { lane } = group;
    if (lane !== undefined && group.waiting.length > 0) {
      if (!group.isReady) this.#makeReady(group, lane);
      return;
    }
    if (group.isReady || group.isKept) return;
    this.#groups.close(group);
  }

  #takeCall(lane: Lane): Call {
    const call = this.#spareCalls.pop() ?? new Call(this);
    call.lane = lane;
    call.breaker = lane.breaker;
    return call;
  }

  #recycleCall(call: Call): void {
    call.reset();
    if (this.#spareCalls.length < MAX_SPARE_CALLS) this.#spareCalls.push(call);
  }
}

/** How many of the ascending `instants` are not after `bound`. */
function countUpTo(instants: readonly number[], bound: number): number {
  let count = 0;
  while (count < instants.length && (instants[count] ?? Infinity) <= bound) count += 1;
  return count;
}
