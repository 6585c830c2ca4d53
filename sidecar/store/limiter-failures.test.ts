// The limiter's life with a store that does not answer: deadlines, breaker, failure modes, bounds. Nobody waits
// for ever, nobody hears twice, and nothing is charged twice.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  LimiterBench,
  RecordingSink,
  RecordingWaiter,
  bucketOf,
  tierOf,
} from '../../test/support/limiter-fixture.ts';
import type { FailureMode } from '../../contract/bundle.ts';
import { FAILURES_TO_OPEN, MAX_REST_US } from '../limiter/breaker.ts';
import { IDLE_PROBE_MS } from './idle-probes.ts';
import { MAX_MAINTENANCE } from './lane.ts';
import type { BreakerTransition } from './node-breakers.ts';
import { DEFAULT_DEADLINE_MS } from './limiter.ts';
import { FAILURE_KINDS, type FailureKind } from './store.ts';

const DEADLINE_US = DEFAULT_DEADLINE_MS * 1_000;

function modeTier(failureMode: FailureMode, replicas = 1): ReturnType<typeof tierOf> {
  return tierOf({
    policy: { uid: failureMode, name: failureMode, failureMode, replicas },
    rule: { name: failureMode.toLowerCase() },
  });
}

/** The store refuses everything until the breaker opens. */
function openTheBreaker(bench: LimiterBench): void {
  const keyed = bench.keyed(tierOf({ policy: { uid: 'other' } }), 'breaker');
  for (let i = 0; i < FAILURES_TO_OPEN; i += 1) {
    bench.ask([keyed]);
    bench.scheduler.endTurn();
    bench.store.fail('down');
  }
}

