// Tokens taken ahead of requests: who gets them, how many, for how long, and where the rest goes.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  FakeStore,
  LimiterBench,
  RecordingSink,
  RecordingWaiter,
  bucketOf,
  tierOf,
  type Told,
} from '../../test/support/limiter-fixture.ts';
import type { KeyedBuckets } from '../limiter/bucket.ts';
import { FAILURES_TO_OPEN } from '../limiter/breaker.ts';
import { DEFAULT_DEADLINE_MS, type LimiterOptions } from './limiter.ts';
import { HOT_REQUESTS, LEASE_US, MAX_LEASES } from './leases.ts';
import { MemoryStore } from './memory-store.ts';

const CAPACITY = 1_000;
/** A hundredth of the capacity, a fifth of 50 ms of refill. */
const PREFETCH = 10;
const UNIT = 1_000;

class LeaseBench extends LimiterBench {
  readonly hot: KeyedBuckets;

  constructor(options: Partial<LimiterOptions> & { readonly hasLanePerTag?: boolean } = {}) {
    super({ lease: true, ...options });
    this.hot = this.keyed(tierOf({ buckets: [bucketOf(CAPACITY, 1_000)] }));
  }

  /** Asks `count` times in one turn and lets the store answer. */
  burst(count: number = HOT_REQUESTS, part: KeyedBuckets = this.hot): RecordingWaiter[] {
    const waiters = Array.from({ length: count }, () => this.ask([part]));
    this.settle();
    return waiters;
  }

  /** Asks `count` times, one after the other, and wants each answer at once. */
  atOnce(count: number, part: KeyedBuckets = this.hot): Told[] {
    return Array.from({ length: count }, () => this.ask([part]).only);
  }

  /** Whole tokens in the store. */
  left(part: KeyedBuckets = this.hot): number {
    const [{ key, bucket }] = [part.buckets[0] ?? assert.fail()];
    return (this.store.levelOf(key) ?? bucket.stored.full) / bucket.stored.unitsPerToken;
  }

  /** Granted, used, refunded and lost so far. */
  fates(): number[] {
    const { leaseGranted, leaseUsed, leaseRefunded, leaseLost } = this.limiter.counters;
    return [leaseGranted, leaseUsed, leaseRefunded, leaseLost];
  }
}

function levels(told: readonly Told[]): number[] {
  return told.map(({ level }) => level / UNIT);
}

