// The limiter's life with a store that answers: grouping, batching, levels, refusing locally, shadow, lanes.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  FakeStore,
  LimiterBench,
  RecordingSink,
  RecordingWaiter,
  bucketOf,
  tierOf,
} from '../../test/support/limiter-fixture.ts';
import { StoredLimit } from '../limiter/stored-limit.ts';
import { MAX_DECISIONS_PER_CALL, MAX_KEYS_PER_CALL } from './call.ts';
import { MemoryStore } from './memory-store.ts';

function kinds(waiters: readonly RecordingWaiter[]): string[] {
  return waiters.map((waiter) => waiter.only.kind);
}

describe('a request', () => {
  test('without any part is allowed at once', () => {
    const bench = new LimiterBench();

    const waiter = bench.ask([]);

    assert.deepEqual(waiter.only.kind, 'allowed');
    assert.equal(waiter.only.bucket, undefined);
    assert.equal(waiter.only.level, -1);
  });

  test('is answered when the store answers', () => {
    const bench = new LimiterBench();

    const waiter = bench.ask([bench.keyed(tierOf())]);
    assert.equal(waiter.told.length, 0);
    bench.settle();

    assert.deepEqual(waiter.only, {
      kind: 'allowed',
      bucket: 'main',
      capacity: 5,
      level: 4_000_000,
      waitUs: 0,
      degraded: false,
      policy: undefined,
    });
    assert.equal(waiter.pending, undefined);
    assert.equal(bench.limiter.pending, 0);
  });

  test('names the bucket with the lowest level for its capacity', () => {
    const bench = new LimiterBench();
    const tier = tierOf({ buckets: [bucketOf(100, 1, 'hourly'), bucketOf(5, 1, 'burst')] });

    const waiter = bench.ask([bench.keyed(tier)]);
    bench.settle();

    assert.equal(waiter.only.bucket, 'burst');
    assert.equal(waiter.only.level, 4_000_000);
  });

  test('is refused by the bucket that is the last to be able to pay', () => {
    const bench = new LimiterBench();
    const tier = tierOf({ buckets: [bucketOf(1, 10, 'fast'), bucketOf(1, 1, 'slow')] });
    const keyed = bench.keyed(tier);

    const waiters = [bench.ask([keyed]), bench.ask([keyed])];
    bench.settle();

    assert.deepEqual(kinds(waiters), ['allowed', 'denied']);
    assert.equal(waiters[1]?.only.bucket, 'slow');
    assert.equal(waiters[1].only.waitUs, 1_000_000);
  });

  test('that costs more than a capacity is refused for ever', () => {
    const bench = new LimiterBench();
    const tier = tierOf({ buckets: [bucketOf(100, 1, 'big'), bucketOf(5, 1, 'small')] });

    const waiter = bench.ask([bench.keyed(tier)], [6]);
    bench.settle();

    assert.deepEqual(
      [waiter.only.kind, waiter.only.bucket, waiter.only.waitUs],
      ['denied', 'small', -1],
    );
  });

  test('never takes from a bucket when another one of it refuses', () => {
    const bench = new LimiterBench();
    const [wide, narrow] = [
      tierOf({ buckets: [bucketOf(9, 1)] }),
      tierOf({ rule: { name: 'narrow' }, buckets: [bucketOf(1, 1)] }),
    ];
    const parts = [bench.keyed(wide), bench.keyed(narrow)];

    const waiters = [bench.ask(parts), bench.ask(parts), bench.ask(parts)];
    bench.settle();

    assert.deepEqual(kinds(waiters), ['allowed', 'denied', 'denied']);
    assert.equal(bench.store.levelOf(parts[0]?.buckets[0]?.key ?? ''), 8_000_000);
  });

  test('may be of another cost and still see exact levels', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf({ buckets: [bucketOf(10, 1)] }));

    const waiters = [bench.ask([keyed], [3]), bench.ask([keyed], [2]), bench.ask([keyed], [3])];
    bench.settle();

    assert.equal(bench.store.sent, 1);
    // In the call the two requests of cost 3 are one decision, before the one of cost 2.
    assert.deepEqual(
      waiters.map(({ only }) => only.level),
      [7_000_000, 2_000_000, 4_000_000],
    );
  });

  test('asks again after its answer, from within it', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf());
    const again = new RecordingWaiter();
    const first = new RecordingWaiter(() => {
      bench.limiter.acquire([keyed], [1], 1, again);
    });

    bench.limiter.acquire([keyed], [1], 1, first);
    bench.settle();

    assert.equal(first.only.level, 4_000_000);
    assert.equal(again.only.level, 3_000_000);
  });

  test('asked with scratch arrays does not see what is written there later', () => {
    const bench = new LimiterBench();
    const [one, other] = [bench.keyed(tierOf(), 'one'), bench.keyed(tierOf(), 'other')];
    const parts = [one, other];
    const waiter = new RecordingWaiter();

    bench.limiter.acquire(parts, [1, 1], 1, waiter);
    parts[0] = other;
    bench.settle();

    assert.equal(bench.store.levelOf(one.buckets[0]?.key ?? ''), 4_000_000);
    assert.equal(bench.store.levelOf(other.buckets[0]?.key ?? ''), undefined);
  });
});