describe('a deadline', () => {
  test('ends the wait at its time and not before', () => {
    const bench = new LimiterBench();
    const waiter = bench.ask([bench.keyed(tierOf())]);
    bench.scheduler.endTurn();

    bench.scheduler.advance(DEADLINE_US - 1);
    assert.equal(waiter.told.length, 0);
    bench.scheduler.advance(1);

    assert.deepEqual([waiter.only.kind, waiter.only.degraded], ['allowed', true]);
    assert.equal(bench.limiter.counters.errors.timeout, 1);
    assert.equal(bench.limiter.counters.chargeUnknown, 1);
    assert.equal(bench.limiter.pending, 0);
  });

  test('counts from when the request came, also while it waits behind a call', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf({ buckets: [bucketOf(100, 1)] }));
    const first = bench.ask([keyed]);
    bench.scheduler.endTurn();
    bench.scheduler.advance(30_000);
    const second = bench.ask([keyed]);

    bench.scheduler.advance(20_000);
    assert.deepEqual([first.told.length, second.told.length], [1, 0]);
    bench.scheduler.endTurn();
    bench.scheduler.advance(30_000);

    assert.equal(second.only.degraded, true);
    assert.equal(bench.store.sent, 2);
  });

  test('frees the slot of its group, and the late answer is dropped', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf());
    const lost = bench.ask([keyed]);
    bench.scheduler.endTurn();
    bench.scheduler.advance(DEADLINE_US);
    const next = bench.ask([keyed]);
    bench.scheduler.endTurn();

    assert.equal(bench.store.answer(), 2);

    assert.equal(lost.only.degraded, true);
    assert.deepEqual([next.only.degraded, next.only.level], [false, 3e6]);
    assert.equal(bench.limiter.counters.lateReplies, 1);
  });

  test('lets one poll phase pass: an answer that is in the socket still counts', () => {
    const bench = new LimiterBench();
    const waiter = bench.ask([bench.keyed(tierOf())]);
    bench.scheduler.endTurn();

    bench.scheduler.stall(60_000, () => {
      bench.store.answer();
    });

    assert.equal(waiter.only.degraded, false);
    assert.equal(bench.limiter.counters.errors.timeout, 0);
  });

  test('after a stall of the event loop does not count against the store', () => {
    const transitions: BreakerTransition[] = [];
    const bench = new LimiterBench({ onTransition: (event) => transitions.push(event) });
    const keyed = bench.keyed(tierOf());

    for (let i = 0; i < 3 * FAILURES_TO_OPEN; i += 1) {
      bench.ask([keyed]);
      bench.scheduler.endTurn();
      bench.scheduler.stall(2 * DEADLINE_US);
      bench.store.loseAnswers();
    }

    assert.deepEqual(transitions, []);
    assert.equal(bench.limiter.counters.errors.timeout, 3 * FAILURES_TO_OPEN);
  });

  test('that is far away does not ring early, however often somebody asks', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf({ buckets: [bucketOf(1_000, 1)] }));

    for (let i = 0; i < 200; i += 1) {
      bench.ask([keyed]);
      bench.settle();
      bench.scheduler.advance(1_000);
      assert.ok(bench.scheduler.timers <= 1);
    }

    assert.equal(bench.limiter.counters.errors.timeout, 0);
    bench.scheduler.advance(DEADLINE_US);
    assert.equal(bench.scheduler.timers, 0);
  });

  test('of requests over several lanes counts from the first', () => {
    const bench = new LimiterBench({ hasLanePerTag: true });
    const parts = ['a', 'b'].map((uid) => bench.keyed(tierOf({ policy: { uid } })));
    const waiter = bench.ask(parts);
    bench.scheduler.endTurn();
    bench.scheduler.advance(40_000);
    bench.store.answer();
    bench.scheduler.endTurn();

    bench.scheduler.advance(10_000);

    assert.equal(waiter.only.degraded, true);
  });

  test('of a request that joins late by another lane comes before those of its group', () => {
    const bench = new LimiterBench({ hasLanePerTag: true });
    const [a, b] = ['a', 'b'].map((uid) =>
      bench.keyed(tierOf({ policy: { uid }, buckets: [bucketOf(100, 1)] })),
    );
    assert.ok(a && b);
    bench.ask([b]);
    bench.scheduler.endTurn();
    const over = bench.ask([a, b]);
    bench.scheduler.endTurn();
    bench.scheduler.advance(30_000);
    const young = bench.ask([b]);
    const [, stage] = bench.store.calls;
    bench.store.calls.length = 1;
    assert.ok(stage);
    stage.onReply(bench.store.execute(stage));
    bench.ask([b, a]);

    bench.scheduler.advance(20_000);

    assert.equal(over.only.degraded, true);
    assert.equal(young.told.length, 0);
  });
});