describe('a hot key', () => {
  test('takes more than it was asked for, and hands it out without asking the store', () => {
    const bench = new LeaseBench();
    const first = bench.burst();

    const told = bench.atOnce(PREFETCH);

    assert.equal(bench.store.sent, 1);
    assert.equal(bench.left(), CAPACITY - HOT_REQUESTS - PREFETCH);
    assert.ok(told.every(({ kind, degraded }) => kind === 'allowed' && !degraded));
    // Every one sees what is left after itself, as if each had asked the store.
    const all = [...first.map(({ only }) => only), ...told];
    assert.deepEqual(
      levels(all),
      all.map((_, i) => CAPACITY - 1 - i),
    );
    assert.deepEqual(bench.fates(), [PREFETCH, PREFETCH, 0, 0]);
  });

  test('asks the store again when its lease is used up, and takes another', () => {
    const bench = new LeaseBench();
    bench.burst();
    bench.atOnce(PREFETCH);

    const waiter = bench.ask([bench.hot]);
    assert.equal(waiter.told.length, 0);
    bench.settle();

    assert.equal(waiter.only.kind, 'allowed');
    assert.equal(bench.store.sent, 2);
    assert.equal(bench.left(), CAPACITY - HOT_REQUESTS - PREFETCH - 1 - PREFETCH);
  });

  test('that has cooled down takes none', () => {
    const bench = new LeaseBench();
    bench.burst();
    bench.atOnce(PREFETCH);
    bench.scheduler.advance(LEASE_US);

    bench.ask([bench.hot]);
    bench.settle();

    assert.equal(bench.limiter.counters.leaseGranted, PREFETCH);
  });

  test('is served although the bucket has nothing left in the store', () => {
    const bench = new LeaseBench();
    bench.ask([bench.hot], [CAPACITY - HOT_REQUESTS - PREFETCH]);
    bench.settle();
    bench.burst();
    assert.equal(bench.left(), 0);

    const told = bench.atOnce(PREFETCH + 1);

    assert.deepEqual(
      told.map(({ kind }) => kind),
      [...Array.from({ length: PREFETCH }, () => 'allowed'), 'denied'],
    );
    assert.deepEqual(levels(told.slice(0, 2)), [PREFETCH - 1, PREFETCH - 2]);
  });

  test('gets what is there when that is less than a lease', () => {
    const bench = new LeaseBench();
    bench.ask([bench.hot], [CAPACITY - HOT_REQUESTS - 3]);
    bench.settle();
    bench.burst();

    const told = bench.atOnce(4);

    assert.deepEqual(
      told.map(({ kind }) => kind),
      ['allowed', 'allowed', 'allowed', 'denied'],
    );
    assert.equal(bench.limiter.counters.leaseGranted, 3);
  });

  test('costs fewer calls than without a lease', () => {
    const calls = [false, true].map((lease) => {
      const bench = new LeaseBench({ lease });
      bench.burst();
      for (let i = 0; i < 200; i += 1) {
        bench.ask([bench.hot]);
        bench.settle();
        bench.scheduler.advance(1_000);
      }
      return bench.store.sent;
    });

    // Without, each its own. With, the first lease serves 10, and each call after it 1 and 10 to come: ⌈190 / 11⌉.
    assert.deepEqual(calls, [201, 1 + 18]);
  });
});

describe('no lease', () => {
  test('is taken unless asked for in the options', () => {
    const bench = new LeaseBench({ lease: false });
    bench.burst(100);

    assert.equal(bench.left(), CAPACITY - 100);
    assert.deepEqual(bench.fates(), [0, 0, 0, 0]);
    bench.limiter.endLeases();
  });

  for (const [requests, granted] of [
    [HOT_REQUESTS - 1, 0],
    [HOT_REQUESTS, PREFETCH],
  ] as const) {
    test(`is taken below ${HOT_REQUESTS} requests on a call: ${requests} take ${granted}`, () => {
      const bench = new LeaseBench();

      bench.burst(requests);

      assert.equal(bench.left(), CAPACITY - requests - granted);
    });
  }

  test('is taken by shadow rules', () => {
    const bench = new LeaseBench();
    const sink = new RecordingSink();
    for (let i = 0; i < HOT_REQUESTS; i += 1) bench.limiter.shadow(bench.hot, 1, sink);

    bench.settle();

    assert.equal(bench.left(), CAPACITY - HOT_REQUESTS);
    assert.equal(sink.verdicts.length, HOT_REQUESTS);
  });

  test('serves shadow rules', () => {
    const bench = new LeaseBench();
    bench.burst();

    bench.limiter.shadow(bench.hot, 1, new RecordingSink());
    bench.settle();

    assert.equal(bench.limiter.counters.leaseUsed, 0);
  });

  test('is taken from a store that answers at once', () => {
    const { clock } = new LimiterBench();
    const bench = new LeaseBench({ store: new MemoryStore(clock), clock });

    const told = bench.atOnce(3 * HOT_REQUESTS);

    assert.equal(told.at(-1)?.level, (CAPACITY - 3 * HOT_REQUESTS) * UNIT);
    assert.equal(bench.limiter.counters.leaseGranted, 0);
  });

  test('is taken of a bucket that another cost has one of', () => {
    const bench = new LeaseBench();
    bench.burst();
    for (let i = 0; i < HOT_REQUESTS; i += 1) bench.ask([bench.hot], [2]);

    bench.settle();

    assert.equal(bench.limiter.counters.leaseGranted, PREFETCH);
    assert.equal(bench.left(), CAPACITY - 3 * HOT_REQUESTS - PREFETCH);
  });

  test(`is taken by more than ${MAX_LEASES} keys at once`, () => {
    const bench = new LeaseBench();
    const tier = tierOf({ buckets: [bucketOf(CAPACITY, 1_000)] });
    const keys = Array.from({ length: MAX_LEASES + 1 }, (_, i) => bench.keyed(tier, `key ${i}`));
    for (const keyed of keys) for (let i = 0; i < HOT_REQUESTS; i += 1) bench.ask([keyed]);

    bench.settle();

    assert.equal(bench.limiter.counters.leaseGranted, MAX_LEASES * PREFETCH);
  });
});

