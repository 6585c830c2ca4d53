// Sidecars that take tokens ahead, on a clock that moves when told: whatever happens and in whatever order, every
// token is admitted, refunded, or known to be lost, and none twice.
import assert from 'node:assert/strict';
import process from 'node:process';
import { test } from 'node:test';
import { setImmediate as turnOfLoop } from 'node:timers/promises';
import fc from 'fast-check';
import type { KeyedBuckets } from '../../sidecar/limiter/bucket.ts';
import { DEFAULT_DEADLINE_MS, Limiter } from '../../sidecar/store/limiter.ts';
import {
  FakeStore,
  ManualClock,
  ManualScheduler,
  RecordingWaiter,
  bucketOf,
  tierOf,
} from '../support/limiter-fixture.ts';

const RUNS = 2_000;
const SIDECARS = 3;
/** Fills in 20 s: never in a history, which begins with a tenth of it. */
const CAPACITY = 2_000;
const PER_SECOND = 100;
const START = CAPACITY / 10;

type Step =
  | { readonly kind: 'ask'; readonly at: number; readonly cost: number; readonly times: number }
  | { readonly kind: 'advance'; readonly us: number }
  | { readonly kind: 'answer' | 'turn' | 'lose' | 'refuse' }
  | { readonly kind: 'swap' | 'cancel'; readonly at: number };

const at = fc.nat(SIDECARS - 1);
const ask = fc.record({
  kind: fc.constant('ask' as const),
  at,
  cost: fc.constantFrom(1, 1, 1, 2),
  times: fc.integer({ min: 1, max: 8 }),
});
// Drawn with equal chance: requests come most often, new policies seldom.
const usual: fc.Arbitrary<Step>[] = [
  ...[ask, ask, ask, ask, ask, ask],
  fc.record({ kind: fc.constant('advance' as const), us: fc.integer({ min: 1, max: 20_000 }) }),
  fc.record({ kind: fc.constant('answer' as const) }),
  fc.record({ kind: fc.constantFrom('answer' as const, 'turn' as const) }),
  fc.record({ kind: fc.constant('swap' as const), at }),
];
const faulty: fc.Arbitrary<Step>[] = [
  ...usual,
  fc.record({ kind: fc.constantFrom('lose' as const, 'refuse' as const) }),
  fc.record({ kind: fc.constant('cancel' as const), at }),
];

interface Asked {
  readonly waiter: RecordingWaiter;
  readonly cost: number;
  isCancelled: boolean;
}

class Fleet {
  readonly clock = new ManualClock();
  readonly scheduler = new ManualScheduler(this.clock);
  readonly store = new FakeStore(this.clock);
  readonly limiters: readonly Limiter[];
  readonly asked: (Asked & { readonly at: number })[] = [];
  readonly #parts: readonly KeyedBuckets[];
  readonly #fromUs: number;
  readonly #plain: Limiter;
  readonly #plainPart: KeyedBuckets;

  constructor() {
    const { clock, scheduler, store } = this;
    const open = (lease: boolean): Limiter => new Limiter({ store, clock, scheduler, lease });
    // Tiers of their own: as in processes of their own nothing but the store is shared.
    const keyed = (limiter: Limiter): KeyedBuckets =>
      limiter.keyed(tierOf({ buckets: [bucketOf(CAPACITY, PER_SECOND)] }), 'client');
    this.limiters = Array.from({ length: SIDECARS }, () => open(true));
    this.#parts = this.limiters.map(keyed);
    this.#plain = open(false);
    this.#plainPart = keyed(this.#plain);
    this.#fromUs = clock.us;
    this.#askPlainly(CAPACITY - START);
  }

  step(step: Step): void {
    switch (step.kind) {
      case 'ask':
        for (let i = 0; i < step.times; i += 1) this.#ask(step.at, step.cost);
        return;
      case 'advance':
        this.scheduler.advance(step.us);
        return;
      case 'answer':
      case 'turn':
      case 'lose':
      case 'refuse':
        this.#endTurn(step.kind);
        return;
      case 'swap':
      case 'cancel':
        this.#disturb(step.kind, step.at);
    }
  }