describe('the failure mode', () => {
  test('Open lets pass', () => {
    const bench = new LimiterBench();
    const waiter = bench.ask([bench.keyed(modeTier('Open'))]);
    bench.scheduler.endTurn();

    bench.store.fail('oom');

    assert.deepEqual(waiter.only, {
      kind: 'allowed',
      bucket: undefined,
      capacity: undefined,
      level: -1,
      waitUs: 0,
      degraded: true,
      policy: undefined,
    });
  });

  test('Closed is unavailable and names its policy', () => {
    const bench = new LimiterBench();
    const waiter = bench.ask([bench.keyed(modeTier('Closed'))]);
    bench.scheduler.endTurn();

    bench.store.fail('auth');

    assert.deepEqual([waiter.only.kind, waiter.only.policy], ['unavailable', 'Closed']);
  });

  test('Local admits its share and refuses beyond, without numbers that are not known', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(modeTier('Local', 2));
    const waiters = Array.from({ length: 4 }, () => bench.ask([keyed]));
    bench.scheduler.endTurn();

    bench.store.fail('down');

    assert.deepEqual(
      waiters.map(({ only }) => only.kind),
      ['allowed', 'allowed', 'denied', 'denied'],
    );
    assert.deepEqual(waiters[0]?.only.bucket, undefined);
    assert.deepEqual([waiters[2]?.only.level, waiters[2]?.only.waitUs], [-1, 2_000_000]);
  });

  test('Local answers a cost above its share as Closed', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(modeTier('Local', 2));
    const waiters = [bench.ask([keyed], [3]), bench.ask([keyed], [2])];
    bench.scheduler.endTurn();

    bench.store.fail('down');

    assert.deepEqual(
      waiters.map(({ only }) => only.kind),
      ['unavailable', 'allowed'],
    );
  });

  test('of several policies: Closed before Local before Open', () => {
    const modes: readonly (readonly FailureMode[])[] = [
      ['Open', 'Local', 'Closed'],
      ['Open', 'Local'],
      ['Local', 'Open'],
    ];

    const outcomes = modes.map((set) => {
      const bench = new LimiterBench();
      const parts = set.map((mode) => bench.keyed(modeTier(mode, 5)));
      const waiters = [bench.ask(parts), bench.ask(parts)];
      bench.scheduler.endTurn();
      bench.store.fail('down');
      return waiters.map(({ only }) => only.kind);
    });

    assert.deepEqual(outcomes, [
      ['unavailable', 'unavailable'],
      ['allowed', 'denied'],
      ['allowed', 'denied'],
    ]);
  });

  test('Local starts from what the store has admitted here', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(modeTier('Local'));
    Array.from({ length: 4 }, () => bench.ask([keyed]));
    bench.settle();

    const waiters = [bench.ask([keyed]), bench.ask([keyed])];
    bench.scheduler.endTurn();
    bench.store.fail('down');

    assert.deepEqual(
      waiters.map(({ only }) => only.kind),
      ['allowed', 'denied'],
    );
  });

  test('Local is charged by the cost of responses too', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(modeTier('Local'));
    bench.limiter.chargeDown(keyed, 5);
    const waiter = bench.ask([keyed]);
    bench.scheduler.endTurn();

    bench.store.fail('down');

    assert.equal(waiter.only.kind, 'denied');
  });

  test('Local keeps its level when the number of pods changes', () => {
    const bench = new LimiterBench();
    const before = bench.keyed(modeTier('Local', 1));
    Array.from({ length: 5 }, () => bench.ask([before]));
    bench.settle();
    bench.store.listener?.onReconnect(bench.store.node);

    const outcomes = [2, 1, 5, 1].map((replicas) => {
      const waiter = bench.ask([bench.keyed(modeTier('Local', replicas))]);
      bench.scheduler.endTurn();
      bench.store.fail('oom');
      return waiter.only.kind;
    });

    assert.deepEqual(outcomes, ['denied', 'denied', 'denied', 'denied']);
  });

  test('decides for a foreign value alone, not for the rest of the call', () => {
    const bench = new LimiterBench();
    const [foreign, sound] = [bench.keyed(modeTier('Closed')), bench.keyed(tierOf())];
    const waiters = [bench.ask([foreign]), bench.ask([sound])];
    bench.scheduler.endTurn();
    const [call] = bench.store.calls;
    assert.ok(call);

    const reply = bench.store.execute(call);
    reply[1] = -1;
    reply[5] = -1;
    call.onReply(reply);

    assert.deepEqual(
      waiters.map(({ only }) => only.kind),
      ['unavailable', 'allowed'],
    );
    assert.equal(waiters[1]?.only.degraded, false);
    assert.equal(bench.limiter.counters.errors.foreign, 1);
    assert.deepEqual(bench.limiter.breakerStates(), [{ node: 'fake', state: 'closed' }]);
  });

  for (const kind of FAILURE_KINDS.filter(
    (any): any is Exclude<FailureKind, 'foreign' | 'overload'> =>
      any !== 'foreign' && any !== 'overload',
  )) {
    test(`counts ${kind} under its own name`, () => {
      const bench = new LimiterBench();
      bench.ask([bench.keyed(tierOf())]);
      bench.scheduler.endTurn();

      bench.store.fail(kind);

      assert.equal(bench.limiter.counters.errors[kind], 1);
      assert.equal(bench.limiter.counters.failures, 1);
      assert.equal(
        bench.limiter.counters.chargeUnknown,
        kind === 'timeout' || kind === 'down' ? 1 : 0,
      );
    });
  }
});