describe('a lease holds', () => {
  const sizes: Readonly<Record<string, readonly [readonly [number, number][], number, number]>> = {
    'a hundredth of the capacity': [[[300, 1_000]], 1, 3],
    'nothing of a capacity below a hundred': [[[99, 1_000]], 1, 0],
    'no more than 50 ms earn': [[[100_000, 40]], 1, 2],
    'nothing where 50 ms earn less than a token': [[[100_000, 10]], 1, 0],
    'whole requests of the cost asked for': [[[1_100, 1_000]], 3, 3],
    'nothing for a cost above it': [[[1_100, 1_000]], 12, 0],
    'what the scarcest bucket spares': [
      [
        [5_000, 1_000],
        [700, 1_000],
      ],
      1,
      7,
    ],
  };
  for (const [name, [buckets, cost, requests]] of Object.entries(sizes)) {
    test(name, () => {
      const bench = new LeaseBench();
      const tier = tierOf({
        rule: { name: 'sized' },
        buckets: buckets.map(([capacity, rate], i) => bucketOf(capacity, rate, `b${i}`)),
      });
      const keyed = bench.keyed(tier);
      for (let i = 0; i < HOT_REQUESTS; i += 1) bench.ask([keyed], [cost]);

      bench.settle();

      assert.equal(bench.limiter.counters.leaseGranted, requests * cost * buckets.length);
      for (const { key, bucket } of keyed.buckets) {
        const { full, unitsPerToken } = bucket.stored;
        const taken = (full - (bench.store.levelOf(key) ?? full)) / unitsPerToken;
        assert.equal(taken, (HOT_REQUESTS + requests) * cost);
      }
    });
  }
});

