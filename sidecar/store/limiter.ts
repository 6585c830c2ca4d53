// Hot path. The limiter a gate asks: decides a request over the buckets of all its rules at once, refuses here
// what the store would certainly refuse, and leaves the rest to the dispatcher.
import type { BreakerState } from '../limiter/breaker.ts';
import type { KeyedBucket, KeyedBuckets, TierBuckets } from '../limiter/bucket.ts';
import { KeyInterner } from '../limiter/key-interner.ts';
import { CHARGE_DOWN, REFUND } from '../limiter/token-bucket.ts';
import { systemClock, systemScheduler, type Clock, type Scheduler } from './clock.ts';
import { AskScratch, type Ask } from './ask.ts';
import { Dispatcher } from './dispatcher.ts';
import { LaneSequence, stagesOf, type SequenceOwner, type Stage } from './lane-sequence.ts';
import { Lane } from './lane.ts';
import type { Leases } from './leases.ts';
import { LimiterCounters } from './limiter-counters.ts';
import { LocalShares } from './local-shares.ts';
import { MemoryStore } from './memory-store.ts';
import type { BreakerTransition } from './node-breakers.ts';
import type { LimitWaiter, Outcome, PendingRequest, ShadowSink } from './outcome.ts';
import { Settlement } from './settlement.ts';
import type { Store } from './store.ts';

/** How long a request may wait for the store before its policies' failure mode decides. */
export const DEFAULT_DEADLINE_MS = 50;
/** Requests that may wait at once: 200 000 a second at the deadline, far above what one process serves. */
const MAX_PENDING = 10_000;

export interface LimiterOptions {
  /** Where shared buckets live. The limiter does not dispose of it. */
  readonly store: Store;
  /** For `scope: Pod`; absent = buckets of this process. */
  readonly podStore?: Store;
  readonly deadlineMs?: number;
  readonly maxPending?: number;
  /** Let hot groups take tokens ahead of their requests (see leases.ts); absent = not. */
  readonly lease?: boolean;
  readonly clock?: Clock;
  readonly scheduler?: Scheduler;
  /** Numbers in [0, 1), for the breaker's jitter. */
  readonly random?: () => number;
  /** Told once per change of a node's circuit breaker. */
  readonly onTransition?: (event: BreakerTransition) => void;
}

export class Limiter implements SequenceOwner, AsyncDisposable {
  readonly counters: LimiterCounters = new LimiterCounters();
  #store: Store;
  readonly #podStore: Store;
  readonly #clock: Clock;
  readonly #interner: KeyInterner;
  readonly #settlement: Settlement = new Settlement(new LocalShares());
  readonly #dispatcher: Dispatcher;
  readonly #leases: Leases | undefined;
  readonly #ask = new AskScratch();