describe('the circuit breaker', () => {
  test('keeps requests from waiting while the node rests', () => {
    const bench = new LimiterBench();
    openTheBreaker(bench);
    const sent = bench.store.sent;

    const waiter = bench.ask([bench.keyed(modeTier('Closed'))]);

    assert.equal(waiter.only.kind, 'unavailable');
    bench.scheduler.endTurn();
    assert.equal(bench.store.sent, sent);
  });

  test('lets one call probe, and everybody in again when it is answered', () => {
    const transitions: BreakerTransition[] = [];
    const bench = new LimiterBench({ onTransition: (event) => transitions.push(event) });
    openTheBreaker(bench);
    bench.clock.us += MAX_REST_US;
    const [probe, another] = [bench.keyed(tierOf(), 'probe'), bench.keyed(tierOf(), 'another')];

    const first = bench.ask([probe]);
    bench.scheduler.endTurn();
    const second = bench.ask([another]);
    assert.equal(second.only.degraded, true);
    bench.store.answer();
    const third = bench.ask([another]);
    bench.settle();

    assert.deepEqual([first.only.degraded, third.only.degraded], [false, false]);
    assert.deepEqual(
      transitions.map(({ from, to, cause }) => [from, to, cause]),
      [
        ['closed', 'open', 'down'],
        ['open', 'half-open', undefined],
        ['half-open', 'closed', undefined],
      ],
    );
    assert.deepEqual([transitions[0]?.node, transitions[0]?.detail], ['fake', 'fake down']);
  });

  test('finds out by itself that the node is back where nobody asks, and charges nothing for it', () => {
    const bench = new LimiterBench();
    openTheBreaker(bench);
    const [sent, decisions] = [bench.store.sent, bench.limiter.counters.decisions];

    bench.scheduler.advance(IDLE_PROBE_MS * 1_000);
    bench.scheduler.endTurn();
    bench.store.fail('down');
    assert.equal(bench.limiter.breakerStates()[0]?.state, 'open');
    bench.scheduler.advance(IDLE_PROBE_MS * 1_000);
    bench.settle();

    assert.equal(bench.limiter.breakerStates()[0]?.state, 'closed');
    assert.equal(bench.limiter.counters.decisions, decisions + 2);
    const waiter = bench.ask([bench.keyed(tierOf({ policy: { uid: 'other' } }), 'breaker')]);
    bench.settle();
    assert.equal(waiter.only.degraded, false);
    bench.scheduler.advance(10 * IDLE_PROBE_MS * 1_000);
    bench.settle();
    assert.equal(bench.store.sent, sent + 3, 'it asks no more');
  });

  test('does not ask when the limiter has ended', async () => {
    const bench = new LimiterBench();
    openTheBreaker(bench);
    const { sent } = bench.store;

    await bench.limiter[Symbol.asyncDispose]();
    bench.scheduler.advance(2 * IDLE_PROBE_MS * 1_000);
    bench.settle();

    assert.equal(bench.store.sent, sent);
  });

  test('rests again when the probe fails', () => {
    const bench = new LimiterBench();
    openTheBreaker(bench);
    bench.clock.us += MAX_REST_US;
    bench.ask([bench.keyed(tierOf())]);
    bench.scheduler.endTurn();

    bench.store.fail('timeout');

    assert.equal(bench.limiter.breakerStates()[0]?.state, 'open');
    assert.equal(bench.ask([bench.keyed(tierOf())]).only.degraded, true);
  });

  test('probes again after a probe that a stall of our own has lost', () => {
    const bench = new LimiterBench();
    openTheBreaker(bench);
    bench.scheduler.advance(MAX_REST_US);
    bench.ask([bench.keyed(tierOf())]);
    bench.scheduler.endTurn();
    bench.scheduler.stall(10 * DEADLINE_US);

    const waiter = bench.ask([bench.keyed(tierOf())]);
    bench.settle();

    assert.equal(waiter.only.degraded, false);
    assert.equal(bench.limiter.breakerStates()[0]?.state, 'closed');
  });

  test('lets the probe go as soon as the connection is back', () => {
    const bench = new LimiterBench();
    openTheBreaker(bench);

    bench.store.listener?.onReconnect(bench.store.node);
    const waiter = bench.ask([bench.keyed(tierOf())]);
    bench.settle();

    assert.equal(waiter.only.degraded, false);
  });

  test('costs one deadline per cycle in an outage, not one per request', () => {
    const bench = new LimiterBench();
    const tier = modeTier('Closed');
    let waited = 0;

    for (let ms = 0; ms < 10_000; ms += 1) {
      const waiter = bench.ask([bench.keyed(tier, `key ${ms}`)]);
      if (waiter.told.length === 0) waited += 1;
      bench.scheduler.endTurn();
      bench.store.loseAnswers();
      bench.scheduler.advance(1_000);
    }
    bench.scheduler.advance(DEADLINE_US);

    // 5 calls a deadline before it opens; then a probe per rest and deadline of at least 450 ms: 23 in 10 s.
    assert.ok(
      waited <= 2 * DEFAULT_DEADLINE_MS + FAILURES_TO_OPEN + 23,
      `${waited} of 10 000 waited`,
    );
    assert.equal(bench.limiter.pending, 0);
  });

  test('abandons what was ready when it opened in the same turn', () => {
    const bench = new LimiterBench();
    const tier = tierOf();
    for (let i = 0; i < FAILURES_TO_OPEN; i += 1) {
      bench.ask([bench.keyed(tier, `flying ${i}`)]);
      bench.scheduler.endTurn();
    }
    const waiter = bench.ask([bench.keyed(tier, 'ready')]);
    bench.limiter.chargeDown(bench.keyed(tier, 'ready'), 1);
    bench.store.fail('down');

    bench.scheduler.endTurn();

    assert.equal(waiter.only.degraded, true);
    assert.equal(bench.limiter.counters.chargesLost, 1);
    assert.equal(bench.store.calls.length, 0);
  });

  test('leaves shadow decisions unknown and drops charges', () => {
    const bench = new LimiterBench();
    openTheBreaker(bench);
    const sink = new RecordingSink();

    bench.limiter.shadow(bench.keyed(tierOf()), 1, sink);
    bench.limiter.chargeDown(bench.keyed(tierOf()), 1);

    assert.deepEqual(sink.verdicts, ['unknown']);
    assert.equal(bench.limiter.counters.chargesLost, 1);
    assert.equal(bench.limiter.counters.degraded, FAILURES_TO_OPEN);
  });

  test('that flaps for ten minutes never lets more through than the formula', () => {
    const replicas = 2;
    const bench = new LimiterBench();
    const buckets = [bucketOf(100, 10)];
    const keyed = bench.keyed(tierOf({ policy: { failureMode: 'Local', replicas }, buckets }));
    let admitted = 0;
    const count = new RecordingWaiter((told) => {
      if (told.kind === 'allowed') admitted += 1;
    });
    const start = bench.clock.us;

    // One second with the store, one without, for ten minutes; 100 requests a second ask.
    for (let tenMs = 0; tenMs < 60_000; tenMs += 1) {
      bench.limiter.acquire(
        [keyed],
        [1],
        1,
        count.pending === undefined ? count : new RecordingWaiter(),
      );
      bench.scheduler.endTurn();
      if (Math.floor(tenMs / 100) % 2 === 0) bench.store.answer();
      else bench.store.loseAnswers();
      bench.scheduler.advance(10_000);
    }

    const seconds = (bench.clock.us - start) / 1_000_000;
    const shared = Math.floor(100 + 10 * seconds);
    const local = Math.floor(100 / replicas + (10 * seconds) / replicas);
    assert.ok(admitted <= shared + local, `${admitted} admitted, ${shared} + ${local} due`);
    // Half of the time the store decides at 10 a second, half of it the share at 5.
    assert.ok(admitted >= 0.4 * shared, `only ${admitted} admitted`);
  });
});