describe('those who wait', () => {
  test('while the call is under way go before those who come after, in order', () => {
    const bench = new LeaseBench();
    const order: string[] = [];
    const waiter = (name: string): RecordingWaiter =>
      new RecordingWaiter(() => {
        order.push(name);
      });
    const late = waiter('from within an answer');
    const first = new RecordingWaiter(() => {
      order.push('first');
      bench.limiter.acquire([bench.hot], [1], 1, late);
    });
    bench.limiter.acquire([bench.hot], [1], 1, first);
    for (let i = 1; i < HOT_REQUESTS; i += 1) {
      bench.limiter.acquire([bench.hot], [1], 1, waiter(`flying ${i}`));
    }
    bench.scheduler.endTurn();
    for (const i of [1, 2]) bench.limiter.acquire([bench.hot], [1], 1, waiter(`waiting ${i}`));

    bench.store.answer();
    bench.limiter.acquire([bench.hot], [1], 1, waiter('after'));

    assert.deepEqual(order, [
      ...['first', 'flying 1', 'flying 2', 'flying 3'],
      ...['waiting 1', 'waiting 2', 'from within an answer', 'after'],
    ]);
    assert.equal(bench.store.sent, 1);
    assert.equal(late.only.level, (CAPACITY - HOT_REQUESTS - 3) * UNIT);
  });

  test('are never overtaken by somebody who asks from within an answer', () => {
    const bench = new LeaseBench();
    const again: RecordingWaiter[] = [];
    const first = new RecordingWaiter(() => {
      again.push(bench.ask([bench.hot]));
    });
    bench.limiter.acquire([bench.hot], [1], 1, first);
    for (let i = 1; i < HOT_REQUESTS; i += 1) bench.ask([bench.hot]);
    bench.scheduler.endTurn();
    // As many as the lease will hold: nothing is left for whoever comes then.
    const waiting = Array.from({ length: PREFETCH }, () => bench.ask([bench.hot]));

    bench.store.answer();

    assert.ok(waiting.every(({ told }) => told.length === 1));
    assert.equal(again[0]?.told.length, 0);
    bench.settle();
    assert.equal(again[0].only.level, (CAPACITY - HOT_REQUESTS - PREFETCH - 1) * UNIT);
  });

  for (const [waiting, kind] of [
    [PREFETCH - 1, 'allowed'],
    [PREFETCH, 'denied'],
  ] as const) {
    test(`are ${waiting} and leave somebody who asks from within an answer ${kind}`, () => {
      const bench = new LeaseBench();
      bench.ask([bench.hot], [CAPACITY - HOT_REQUESTS - PREFETCH]);
      bench.settle();
      const again = new RecordingWaiter();
      const first = new RecordingWaiter(() => {
        bench.limiter.acquire([bench.hot], [1], 1, again);
      });
      bench.limiter.acquire([bench.hot], [1], 1, first);
      for (let i = 1; i < HOT_REQUESTS; i += 1) bench.ask([bench.hot]);
      bench.scheduler.endTurn();
      for (let i = 0; i < waiting; i += 1) bench.ask([bench.hot]);

      bench.store.answer();

      assert.equal(again.only.kind, kind);
    });
  }

  test('and are served from a lease leave nobody their deadline', () => {
    const bench = new LeaseBench();
    for (let i = 0; i < HOT_REQUESTS; i += 1) bench.ask([bench.hot]);
    bench.scheduler.endTurn();
    bench.ask([bench.hot]);
    bench.scheduler.advance(40_000);
    bench.store.answer();
    bench.limiter.endLeases();

    const waiter = bench.ask([bench.hot]);
    bench.scheduler.endTurn();
    bench.scheduler.advance(40_000);
    bench.store.answer();

    assert.deepEqual([waiter.only.kind, waiter.only.degraded], ['allowed', false]);
  });

  test('and give up leave their tokens to those behind them', () => {
    const bench = new LeaseBench();
    for (let i = 0; i < HOT_REQUESTS; i += 1) bench.ask([bench.hot]);
    bench.scheduler.endTurn();
    const [gone, stays] = [bench.ask([bench.hot]), bench.ask([bench.hot])];
    bench.limiter.cancel(gone);

    bench.settle();

    assert.equal(gone.told.length, 0);
    assert.equal(stays.only.level, (CAPACITY - HOT_REQUESTS - 1) * UNIT);
    assert.equal(bench.limiter.pending, 0);
  });

  test('and have all given up leave nothing to be asked for ahead', () => {
    const bench = new LeaseBench();
    bench.burst();
    bench.atOnce(PREFETCH);
    bench.limiter.cancel(bench.ask([bench.hot]));

    bench.settle();

    assert.equal(bench.limiter.counters.leaseGranted, PREFETCH);
  });

  test('beyond the lease go with the next call', () => {
    const bench = new LeaseBench();
    for (let i = 0; i < HOT_REQUESTS; i += 1) bench.ask([bench.hot]);
    bench.scheduler.endTurn();
    const waiting = Array.from({ length: PREFETCH + 2 }, () => bench.ask([bench.hot]));

    bench.store.answer();
    assert.equal(waiting.filter(({ told }) => told.length === 1).length, PREFETCH);
    bench.settle();

    assert.deepEqual(
      levels(waiting.map(({ only }) => only)),
      waiting.map((_, i) => CAPACITY - HOT_REQUESTS - 1 - i),
    );
  });
});