describe('requests that ask for the same', () => {
  test('share one decision, and each sees its own level', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf());

    const waiters = Array.from({ length: 7 }, () => bench.ask([keyed]));
    bench.settle();

    assert.deepEqual(
      waiters.map(({ only }) => only.level),
      [4e6, 3e6, 2e6, 1e6, 0, 0, 0],
    );
    assert.deepEqual(kinds(waiters).slice(4), ['allowed', 'denied', 'denied']);
    assert.equal(bench.limiter.counters.storeCalls, 1);
    assert.equal(bench.limiter.counters.decisions, 1);
    assert.equal(bench.limiter.counters.coalesced, 6);
  });

  test('that come while a call is under way wait for the next', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf({ buckets: [bucketOf(100, 1)] }));
    bench.ask([keyed]);
    bench.scheduler.endTurn();

    const late = [bench.ask([keyed]), bench.ask([keyed])];
    bench.scheduler.endTurn();
    assert.equal(bench.store.sent, 1);
    bench.settle();

    assert.equal(bench.store.sent, 2);
    assert.deepEqual(
      late.map(({ only }) => only.level),
      [98e6, 97e6],
    );
  });

  test('are told apart by key, by cost, and by the set of rules', () => {
    const bench = new LimiterBench();
    const tier = tierOf({ buckets: [bucketOf(100, 1)] });
    const [a, b] = [bench.keyed(tier, 'a'), bench.keyed(tier, 'b')];
    const waiters = [
      bench.ask([a]),
      bench.ask([b]),
      bench.ask([a], [2]),
      bench.ask([a, b]),
      bench.ask([b, a]),
    ];

    bench.settle();

    assert.equal(bench.limiter.counters.decisions, 5);
    assert.ok(kinds(waiters).every((kind) => kind === 'allowed'));
    assert.equal(bench.store.levelOf(a.buckets[0]?.key ?? ''), 95e6);
    assert.equal(bench.store.levelOf(b.buckets[0]?.key ?? ''), 97e6);
  });

  test('are told apart when their hashes are equal, in whatever order they end', () => {
    for (const order of [
      [0, 1, 2],
      [2, 1, 0],
      [1, 0, 2],
    ]) {
      const bench = new LimiterBench();
      const tier = tierOf({ buckets: [bucketOf(1_000, 1)] });
      const keys = ['a', 'b', 'c'].map((text) => bench.keyed(tier, text));
      // The hash is linear in id and weight, and ids follow each other.
      const waiters = keys.map((keyed, i) => bench.ask([keyed], [63 - 31 * i]));
      bench.scheduler.endTurn();
      const [call] = bench.store.calls.splice(0);
      assert.ok(call);
      const reply = bench.store.execute(call);
      const again = order.map((i) => bench.ask([keys[i] ?? assert.fail()], [63 - 31 * i]));
      for (const i of order.slice(0, 1)) bench.limiter.cancel(again[i] ?? assert.fail());

      call.onReply(reply);
      bench.settle();

      assert.deepEqual(
        waiters.map(({ only }) => only.level / 1e6),
        [937, 968, 999],
      );
      assert.equal(again.filter(({ told }) => told.length === 1).length, 2);
      assert.equal(bench.limiter.pending, 0);
    }
  });

  test('of refused groups do not hold back others', () => {
    const bench = new LimiterBench();
    const [empty, rich] = [bench.keyed(tierOf(), 'empty'), bench.keyed(tierOf(), 'rich')];
    Array.from({ length: 6 }, () => bench.ask([empty]));
    bench.settle();

    const refused = bench.ask([empty]);
    const passed = bench.ask([rich]);
    bench.settle();

    assert.deepEqual(kinds([refused, passed]), ['denied', 'allowed']);
  });
});