describe('a client that has gone', () => {
  test('hears nothing, and what it was charged stays charged', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf());
    const [gone, stays] = [bench.ask([keyed]), bench.ask([keyed])];
    bench.scheduler.endTurn();

    bench.limiter.cancel(gone);
    bench.settle();

    assert.equal(gone.told.length, 0);
    assert.equal(stays.only.level, 3e6);
    assert.equal(bench.limiter.pending, 0);
  });

  test('before its call is sent takes nothing', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf());
    const gone = bench.ask([keyed]);

    bench.limiter.cancel(gone);
    bench.settle();

    assert.equal(bench.store.levelOf(keyed.buckets[0]?.key ?? ''), undefined);
    assert.equal(bench.ask([keyed]).pending !== undefined, true);
  });

  test('can ask again with the same object while its old call is under way', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf());
    const waiter = bench.ask([keyed]);
    bench.scheduler.endTurn();

    bench.limiter.cancel(waiter);
    bench.limiter.acquire([keyed], [1], 1, waiter);
    bench.settle();

    assert.equal(waiter.only.level, 3e6);
  });

  test('twice, or after its answer, changes nothing', () => {
    const bench = new LimiterBench();
    const waiter = bench.ask([bench.keyed(tierOf())]);
    bench.settle();

    bench.limiter.cancel(waiter);
    bench.limiter.cancel(waiter);

    assert.equal(waiter.told.length, 1);
    assert.equal(bench.limiter.pending, 0);
  });

  test('is not charged to the local share at the deadline', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(modeTier('Local', 5));
    const [gone, stays] = [bench.ask([keyed]), bench.ask([keyed])];
    bench.scheduler.endTurn();
    bench.limiter.cancel(gone);

    bench.scheduler.advance(DEADLINE_US);

    assert.equal(stays.only.kind, 'allowed');
    assert.equal(bench.limiter.counters.chargeUnknown, 1);
  });
});