describe('what is left of a lease', () => {
  test('is refunded when its time is over, and not before', () => {
    const bench = new LeaseBench();
    bench.ask([bench.hot], [100]);
    bench.settle();
    bench.burst();
    bench.atOnce(4);
    bench.scheduler.advance(LEASE_US - 1);
    assert.equal(bench.store.sent, 2);

    bench.scheduler.advance(1);
    bench.settle();

    assert.equal(bench.store.sent, 3);
    // In 50 ms the bucket has earned 50.
    assert.equal(bench.left(), CAPACITY - 100 - HOT_REQUESTS - 4 + 50);
    assert.deepEqual(bench.fates(), [PREFETCH, 4, PREFETCH - 4, 0]);
    bench.scheduler.advance(2 * DEFAULT_DEADLINE_MS * 1_000);
    assert.equal(bench.scheduler.timers, 0);
  });

  test('is refunded by every bucket of every rule, at its cost', () => {
    const bench = new LeaseBench();
    const other = bench.keyed(
      tierOf({
        rule: { name: 'other' },
        buckets: [bucketOf(400, 100, 'a'), bucketOf(800, 1, 'b')],
      }),
    );
    const slow = bench.keyed(tierOf({ rule: { name: 'slow' }, buckets: [bucketOf(5_000, 100)] }));
    for (let i = 0; i < HOT_REQUESTS; i += 1) bench.ask([slow, bench.hot], [2, 1]);
    bench.settle();
    assert.equal(bench.left(slow), 5_000 - 2 * HOT_REQUESTS - 4);
    for (let i = 0; i < HOT_REQUESTS; i += 1) bench.ask([other]);

    bench.limiter.endLeases();
    bench.settle();

    assert.equal(bench.left(slow), 5_000 - 2 * HOT_REQUESTS);
    assert.equal(bench.left(), CAPACITY - HOT_REQUESTS);
    assert.deepEqual(bench.fates(), [6, 0, 6, 0]);
  });

  test('is not handed out late, also when the timer is', () => {
    const bench = new LeaseBench();
    bench.burst();
    bench.clock.us += LEASE_US;

    const waiter = bench.ask([bench.hot]);
    bench.settle();

    assert.equal(waiter.only.kind, 'allowed');
    assert.equal(bench.store.sent, 2);
    assert.deepEqual(bench.fates(), [PREFETCH, 0, PREFETCH, 0]);
  });

  test('is refunded before whoever asks next in that turn', () => {
    const bench = new LeaseBench();
    bench.ask([bench.hot], [CAPACITY - HOT_REQUESTS - PREFETCH]);
    bench.settle();
    bench.burst();
    bench.limiter.endLeases();

    const waiter = bench.ask([bench.hot], [PREFETCH]);
    bench.settle();

    assert.deepEqual([waiter.only.kind, waiter.only.level], ['allowed', 0]);
  });

  test('is refunded at once when other policies are in force', () => {
    const bench = new LeaseBench();
    bench.burst();
    bench.atOnce(1);

    bench.limiter.endLeases();
    bench.settle();

    assert.equal(bench.left(), CAPACITY - HOT_REQUESTS - 1);
    assert.deepEqual(bench.fates(), [PREFETCH, 1, PREFETCH - 1, 0]);
    bench.burst();
    assert.equal(bench.limiter.counters.leaseGranted, 2 * PREFETCH);
  });

  test('is refunded in its own time, although another one has been renewed', () => {
    const bench = new LeaseBench();
    const other = bench.keyed(tierOf({ buckets: [bucketOf(CAPACITY, 1_000)] }), 'other');
    bench.burst();
    bench.scheduler.advance(10_000);
    bench.burst(HOT_REQUESTS, other);
    bench.scheduler.advance(10_000);
    bench.atOnce(PREFETCH);
    bench.burst(1);

    bench.scheduler.advance(LEASE_US - 10_000);
    bench.settle();

    assert.deepEqual(bench.fates(), [3 * PREFETCH, PREFETCH, PREFETCH, 0]);
  });

  test('leaves the bucket to requests of another cost', () => {
    const bench = new LeaseBench();
    bench.burst();
    bench.limiter.endLeases();
    bench.settle();
    bench.ask([bench.keyed(tierOf(), 'other')]);
    for (let i = 0; i < HOT_REQUESTS; i += 1) bench.ask([bench.hot], [2]);

    bench.settle();

    assert.equal(bench.limiter.counters.leaseGranted, 2 * PREFETCH);
  });

  test('is refunded on arrival when they are in force by then', () => {
    const bench = new LeaseBench();
    for (let i = 0; i < HOT_REQUESTS; i += 1) bench.ask([bench.hot]);
    bench.scheduler.endTurn();
    const waiting = bench.ask([bench.hot]);
    bench.limiter.endLeases();

    bench.settle();

    assert.equal(waiting.only.kind, 'allowed');
    assert.equal(bench.left(), CAPACITY - HOT_REQUESTS - 1);
    assert.deepEqual(bench.fates(), [PREFETCH, 1, PREFETCH - 1, 0]);
  });

  test('is refunded when the store names another limit', () => {
    const bench = new LeaseBench();
    const [part] = [bench.hot];
    bench.burst();
    // Another pod has a newer generation; a request of another cost brings the news.
    const newer = tierOf({ policy: { generation: 2 }, buckets: [bucketOf(2 * CAPACITY, 1_000)] });
    bench.ask([bench.keyed(newer)]);
    bench.settle();
    bench.ask([part], [2]);
    bench.settle();
    assert.equal(bench.limiter.counters.limitNewer, 1);

    const waiter = bench.ask([part]);
    assert.equal(waiter.told.length, 0);
    bench.settle();

    assert.equal(waiter.only.capacity, 2 * CAPACITY);
    assert.equal(bench.left(), 2 * CAPACITY - HOT_REQUESTS - 1 - 2 - 1);
    assert.deepEqual(bench.fates(), [PREFETCH, 0, PREFETCH, 0]);
  });

  test('is not sent a second time when nobody knows whether it arrived', () => {
    for (const lose of [
      (bench: LeaseBench) => {
        bench.store.fail('down');
      },
      (bench: LeaseBench) => {
        bench.store.loseAnswers();
        bench.scheduler.advance(DEFAULT_DEADLINE_MS * 1_000);
      },
    ]) {
      const bench = new LeaseBench();
      bench.burst();
      bench.limiter.endLeases();
      bench.scheduler.endTurn();
      assert.equal(bench.store.sent, 2);

      lose(bench);
      bench.settle();
      bench.scheduler.advance(10 * LEASE_US);
      bench.settle();

      assert.equal(bench.store.sent, 2);
      assert.deepEqual(bench.fates(), [PREFETCH, 0, 0, PREFETCH]);
      assert.equal(bench.limiter.counters.chargesLost, 0);
    }
  });

  test('is lost when the store is known to be away', () => {
    const bench = new LeaseBench();
    bench.burst();
    const other = bench.keyed(tierOf(), 'other');
    for (let i = 0; i < FAILURES_TO_OPEN; i += 1) {
      bench.ask([other]);
      bench.scheduler.endTurn();
      bench.store.fail('down');
    }

    bench.limiter.endLeases();
    bench.settle();

    assert.deepEqual(bench.fates(), [PREFETCH, 0, 0, PREFETCH]);
  });

  test('is lost when the store goes away before it is sent', () => {
    const bench = new LeaseBench();
    bench.burst();
    const other = bench.keyed(tierOf(), 'other');
    const calls = Array.from({ length: FAILURES_TO_OPEN }, () => {
      bench.ask([other], [1 + bench.store.calls.length]);
      bench.scheduler.endTurn();
      return bench.store.calls.at(-1) ?? assert.fail();
    });
    bench.limiter.endLeases();
    for (const call of calls) call.onFailure('down', 'gone');

    bench.scheduler.endTurn();

    assert.deepEqual(bench.fates(), [PREFETCH, 0, 0, PREFETCH]);
  });

  test('is lost when a foreign value took the place of the bucket', () => {
    const bench = new LeaseBench();
    bench.burst();
    bench.limiter.endLeases();
    bench.scheduler.endTurn();
    const [call] = bench.store.calls.splice(0);

    call?.onReply([0, -1, 0, -1]);

    assert.deepEqual(bench.fates(), [PREFETCH, 0, 0, PREFETCH]);
  });
});