describe('a call', () => {
  test('holds everything that became ready in one turn', () => {
    const bench = new LimiterBench();
    const tier = tierOf();
    for (let i = 0; i < 50; i += 1) bench.ask([bench.keyed(tier, `key ${i}`)]);

    bench.settle();

    assert.equal(bench.store.sent, 1);
    assert.equal(bench.limiter.counters.decisions, 50);
  });

  for (const [keys, calls] of [
    [MAX_KEYS_PER_CALL, 1],
    [MAX_KEYS_PER_CALL + 1, 2],
  ] as const) {
    test(`holds ${MAX_KEYS_PER_CALL} keys at most: ${keys} keys go in ${calls}`, () => {
      const bench = new LimiterBench();
      const tier = tierOf();
      const waiters = Array.from({ length: keys }, (_, i) =>
        bench.ask([bench.keyed(tier, `key ${i}`)]),
      );

      bench.settle();

      assert.equal(bench.store.sent, calls);
      assert.ok(kinds(waiters).every((kind) => kind === 'allowed'));
    });
  }

  test('holds a single decision over more buckets than that', () => {
    const bench = new LimiterBench();
    const parts = Array.from({ length: 200 }, (_, i) =>
      bench.keyed(tierOf({ rule: { name: `r${i}` } })),
    );

    const waiter = bench.ask(parts);
    bench.settle();

    assert.equal(waiter.only.kind, 'allowed');
    assert.equal(bench.store.sent, 1);
  });

  test('holds one limit per key: requests under an old and a new bundle go in two', () => {
    const bench = new LimiterBench();
    const [before, after] = [
      tierOf(),
      tierOf({ policy: { generation: 2 }, buckets: [bucketOf(7, 1)] }),
    ];

    const waiters = [bench.ask([bench.keyed(before)]), bench.ask([bench.keyed(after)])];
    bench.settle();

    assert.equal(bench.store.sent, 2);
    assert.deepEqual(
      waiters.map(({ only }) => only.level),
      [4e6, 5e6],
    );
  });

  test('that is answered with less than it asked for is a failure', () => {
    const bench = new LimiterBench();
    const waiter = bench.ask([bench.keyed(tierOf())]);
    bench.scheduler.endTurn();

    bench.store.calls[0]?.onReply([1]);

    assert.deepEqual([waiter.only.kind, waiter.only.degraded], ['allowed', true]);
    assert.equal(bench.limiter.counters.errors.script, 1);
  });
});

