// What a test of the limiter stands on: a clock that moves when told, a scheduler whose turns are run by hand, and
// a store that answers when told to, with the real arithmetic behind it.
import assert from 'node:assert/strict';
import type {
  CompiledBucket,
  CompiledPolicy,
  CompiledRule,
  CompiledTier,
} from '../../contract/bundle.ts';
import {
  bucketsOfTier,
  type KeyedBuckets,
  type TierBuckets,
} from '../../sidecar/limiter/bucket.ts';
import {
  TokenBuckets,
  type BucketState,
  type BucketTable,
  type Reply,
} from '../../sidecar/limiter/token-bucket.ts';
import type { Clock, ScheduledTask, Scheduler } from '../../sidecar/store/clock.ts';
import { Limiter, type LimiterOptions } from '../../sidecar/store/limiter.ts';
import type {
  LimitWaiter,
  Outcome,
  PendingRequest,
  ShadowSink,
} from '../../sidecar/store/outcome.ts';
import type {
  FailureKind,
  Store,
  StoreCall,
  StoreLane,
  StoreListener,
  StoreNode,
} from '../../sidecar/store/store.ts';

/** `perSecond` tokens a second into a bucket of `capacity`, in µs ticks. */
export function bucketOf(capacity: number, perSecond: number, name = 'main'): CompiledBucket {
  assert.ok(1_000_000 % perSecond === 0, 'the rate has to divide a second');
  const limit = {
    capacity,
    unitsPerToken: 1_000_000 / perSecond,
    unitsPerTick: 1,
    tickUs: 1,
  } as const;
  return { name, limit };
}

export interface TierInput {
  readonly policy?: Partial<CompiledPolicy>;
  readonly rule?: Partial<CompiledRule>;
  readonly tierName?: string;
  readonly buckets?: readonly CompiledBucket[];
}

/** The buckets of one tier of a policy; by default 5 tokens and one a second, in a policy that fails open. */
export function tierOf(input: TierInput = {}): TierBuckets {
  const tier: CompiledTier = {
    name: input.tierName ?? '-',
    match: [],
    buckets: input.buckets ?? [bucketOf(5, 1)],
  };
  const rule: CompiledRule = {
    name: 'rule',
    mode: 'Enforce',
    match: [],
    except: [],
    key: [{ kind: 'clientIP' }],
    onMissingKey: 'ClientIP',
    tiers: [tier],
    onNoTier: 'Skip',
    cost: { tokens: 1 },
    ...input.rule,
  };
  const policy: CompiledPolicy = {
    namespace: 'shop',
    name: 'policy',
    uid: 'uid',
    generation: 1,
    mode: 'Enforce',
    enforcePercent: 100,
    failureMode: 'Open',
    scope: 'Policy',
    replicas: 1,
    clientIP: { trustedHops: 0, trustedProxies: [], ipv6PrefixLength: 64 },
    response: { status: 429, quotaHeaders: 'RateLimit', headers: [] },
    except: [],
    rules: [rule],
    ...input.policy,
  };
  return bucketsOfTier(policy, rule, tier);
}

export class ManualClock implements Clock {
  us = 1_000_000_000;

  nowUs(): number {
    return this.us;
  }

  wallUs(): number {
    return 1_758_000_000_000_000 + this.us;
  }
}

/** Runs what is due when the test says so. */
export class ManualScheduler implements Scheduler {
  readonly #clock: ManualClock;
  #turn: (() => void)[] = [];
  #timers: { readonly dueUs: number; readonly task: () => void }[] = [];

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  get timers(): number {
    return this.#timers.length;
  }

  atEndOfTurn(task: () => void): void {
    this.#turn.push(task);
  }

  after(ms: number, task: () => void): ScheduledTask {
    const timer = { dueUs: this.#clock.us + ms * 1_000, task };
    this.#timers.push(timer);
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((other) => other !== timer);
      },
    };
  }

  /** The end of this turn; what it schedules for the end of its own runs in the next. */
  endTurn(): void {
    const tasks = this.#turn;
    this.#turn = [];
    for (const task of tasks) task();
  }

  /** Moves the clock, firing timers on their way, each followed by `inPoll` and the end of its turn. */
  advance(us: number, inPoll: () => void = () => undefined): void {
    const end = this.#clock.us + us;
    for (;;) {
      const next = this.#timers.toSorted((a, b) => a.dueUs - b.dueUs)[0];
      if (next === undefined || next.dueUs > end) break;
      this.#clock.us = Math.max(this.#clock.us, next.dueUs);
      this.#fire(next, inPoll);
    }
    this.#clock.us = end;
  }

  /** The event loop was blocked for `us`: every timer that fell due meanwhile fires late. */
  stall(us: number, inPoll: () => void = () => undefined): void {
    this.#clock.us += us;
    for (const timer of this.#timers.filter(({ dueUs }) => dueUs <= this.#clock.us)) {
      this.#fire(timer, inPoll);
    }
  }

  #fire(timer: { readonly dueUs: number; readonly task: () => void }, inPoll: () => void): void {
    this.#timers = this.#timers.filter((other) => other !== timer);
    timer.task();
    inPoll();
    this.endTurn();
  }
}

class Table implements BucketTable {
  readonly states = new Map<string, BucketState>();

  open(key: string): BucketState | undefined {
    return this.states.get(key);
  }

  insert(key: string, state: BucketState): void {
    this.states.set(key, state);
  }
}