describe('a lease asked for', () => {
  test('in a call without an answer is lost, and nobody is served from it', () => {
    const bench = new LeaseBench();
    for (let i = 0; i < HOT_REQUESTS; i += 1) bench.ask([bench.hot]);
    bench.scheduler.endTurn();
    const [call] = bench.store.loseAnswers();
    bench.scheduler.advance(DEFAULT_DEADLINE_MS * 1_000);
    assert.deepEqual(bench.fates(), [PREFETCH, 0, 0, PREFETCH]);

    call?.onReply([0, HOT_REQUESTS + PREFETCH, 0, 0]);
    const waiter = bench.ask([bench.hot]);

    assert.equal(waiter.told.length, 0);
    assert.equal(bench.limiter.counters.lateReplies, 1);
    bench.settle();
    assert.deepEqual(bench.fates().slice(1), [0, 0, PREFETCH]);
  });

  test('in a call that was refused is none', () => {
    const bench = new LeaseBench();
    for (let i = 0; i < HOT_REQUESTS; i += 1) bench.ask([bench.hot]);
    bench.scheduler.endTurn();

    bench.store.fail('oom');

    assert.deepEqual(bench.fates(), [0, 0, 0, 0]);
    assert.equal(bench.limiter.pending, 0);
  });

  test('outlives a lease while its call is under way', () => {
    const bench = new LeaseBench({ deadlineMs: 1_000 });
    for (let i = 0; i < HOT_REQUESTS; i += 1) bench.ask([bench.hot]);
    bench.scheduler.endTurn();
    bench.scheduler.advance(3 * LEASE_US);

    bench.store.answer();

    assert.equal(bench.atOnce(1)[0]?.kind, 'allowed');
    assert.equal(bench.limiter.counters.leaseUsed, 1);
  });
});