describe('what the store refused', () => {
  test('is refused here until it may pass', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf());
    Array.from({ length: 6 }, () => bench.ask([keyed]));
    bench.settle();

    bench.clock.us += 400_000;
    const waiter = bench.ask([keyed]);

    assert.deepEqual([waiter.only.kind, waiter.only.waitUs], ['denied', 600_000]);
    assert.equal(bench.limiter.counters.denyCacheHits, 1);
    bench.clock.us += 600_000;
    const passed = bench.ask([keyed]);
    bench.settle();
    assert.equal(passed.only.kind, 'allowed');
  });

  test('costs less than two calls a second under attack', () => {
    const bench = new LimiterBench();
    // One token in ten minutes.
    const limit = { capacity: 1, unitsPerToken: 600_000_000, unitsPerTick: 1, tickUs: 1 } as const;
    const keyed = bench.keyed(tierOf({ buckets: [{ name: 'main', limit }] }));
    bench.ask([keyed]);
    bench.settle();
    const before = bench.store.sent;

    for (let ms = 0; ms < 10_000; ms += 1) {
      bench.clock.us += 1_000;
      bench.ask([keyed]);
      bench.settle();
    }

    assert.ok(bench.store.sent - before < 20, `${bench.store.sent - before} calls in 10 s`);
  });

  test('is asked again after a reconnect', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf());
    Array.from({ length: 6 }, () => bench.ask([keyed]));
    bench.settle();
    bench.store.flush();

    bench.store.listener?.onReconnect(bench.store.node);
    const waiter = bench.ask([keyed]);
    bench.settle();

    assert.equal(waiter.only.kind, 'allowed');
  });

  test('is refused for every cost it certainly cannot pay, and asked for the others', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf());
    bench.ask([keyed], [3]);
    bench.settle();

    const [dear, cheap] = [bench.ask([keyed], [4]), bench.ask([keyed], [2])];
    bench.settle();

    assert.deepEqual(kinds([dear, cheap]), ['denied', 'allowed']);
    assert.equal(bench.limiter.counters.denyCacheHits, 1);
  });

  test('is refused with the longest of the waits known', () => {
    const bench = new LimiterBench();
    const tiers = [10, 1, 2].map((rate) =>
      tierOf({ rule: { name: `rate-${rate}` }, buckets: [bucketOf(1, rate, `at-${rate}`)] }),
    );
    const parts = tiers.map((tier) => bench.keyed(tier));
    bench.ask(parts);
    bench.settle();

    const waiter = bench.ask(parts);

    assert.deepEqual([waiter.only.bucket, waiter.only.waitUs], ['at-1', 1_000_000]);
  });

  test('for ever is refused here without a wait', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf());
    bench.ask([keyed], [6]);
    bench.settle();

    const waiter = bench.ask([keyed], [6]);

    assert.deepEqual([waiter.only.kind, waiter.only.waitUs], ['denied', -1]);
    assert.equal(bench.limiter.counters.denyCacheHits, 1);
  });

  test('by a store whose clock was set back waits as long as the store said', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf());
    bench.ask([keyed], [5]);
    bench.settle();
    bench.clock.us += 200_000;
    bench.limiter.acquire([keyed], [1], 1, new RecordingWaiter());
    bench.store.listener?.onReconnect(bench.store.node);
    const stepped = new RecordingWaiter();
    bench.limiter.acquire([keyed], [1], 1, stepped);
    bench.scheduler.endTurn();
    // The same call, executed by a clock that stands 3 s earlier.
    for (const call of bench.store.calls.splice(0)) {
      bench.clock.us -= 3_000_000;
      const reply = bench.store.execute(call);
      bench.clock.us += 3_000_000;
      call.onReply(reply);
    }
    const told = stepped.only.waitUs;

    bench.clock.us += 100_000;
    const cached = bench.ask([keyed]);

    assert.equal(told, 3_800_000);
    assert.equal(cached.only.waitUs, 3_700_000);
  });
});