  #disturb(how: 'swap' | 'cancel', at: number): void {
    if (how === 'swap') this.limiters[at]?.endLeases();
    else this.#cancel(at);
  }

  settle(): void {
    do this.scheduler.endTurn();
    while (this.store.answer() > 0);
  }

  /** Ends every limiter; whatever was lost on the way has had its deadline then. */
  async end(): Promise<void> {
    let ended = 0;
    for (const limiter of this.limiters) {
      void limiter[Symbol.asyncDispose]().then(() => {
        ended += 1;
      });
    }
    this.settle();
    for (let i = 0; i < 3; i += 1) {
      this.scheduler.advance(DEFAULT_DEADLINE_MS * 1_000);
      this.settle();
    }
    await turnOfLoop();
    assert.equal(ended, SIDECARS, 'a limiter does not end');
  }

  /** Tokens that left the bucket since the start, in units; asks for one itself. */
  consumed(): { readonly units: number; readonly unitsPerToken: number } {
    const { kind, level } = this.#askPlainly(1);
    const { unitsPerToken, full } = this.#plainPart.buckets[0]?.bucket.stored ?? assert.fail();
    const probe = kind === 'allowed' ? 1 : 0;
    const earned = this.clock.us - this.#fromUs;
    const start = full - (CAPACITY - START) * unitsPerToken;
    assert.ok(level < full, 'the bucket was full: the account cannot be closed');
    return { units: start + earned - level - probe * unitsPerToken, unitsPerToken };
  }

  #endTurn(then: 'answer' | 'turn' | 'lose' | 'refuse'): void {
    this.scheduler.endTurn();
    if (then === 'answer') this.settle();
    if (then === 'lose') this.store.loseAnswers();
    if (then === 'refuse') this.store.fail('busy');
  }

  #ask(at: number, cost: number): void {
    const [limiter, part] = [this.limiters[at], this.#parts[at]];
    if (limiter === undefined || part === undefined) return;
    const waiter = new RecordingWaiter();
    this.asked.push({ at, waiter, cost, isCancelled: false });
    limiter.acquire([part], [cost], 1, waiter);
  }

  #cancel(at: number): void {
    const one = this.asked.findLast((asked) => asked.at === at);
    if (one?.waiter.pending === undefined) return;
    one.isCancelled = true;
    this.limiters[at]?.cancel(one.waiter);
  }

  #askPlainly(cost: number): RecordingWaiter['only'] {
    const waiter = new RecordingWaiter();
    this.#plain.acquire([this.#plainPart], [cost], 1, waiter);
    this.settle();
    return waiter.only;
  }
}

interface Account {
  admitted: number;
  /** May have been charged: nobody was told. */
  unsure: number;
}

function accountOf({ asked, limiters }: Fleet): Account {
  const account: Account = { admitted: 0, unsure: 0 };
  for (const { waiter, cost, isCancelled } of asked) {
    assert.equal(waiter.told.length, isCancelled ? 0 : 1, 'every request hears exactly once');
    const [told] = waiter.told;
    if (isCancelled || told?.degraded === true) account.unsure += cost;
    else if (told?.kind === 'allowed') account.admitted += cost;
  }
  for (const { counters } of limiters) account.unsure += counters.leaseLost;
  return account;
}

for (const [name, steps] of [
  ['a store that always answers', usual],
  ['lost answers, refusals and clients that give up', faulty],
] as const) {
  test(`no token is admitted twice or forgotten, with ${name}`, async (t) => {
    const seed = Number(process.env['WEIR_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
    t.diagnostic(`seed ${seed} (WEIR_SEED=${seed} repeats it)`);
    const total = { used: 0, refunded: 0, lost: 0 };

    const history = fc.array(fc.oneof(...steps), { maxLength: 60, size: 'max' });
    await fc.assert(
      fc.asyncProperty(history, async (all) => {
        const fleet = new Fleet();
        for (const step of all) {
          // Time passes between a call and its answer, but less than a deadline.
          if (steps === usual && step.kind === 'advance') fleet.settle();
          fleet.step(step);
        }
        await fleet.end();

        const { admitted, unsure } = accountOf(fleet);
        const { units, unitsPerToken } = fleet.consumed();
        assert.ok(units >= admitted * unitsPerToken, 'more was admitted than was taken');
        assert.ok(units <= (admitted + unsure) * unitsPerToken, 'tokens were forgotten');
        if (steps === usual) assert.equal(unsure, 0);
        for (const { counters } of fleet.limiters) {
          const { leaseGranted, leaseUsed, leaseRefunded, leaseLost } = counters;
          assert.equal(leaseGranted, leaseUsed + leaseRefunded + leaseLost);
          total.used += leaseUsed;
          total.refunded += leaseRefunded;
          total.lost += leaseLost;
        }
      }),
      { seed, numRuns: RUNS },
    );

    t.diagnostic(JSON.stringify(total));
    // Histories that no longer reach these would prove nothing about them.
    assert.ok(total.used >= 100 && total.refunded >= 100);
    assert.ok(steps === usual || total.lost >= 100);
  });
}