  constructor(options: LimiterOptions) {
    this.#store = options.store;
    this.#clock = options.clock ?? systemClock;
    this.#podStore = options.podStore ?? new MemoryStore(this.#clock);
    this.#interner = new KeyInterner(options.store.partitions);
    this.#dispatcher = new Dispatcher({
      settlement: this.#settlement,
      counters: this.counters,
      clock: this.#clock,
      scheduler: options.scheduler ?? systemScheduler,
      random: options.random ?? Math.random,
      deadlineUs: (options.deadlineMs ?? DEFAULT_DEADLINE_MS) * 1_000,
      maxPending: options.maxPending ?? MAX_PENDING,
      lease: options.lease ?? false,
      onTransition: options.onTransition ?? ignore,
    });
    this.#leases = this.#dispatcher.leases;
    options.store.listener = this.#dispatcher;
  }

  /**
   * Shared buckets live in `store` from now on. What is under way ends with the store before it, which its owner keeps
   * open for a deadline. Buckets that were named before still lead there: the caller arms its bundle anew at once.
   */
  replaceStore(store: Store): void {
    this.#store.listener = undefined;
    this.#store = store;
    store.listener = this.#dispatcher;
    this.#interner.partitions = store.partitions;
    this.#dispatcher.retireLanes(this.#podStore.laneOf(''));
  }

  /** How long a request may wait for the store from now on, in ms. */
  setDeadline(deadlineMs: number): void {
    this.#dispatcher.alarm.deadlineUs = deadlineMs * 1_000;
  }

  /** Requests that wait now. */
  get pending(): number {
    return this.#dispatcher.pending;
  }

  /** The circuit breaker of every node asked so far. */
  breakerStates(): readonly { readonly node: string; readonly state: BreakerState }[] {
    return this.#dispatcher.breakerStates();
  }

  /** The buckets of one client in one tier. `keyText` is the rule's injective key text. */
  keyed(tier: TierBuckets, keyText: string): KeyedBuckets {
    return this.#interner.intern(tier, keyText);
  }

  /**
   * Decides one request: `weights[i]` tokens (whole, ≥ 1) from every bucket of `parts[i]`, all or nothing. The
   * arrays are the caller's scratch: their first `count` entries are read, and only during the call. A part
   * must not occur twice.
   */
  acquire(
    parts: readonly KeyedBuckets[],
    weights: readonly number[],
    count: number,
    waiter: LimitWaiter,
  ): void {
    const first = parts[0];
    if (count === 0 || first === undefined) {
      this.#settlement.allow(waiter, false);
      return;
    }
    const nowUs = this.#clock.nowUs();
    const ask = this.#ask.set(parts, weights, count);
    ask.sinceUs = nowUs;
    if (this.#leases?.serve(ask, waiter) === true) return;
    if (this.#refuse(ask, waiter)) return;
    const lane = this.#laneOf(first);
    for (let i = 1; i < count; i += 1) {
      const part = parts[i];
      if (part !== undefined && this.#laneOf(part) !== lane) {
        this.#acquireInSequence(ask, waiter);
        return;
      }
    }
    this.#dispatcher.request(lane, ask, waiter);
  }

  /** The client has gone: no outcome is wanted any more. What was charged stays charged. */
  cancel(waiter: LimitWaiter): void {
    waiter.pending?.cancel(waiter);
  }

  /** What a shadow rule would have done with a request that was admitted. Delays and changes nothing. */
  shadow(part: KeyedBuckets, weight: number, sink: ShadowSink): void {
    const ask = this.#ask.setShadow(part, weight);
    ask.sinceUs = this.#clock.nowUs();
    const waiter = new ShadowWaiter(sink);
    if (this.#refuse(ask, waiter)) return;
    this.#dispatcher.request(this.#laneOf(part), ask, waiter);
  }

  /** Charges what a response cost (tokens, ≥ 1), down to an empty bucket and never below. Nobody waits for it. */
  chargeDown(part: KeyedBuckets, tokens: number): void {
    this.#settlement.warmBuckets(part.buckets, tokens, this.#clock.nowUs());
    // A response may end long after its store was replaced: its cost goes where the buckets are now.
    if (part.lane instanceof Lane && part.lane.isRetired) part.lane = undefined;
    const work = { operation: CHARGE_DOWN, buckets: part.buckets, weight: tokens, leased: 0 };
    this.#dispatcher.maintain(this.#laneOf(part), work);
  }

  /** Other policies are in force from now on: what was taken ahead under the old ones goes back. */
  endLeases(): void {
    this.#leases?.end();
  }

  acquireStage(stage: Stage, waiter: LimitWaiter, sinceUs: number): void {
    const ask = this.#ask.set(stage.parts, stage.weights, stage.parts.length);
    ask.sinceUs = sinceUs;
    if (this.#leases?.serve(ask, waiter) === true) return;
    this.#dispatcher.request(stage.lane, ask, waiter);
  }

  refundStage(stage: Stage): void {
    for (let i = 0; i < stage.parts.length; i += 1) {
      const part = stage.parts[i];
      if (part === undefined) continue;
      const { buckets } = part;
      for (const bucket of buckets) bucket.forget();
      const weight = stage.weights[i] ?? 0;
      this.#dispatcher.maintain(stage.lane, { operation: REFUND, buckets, weight, leased: 0 });
    }
  }

  /**
   * Decides everybody who still waits by failure mode. With leases they are given back first, and calls under way
   * have until their deadline: the store must still be open.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#leases !== undefined) await this.#dispatcher.drain();
    this.#dispatcher.stop();
  }

  /** Refuses here when one bucket certainly cannot pay. */
  #refuse(ask: Ask, waiter: LimitWaiter): boolean {
    const refusing = this.#certainlyLacking(ask);
    if (refusing === undefined) return false;
    this.counters.denyCacheHits += 1;
    const { bucket, level } = refusing.keyed;
    this.#settlement.deny(waiter, bucket, refusing.waitUs, level);
    return true;
  }

  /** Of the buckets that certainly cannot pay, the last to be able to. */
  #certainlyLacking(
    ask: Ask,
  ): { readonly keyed: KeyedBucket; readonly waitUs: number } | undefined {
    const { period } = this.#dispatcher;
    let found: { readonly keyed: KeyedBucket; readonly waitUs: number } | undefined = undefined;
    for (let i = 0; i < ask.count; i += 1) {
      const weight = ask.weights[i] ?? 0;
      for (const keyed of ask.parts[i]?.buckets ?? []) {
        if (!keyed.certainlyLacks(weight, ask.sinceUs, period)) continue;
        const waitUs = keyed.waitUs(weight, ask.sinceUs);
        if (waitUs < 0) return { keyed, waitUs };
        if (found === undefined || waitUs > found.waitUs) found = { keyed, waitUs };
      }
    }
    return found;
  }

  #acquireInSequence(ask: Ask, waiter: LimitWaiter): void {
    const lanes = ask.parts.slice(0, ask.count).map((part) => this.#laneOf(part));
    const stages = stagesOf(ask.parts, ask.weights, lanes);
    new LaneSequence(this, stages, { waiter, sinceUs: ask.sinceUs }).start();
  }

  #laneOf(part: KeyedBuckets): Lane {
    const { lane } = part;
    if (lane instanceof Lane) return lane;
    const store = part.tier.policy.scope === 'Pod' ? this.#podStore : this.#store;
    const found = this.#dispatcher.laneFor(store.laneOf(part.tag));
    part.lane = found;
    return found;
  }
}

class ShadowWaiter implements LimitWaiter {
  pending: PendingRequest | undefined = undefined;
  readonly #sink: ShadowSink;

  constructor(sink: ShadowSink) {
    this.#sink = sink;
  }

  onOutcome(outcome: Outcome): void {
    this.#sink.onShadow(outcome.kind === 'unavailable' ? 'unknown' : outcome.kind);
  }
}

function ignore(): void {
  // Nobody asked to be told.
}