describe('a sidecar of an older generation', () => {
  test('obeys the newer limit and says it', () => {
    const bench = new LimiterBench();
    const [old, newer] = [
      tierOf(),
      tierOf({ policy: { generation: 2 }, buckets: [bucketOf(2, 1)] }),
    ];
    bench.ask([bench.keyed(newer)]);
    bench.settle();

    const waiters = [bench.ask([bench.keyed(old)]), bench.ask([bench.keyed(old)])];
    bench.settle();

    assert.deepEqual(
      waiters.map(({ only }) => [only.kind, only.capacity]),
      [
        ['allowed', 2],
        ['denied', 2],
      ],
    );
    assert.equal(bench.limiter.counters.limitNewer, 1);
  });

  test('says its own limit again once it is in force', () => {
    const bench = new LimiterBench();
    const [old, newer] = [
      tierOf(),
      tierOf({ policy: { generation: 2 }, buckets: [bucketOf(2, 1)] }),
    ];
    bench.ask([bench.keyed(newer)]);
    bench.settle();
    bench.ask([bench.keyed(old)]);
    bench.settle();
    bench.store.flush();
    bench.clock.us += 1_000_001;

    const waiter = bench.ask([bench.keyed(old)]);
    bench.settle();

    assert.equal(waiter.only.capacity, 5);
  });
});

describe('a shadow rule', () => {
  test('counts what enforcing would do, on its own buckets', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf({ buckets: [bucketOf(2, 1)] }));
    const sink = new RecordingSink();

    for (let i = 0; i < 3; i += 1) bench.limiter.shadow(keyed, 1, sink);
    bench.settle();
    bench.limiter.shadow(keyed, 1, sink);

    assert.deepEqual(sink.verdicts, ['allowed', 'allowed', 'denied', 'denied']);
    assert.equal(bench.limiter.counters.denyCacheHits, 1);
  });

  test('goes on from the true level when it is enforced', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf({ buckets: [bucketOf(2, 1)] }));
    bench.limiter.shadow(keyed, 2, new RecordingSink());
    bench.settle();

    const waiter = bench.ask([keyed]);

    assert.equal(waiter.only.kind, 'denied');
  });

  test('is unknown when the store fails, whatever the failure mode', () => {
    const bench = new LimiterBench();
    const sink = new RecordingSink();
    bench.limiter.shadow(bench.keyed(tierOf({ policy: { failureMode: 'Open' } })), 1, sink);
    bench.scheduler.endTurn();

    bench.store.fail('oom');

    assert.deepEqual(sink.verdicts, ['unknown']);
  });

  test('never shares a decision with an enforced one', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf({ buckets: [bucketOf(1, 1)] }));
    const sink = new RecordingSink();

    const waiter = bench.ask([keyed]);
    bench.limiter.shadow(keyed, 1, sink);
    bench.settle();

    assert.equal(waiter.only.kind, 'allowed');
    assert.deepEqual(sink.verdicts, ['denied']);
    assert.equal(bench.limiter.counters.decisions, 2);
  });
});

describe('the cost of a response', () => {
  test('is charged down to an empty bucket and never below', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf());
    bench.ask([keyed]);
    bench.settle();

    bench.limiter.chargeDown(keyed, 100);
    bench.settle();

    assert.equal(bench.store.levelOf(keyed.buckets[0]?.key ?? ''), 0);
  });

  test('goes before the requests of the same turn, whose levels stay exact', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf());

    const waiters = [bench.ask([keyed]), bench.ask([keyed])];
    bench.limiter.chargeDown(keyed, 2);
    bench.settle();

    assert.equal(bench.store.sent, 1);
    assert.deepEqual(
      waiters.map(({ only }) => only.level),
      [2e6, 1e6],
    );
  });

  for (const [charges, calls] of [
    [MAX_DECISIONS_PER_CALL, 1],
    [MAX_DECISIONS_PER_CALL + 1, 2],
  ] as const) {
    test(`shares a call with ${MAX_DECISIONS_PER_CALL - 1} others at most: ${charges} go in ${calls}`, () => {
      const bench = new LimiterBench();
      const keyed = bench.keyed(tierOf());
      for (let i = 0; i < charges; i += 1) bench.limiter.chargeDown(keyed, 1);

      bench.settle();

      assert.equal(bench.store.sent, calls);
      assert.equal(bench.limiter.counters.chargesLost, 0);
    });
  }
});