describe('a request over several lanes', () => {
  test('takes what its lane holds, and a refusal elsewhere gives it back to the store', () => {
    const bench = new LeaseBench({ hasLanePerTag: true });
    const far = bench.keyed(
      tierOf({ policy: { uid: 'far' }, rule: { key: [] }, buckets: [bucketOf(1, 1)] }),
    );
    bench.burst();
    const allowed = bench.ask([bench.hot, far]);
    bench.settle();
    bench.store.listener?.onReconnect(bench.store.node);

    const denied = bench.ask([bench.hot, far]);
    bench.settle();

    assert.deepEqual([allowed.only.kind, denied.only.kind], ['allowed', 'denied']);
    assert.equal(bench.limiter.counters.leaseUsed, 2);
    assert.equal(bench.left(), CAPACITY - HOT_REQUESTS - PREFETCH + 1);
  });
});

describe('a pod whose store goes away', () => {
  test('has charged its own bucket with what it admitted, not with what it held', () => {
    const bench = new LeaseBench();
    const tier = tierOf({
      policy: { failureMode: 'Local', uid: 'local' },
      buckets: [bucketOf(CAPACITY, 1_000)],
    });
    const keyed = bench.keyed(tier);
    bench.burst(HOT_REQUESTS, keyed);
    bench.atOnce(3, keyed);

    const rest = Array.from({ length: CAPACITY }, () => bench.ask([keyed], [1]));
    bench.scheduler.endTurn();
    bench.store.fail('oom');

    const inHand = rest.filter(({ only }) => only.kind === 'allowed' && !only.degraded).length;
    const local = rest.filter(({ only }) => only.kind === 'allowed' && only.degraded).length;
    assert.equal(inHand, PREFETCH - 3);
    assert.equal(local, CAPACITY - HOT_REQUESTS - PREFETCH);
  });
});