/** A store at the other end of a wire: calls wait in `calls` until the test answers them. */
export class FakeStore implements Store {
  readonly partitions = 1;
  listener: StoreListener | undefined = undefined;
  readonly node: StoreNode = { name: 'fake' };
  readonly calls: StoreCall[] = [];
  /** Every call ever sent. */
  sent = 0;
  /** One lane per tag, as a Cluster whose tags all hash to other slots. */
  readonly hasLanePerTag: boolean;
  readonly #table = new Table();
  readonly #twin = new TokenBuckets(this.#table);
  readonly #clock: Clock;
  readonly #lanes = new Map<string, StoreLane>();

  constructor(clock: Clock, { hasLanePerTag = false }: { readonly hasLanePerTag?: boolean } = {}) {
    this.#clock = clock;
    this.hasLanePerTag = hasLanePerTag;
  }

  laneOf(tag: string): StoreLane {
    const name = this.hasLanePerTag ? tag : '';
    let lane = this.#lanes.get(name);
    if (lane === undefined) {
      lane = {
        node: this.node,
        synchronous: false,
        decide: (call) => {
          this.sent += 1;
          this.calls.push(call);
        },
      };
      this.#lanes.set(name, lane);
    }
    return lane;
  }

  /** Executes and answers everything that waits; returns how many calls that were. */
  answer(): number {
    const calls = this.calls.splice(0);
    for (const call of calls) call.onReply(this.execute(call));
    return calls.length;
  }

  /** Executes everything that waits; the answers are lost. */
  loseAnswers(): StoreCall[] {
    const calls = this.calls.splice(0);
    for (const call of calls) this.execute(call);
    return calls;
  }

  /** Refuses everything that waits. */
  fail(kind: FailureKind): void {
    for (const call of this.calls.splice(0)) call.onFailure(kind, `fake ${kind}`);
  }

  execute(call: StoreCall): Reply {
    const reply: Reply = [];
    this.#twin.decide(call, this.#clock.nowUs(), reply);
    return reply;
  }

  /** The level stored for a key, in units; undefined = full. */
  levelOf(key: string): number | undefined {
    return this.#table.states.get(key)?.level;
  }

  /** Whatever the store knew is gone. */
  flush(): void {
    this.#table.states.clear();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}

/** What an outcome said, kept after the call. */
export interface Told {
  readonly kind: Outcome['kind'];
  /** The tightest bucket, or the one that refused. */
  readonly bucket: string | undefined;
  readonly capacity: number | undefined;
  readonly level: number;
  readonly waitUs: number;
  readonly degraded: boolean;
  readonly policy: string | undefined;
}

export class RecordingWaiter implements LimitWaiter {
  pending: PendingRequest | undefined = undefined;
  readonly told: Told[] = [];
  readonly #then: ((told: Told) => void) | undefined;

  constructor(then?: (told: Told) => void) {
    this.#then = then;
  }

  /** The only outcome so far. */
  get only(): Told {
    const [told, ...others] = this.told;
    assert.ok(told !== undefined && others.length === 0, `${this.told.length} outcomes`);
    return told;
  }

  onOutcome(outcome: Outcome): void {
    const told = tell(outcome);
    this.told.push(told);
    this.#then?.(told);
  }
}

export function tell(outcome: Outcome): Told {
  switch (outcome.kind) {
    case 'allowed': {
      const { tightest, level, degraded } = outcome;
      const capacity = tightest?.limit.capacity;
      return {
        kind: 'allowed',
        bucket: tightest?.name,
        capacity,
        level,
        waitUs: 0,
        degraded,
        policy: undefined,
      };
    }
    case 'denied': {
      const { refusedBy, level, waitUs, degraded } = outcome;
      const { capacity } = refusedBy.limit;
      return {
        kind: 'denied',
        bucket: refusedBy.name,
        capacity,
        level,
        waitUs,
        degraded,
        policy: refusedBy.policy.name,
      };
    }
    case 'unavailable':
      return {
        kind: 'unavailable',
        bucket: undefined,
        capacity: undefined,
        level: -1,
        waitUs: 0,
        degraded: true,
        policy: outcome.policy.name,
      };
  }
}

export class RecordingSink implements ShadowSink {
  readonly verdicts: ('allowed' | 'denied' | 'unknown')[] = [];

  onShadow(verdict: 'allowed' | 'denied' | 'unknown'): void {
    this.verdicts.push(verdict);
  }
}

/** A limiter over a fake store, and everything that moves it. */
export class LimiterBench {
  readonly clock: ManualClock = new ManualClock();
  readonly scheduler: ManualScheduler = new ManualScheduler(this.clock);
  readonly store: FakeStore;
  readonly limiter: Limiter;

  constructor(options: Partial<LimiterOptions> & { readonly hasLanePerTag?: boolean } = {}) {
    const { hasLanePerTag = false, ...rest } = options;
    this.store = new FakeStore(this.clock, { hasLanePerTag });
    this.limiter = new Limiter({
      store: this.store,
      clock: this.clock,
      scheduler: this.scheduler,
      random: () => 0,
      ...rest,
    });
  }

  keyed(tier: TierBuckets, keyText = 'client'): KeyedBuckets {
    return this.limiter.keyed(tier, keyText);
  }

  /** Asks for one request over `parts`, one token each or as `weights` says. */
  ask(
    parts: readonly KeyedBuckets[],
    weights: readonly number[] = parts.map(() => 1),
  ): RecordingWaiter {
    const waiter = new RecordingWaiter();
    this.limiter.acquire(parts, weights, parts.length, waiter);
    return waiter;
  }

  /** Ends the turn and lets the store answer until nothing is left to do. */
  settle(): void {
    do this.scheduler.endTurn();
    while (this.store.answer() > 0);
  }
}