describe('the number of waiting requests', () => {
  test('is bounded: the next one is decided by its failure mode', () => {
    const bench = new LimiterBench({ maxPending: 3 });
    const tier = tierOf({ buckets: [bucketOf(100, 1)] });
    const waiters = Array.from({ length: 4 }, (_, i) => bench.ask([bench.keyed(tier, `key ${i}`)]));

    assert.deepEqual(
      waiters.map(({ told }) => told.length),
      [0, 0, 0, 1],
    );
    assert.equal(waiters[3]?.only.degraded, true);
    assert.equal(bench.limiter.counters.errors.overload, 1);
    bench.settle();
    assert.equal(bench.ask([bench.keyed(tier)]).told.length, 0);
  });

  test('of charges is bounded too', () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf());

    for (let i = 0; i < MAX_MAINTENANCE + 1; i += 1) bench.limiter.chargeDown(keyed, 1);

    assert.equal(bench.limiter.counters.chargesLost, 1);
  });
});

describe('closing the limiter', () => {
  test('ends every wait by failure mode, and every timer', async () => {
    const bench = new LimiterBench();
    const keyed = bench.keyed(tierOf({ buckets: [bucketOf(100, 1)] }));
    const flying = bench.ask([keyed]);
    bench.scheduler.endTurn();
    const waiting = bench.ask([keyed]);

    await bench.limiter[Symbol.asyncDispose]();

    assert.deepEqual([flying.only.degraded, waiting.only.degraded], [true, true]);
    assert.equal(bench.scheduler.timers, 0);
    assert.equal(bench.limiter.pending, 0);
  });
});