describe('the end of a limiter', () => {
  test('waits until its leases are refunded', async () => {
    const bench = new LeaseBench();
    bench.burst();
    bench.atOnce(1);

    const ended = bench.limiter[Symbol.asyncDispose]();
    assert.equal(bench.store.sent, 2);
    bench.store.answer();
    await ended;

    assert.equal(bench.left(), CAPACITY - HOT_REQUESTS - 1);
    assert.equal(bench.scheduler.timers, 0);
  });

  test('refunds what a call under way still brings', async () => {
    const bench = new LeaseBench();
    for (let i = 0; i < HOT_REQUESTS; i += 1) bench.ask([bench.hot]);
    bench.scheduler.endTurn();

    const ended = bench.limiter[Symbol.asyncDispose]();
    bench.settle();
    await ended;

    assert.equal(bench.left(), CAPACITY - HOT_REQUESTS);
    assert.deepEqual(bench.fates(), [PREFETCH, 0, PREFETCH, 0]);
  });

  test('comes at the deadline when the store does not answer', async () => {
    const bench = new LeaseBench();
    bench.burst();

    const ended = bench.limiter[Symbol.asyncDispose]();
    bench.scheduler.advance(DEFAULT_DEADLINE_MS * 1_000);
    await ended;

    assert.deepEqual(bench.fates(), [PREFETCH, 0, 0, PREFETCH]);
    assert.equal(bench.scheduler.timers, 0);
  });

  test('comes at once when the store says that it is away', async () => {
    const bench = new LeaseBench();
    bench.burst();

    const ended = bench.limiter[Symbol.asyncDispose]();
    bench.store.fail('down');
    await ended;

    assert.deepEqual(bench.fates(), [PREFETCH, 0, 0, PREFETCH]);
  });

  test('is immediate when nothing is held or under way, and then nothing is leased', async () => {
    const bench = new LeaseBench();

    await bench.limiter[Symbol.asyncDispose]();
    bench.burst();

    assert.equal(bench.left(), CAPACITY - HOT_REQUESTS);
  });
});

describe('a refund or charge alone', () => {
  test('is given up at the deadline when the store does not answer', () => {
    const bench = new LimiterBench();
    bench.limiter.chargeDown(bench.keyed(tierOf()), 1);
    bench.scheduler.endTurn();
    bench.store.loseAnswers();

    bench.scheduler.advance(DEFAULT_DEADLINE_MS * 1_000);

    assert.equal(bench.limiter.counters.chargesLost, 1);
    assert.equal(bench.limiter.counters.errors.timeout, 1);
  });

  test('is so also when the timer of an earlier request rings just before it is sent', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf());
    bench.ask([keyed]);
    bench.settle();
    bench.clock.us += DEFAULT_DEADLINE_MS * 1_000;
    bench.limiter.chargeDown(keyed, 1);

    // The timer rings, and the turn ends after it.
    bench.scheduler.stall(0);
    bench.store.loseAnswers();
    bench.scheduler.advance(DEFAULT_DEADLINE_MS * 1_000);

    assert.equal(bench.limiter.counters.chargesLost, 1);
  });
});

describe('a server that left', () => {
  test('has no circuit breaker any more', () => {
    const bench = new LimiterBench();
    bench.ask([bench.keyed(tierOf())]);
    bench.settle();
    assert.deepEqual(bench.limiter.breakerStates(), [{ node: 'fake', state: 'closed' }]);

    bench.store.listener?.onDeparture(bench.store.node);

    assert.deepEqual(bench.limiter.breakerStates(), []);
    assert.ok(bench.store instanceof FakeStore);
  });
});