describe('a request over several lanes', () => {
  const policyOf = (uid: string, keys: number): Parameters<typeof tierOf>[0] => ({
    policy: { uid, name: uid },
    rule: { key: Array.from({ length: keys }, () => ({ kind: 'clientIP' }) as const) },
    buckets: [bucketOf(2, 1, uid)],
  });

  test('is charged lane by lane, the narrowest key first', () => {
    const bench = new LimiterBench({ hasLanePerTag: true });
    const [wide, narrow] = [
      bench.keyed(tierOf(policyOf('wide', 0))),
      bench.keyed(tierOf(policyOf('narrow', 2))),
    ];

    const waiter = bench.ask([wide, narrow]);
    bench.scheduler.endTurn();

    assert.deepEqual(
      bench.store.calls.map(({ keys }) => keys),
      [[narrow.buckets[0]?.key]],
    );
    bench.settle();
    assert.deepEqual([waiter.only.kind, waiter.only.level], ['allowed', 1e6]);
    assert.equal(waiter.pending, undefined);
  });

  test('gives back what earlier lanes granted when a later one refuses', () => {
    const bench = new LimiterBench({ hasLanePerTag: true });
    const [wide, narrow] = [
      bench.keyed(tierOf(policyOf('wide', 0))),
      bench.keyed(tierOf(policyOf('narrow', 1))),
    ];
    bench.ask([wide], [2]);
    bench.settle();
    bench.store.listener?.onReconnect(bench.store.node);

    const waiter = bench.ask([wide, narrow]);
    bench.settle();

    assert.deepEqual([waiter.only.kind, waiter.only.bucket], ['denied', 'wide']);
    assert.equal(bench.store.levelOf(narrow.buckets[0]?.key ?? ''), 2e6);
  });

  test('names the tightest bucket of all lanes', () => {
    const bench = new LimiterBench({ hasLanePerTag: true });
    const [a, b, c] = ['a', 'b', 'c'].map((uid) => bench.keyed(tierOf(policyOf(uid, 1))));
    assert.ok(a && b && c);
    bench.ask([b]);
    bench.settle();

    const waiter = bench.ask([a, b, c]);
    bench.settle();

    assert.deepEqual([waiter.only.bucket, waiter.only.level], ['b', 0]);
  });

  test('can be cancelled in any of them', () => {
    const bench = new LimiterBench({ hasLanePerTag: true });
    const parts = ['a', 'b'].map((uid) => bench.keyed(tierOf(policyOf(uid, 1))));
    const waiter = bench.ask(parts);
    bench.scheduler.endTurn();
    bench.store.answer();

    bench.limiter.cancel(waiter);
    bench.settle();

    assert.equal(waiter.told.length, 0);
    assert.equal(waiter.pending, undefined);
    assert.equal(bench.limiter.pending, 0);
  });

  test('takes from the buckets of the pod in this process', () => {
    const bench = new LimiterBench();
    const pod = bench.keyed(
      tierOf({ policy: { uid: 'pod', scope: 'Pod' }, buckets: [bucketOf(1, 1, 'pod')] }),
    );
    const shared = bench.keyed(tierOf({ buckets: [bucketOf(2, 1, 'shared')] }));

    const waiters = [bench.ask([shared, pod]), bench.ask([shared, pod])];
    bench.settle();

    assert.deepEqual(kinds(waiters), ['allowed', 'denied']);
    assert.equal(waiters[1]?.only.bucket, 'pod');
    assert.equal(bench.store.levelOf(shared.buckets[0]?.key ?? ''), 1e6);
    assert.equal(bench.store.levelOf(pod.buckets[0]?.key ?? ''), undefined);
  });

  test('gives the pod its tokens back when the shared bucket refuses', () => {
    const bench = new LimiterBench();
    const pod = bench.keyed(
      tierOf({ policy: { uid: 'pod', scope: 'Pod' }, buckets: [bucketOf(2, 1, 'pod')] }),
    );
    const shared = bench.keyed(tierOf({ buckets: [bucketOf(1, 1, 'shared')] }));
    bench.ask([shared]);
    bench.settle();
    bench.store.listener?.onReconnect(bench.store.node);

    const refused = bench.ask([shared, pod]);
    bench.settle();
    const alone = bench.ask([pod]);

    assert.equal(refused.only.bucket, 'shared');
    assert.equal(alone.only.level, 1e6);
  });
});

describe('the order', () => {
  test('of rules and buckets never changes an outcome', () => {
    const orders = [
      [0, 1, 2],
      [0, 2, 1],
      [1, 0, 2],
      [1, 2, 0],
      [2, 0, 1],
      [2, 1, 0],
    ];

    const outcomes = orders.map((order) => {
      const bench = new LimiterBench();
      const parts = order.map((i) => {
        const name = `rule-${i}`;
        const buckets = [bucketOf(3 + i, 1, name), bucketOf(9, 1, 'x')];
        return bench.keyed(tierOf({ rule: { name }, buckets }));
      });
      const waiters = Array.from({ length: 6 }, () => bench.ask(parts));
      bench.settle();
      return waiters.map(({ only }) => [only.kind, only.bucket, only.level, only.waitUs]);
    });

    for (const outcome of outcomes) assert.deepEqual(outcome, outcomes[0]);
  });
});

describe('an embedded store', () => {
  test('decides before the call returns', () => {
    const bench = new LimiterBench();
    const clock = bench.clock;
    const embedded = new LimiterBench({ store: new MemoryStore(clock), clock });
    const keyed = embedded.keyed(tierOf({ buckets: [bucketOf(1, 1)] }));

    const waiters = [embedded.ask([keyed]), embedded.ask([keyed])];

    assert.deepEqual(kinds(waiters), ['allowed', 'denied']);
  });

  test('decides for a request that asks from within its answer', () => {
    const bench = new LimiterBench();
    const embedded = new LimiterBench({ store: new MemoryStore(bench.clock), clock: bench.clock });
    const keyed = embedded.keyed(tierOf({ buckets: [bucketOf(3, 1)] }));
    const again = new RecordingWaiter();
    const first = new RecordingWaiter(() => {
      embedded.limiter.acquire([keyed], [1], 1, again);
    });

    embedded.limiter.acquire([keyed], [1], 1, first);

    assert.deepEqual([first.only.level, again.only.level], [2e6, 1e6]);
  });

  test('takes charges and shadow decisions at once', () => {
    const bench = new LimiterBench();
    const embedded = new LimiterBench({ store: new MemoryStore(bench.clock), clock: bench.clock });
    const keyed = embedded.keyed(tierOf({ buckets: [bucketOf(3, 1)] }));
    const sink = new RecordingSink();

    embedded.limiter.chargeDown(keyed, 2);
    embedded.limiter.shadow(keyed, 1, sink);
    embedded.limiter.shadow(keyed, 1, sink);

    assert.deepEqual(sink.verdicts, ['allowed', 'denied']);
  });
});

describe('a store behind a process boundary', () => {
  test('gets and gives plain data only', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf());
    const waiter = bench.ask([keyed]);
    bench.scheduler.endTurn();
    const [call] = bench.store.calls;
    assert.ok(call);

    const { keys, limits, operations } = call;
    const wire: unknown = JSON.parse(JSON.stringify({ keys, limits, operations }));
    const other = new FakeStore(bench.clock);
    assert.ok(isWire(wire));
    const rebuilt = wire.limits.map((limit) => new StoredLimit(limit.generation, limit));
    const reply = other.execute({ ...call, ...wire, limits: rebuilt });
    const answer: unknown = JSON.parse(JSON.stringify(reply));
    assert.ok(Array.isArray(answer));
    call.onReply(answer.map((item: unknown) => (typeof item === 'number' ? item : String(item))));

    assert.deepEqual([waiter.only.kind, waiter.only.level], ['allowed', 4e6]);
  });
});

interface Wire {
  readonly keys: readonly string[];
  readonly limits: readonly StoredLimit[];
  readonly operations: readonly number[];
}

function isWire(value: unknown): value is Wire {
  return (
    typeof value === 'object' &&
    value !== null &&
    'keys' in value &&
    'limits' in value &&
    'operations' in value
  );
}
