// What happens to decisions when the store is struck: nothing is charged twice, everybody hears once, and the
// limit is enforced again afterwards. How fast is for `npm run bench:faults`; here only outcomes count.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { FailureMode } from '../../contract/bundle.ts';
import type { KeyedBuckets } from '../../sidecar/limiter/bucket.ts';
import { Limiter } from '../../sidecar/store/limiter.ts';
import { openStore } from '../../sidecar/store/open-store.ts';
import { parseStoreSettings } from '../../contract/store-settings.ts';
import { ask, askInTurn, keepAsking, type Tally } from '../support/asking.ts';
import { FaultProxy } from '../support/fault-proxy.ts';
import { bucketOf, tierOf } from '../support/limiter-fixture.ts';
import { eventually, openRedisServer, type RedisServer } from '../support/redis.ts';

const CLIENTS = 16;
const CAPACITY = 1_000_000;
/** A token every 32 s: while a test runs nothing refills, so every charge can be counted afterwards. */
const COUNTED = {
  name: 'main',
  limit: { capacity: CAPACITY, unitsPerToken: 31_622, unitsPerTick: 1, tickUs: 1_000 },
} as const;

interface Rig {
  readonly limiter: Limiter;
  readonly transitions: readonly string[];
  /** A client of a policy that no other test has touched. */
  keyed(failureMode?: FailureMode, buckets?: Parameters<typeof tierOf>[0]): KeyedBuckets;
}

async function connect(stack: AsyncDisposableStack, url: string): Promise<Rig> {
  const store = stack.use(openStore(parseStoreSettings({ url })));
  await store.connected(AbortSignal.timeout(10_000));
  const transitions: string[] = [];
  const onTransition = ({ from, to }: { from: string; to: string }): void => {
    transitions.push(`${from} → ${to}`);
  };
  const limiter = stack.use(new Limiter({ store, onTransition }));
  return {
    limiter,
    transitions,
    keyed: (failureMode = 'Open', input = {}) =>
      limiter.keyed(
        tierOf({ buckets: [COUNTED], ...input, policy: { uid: randomUUID(), failureMode } }),
        'client',
      ),
  };
}

/** Tokens taken from a bucket, read from the server. */
async function taken(server: RedisServer, keyed: KeyedBuckets): Promise<number> {
  const state = await server.client().get(keyed.buckets[0]?.key ?? '');
  if (state === null) return 0;
  const { capacity, unitsPerToken } = COUNTED.limit;
  return Math.ceil(capacity - Number(state.split(' ')[0]) / unitsPerToken);
}

/** Keeps asking while `strike` does its work, then until the store decides again. */
async function under(rig: Rig, keyed: KeyedBuckets, strike: () => Promise<void>): Promise<Tally> {
  const end = new AbortController();
  const asking = keepAsking(rig.limiter, () => [keyed], {
    clients: CLIENTS,
    pauseMs: 1,
    isOver: () => end.signal.aborted,
  });
  try {
    await strike();
    await recovered(rig, keyed);
  } finally {
    // Also when it fails: clients that ask for ever would keep the test from ending.
    end.abort();
  }
  return asking;
}

async function recovered(rig: Rig, keyed: KeyedBuckets): Promise<void> {
  await eventually(
    'the store decides again',
    async () => !(await ask(rig.limiter, [keyed])).degraded,
  );
}

describe('SCRIPT FLUSH under load', () => {
  test('fails no decision and charges none twice', async () => {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await openRedisServer());
    const rig = await connect(stack, server.url);
    const keyed = rig.keyed();

    const tally = await under(rig, keyed, async () => {
      for (let i = 0; i < 20; i += 1) {
        await server.client().script('FLUSH');
        await delay(10);
      }
    });

    assert.deepEqual([tally.degraded, tally.unsettled, rig.limiter.counters.failures], [0, 0, 0]);
    assert.equal(await taken(server, keyed), tally.admitted + 1);
  });
});

describe('CLIENT KILL under load', () => {
  test('charges nothing twice: what is unknown is counted, and bounds the difference', async () => {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await openRedisServer());
    const rig = await connect(stack, server.url);
    const keyed = rig.keyed();

    const tally = await under(rig, keyed, async () => {
      for (let i = 0; i < 5; i += 1) {
        await server.client().call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        await delay(100);
      }
    });

    const charged = await taken(server, keyed);
    const { chargeUnknown } = rig.limiter.counters;
    assert.equal(tally.unsettled, 0);
    assert.ok(charged >= tally.admitted, `${charged} charged, ${tally.admitted} admitted`);
    assert.ok(
      charged <= tally.admitted + 1 + chargeUnknown,
      `${charged} charged, ${tally.admitted} admitted, ${chargeUnknown} unknown`,
    );
  });
});

describe('a server that restarts', () => {
  test('is back in use by itself, and everybody heard meanwhile', async () => {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await openRedisServer());
    const rig = await connect(stack, server.url);
    const keyed = rig.keyed();

    const tally = await under(rig, keyed, async () => {
      await server.stop();
      await eventually('the breaker opens', () => rig.transitions.includes('closed → open'));
      assert.ok(await server.start());
    });

    assert.equal(tally.unsettled, 0);
    // That the store decides again was seen by `under`; it ends the clients before each has asked once more.
    assert.ok(tally.degraded > 0);
    assert.equal(rig.limiter.breakerStates()[0]?.state, 'closed');
    assert.equal(rig.transitions.filter((t) => t === 'closed → open').length, 1);
  });

  test('is not asked once per request while it is away', async () => {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await openRedisServer());
    const rig = await connect(stack, server.url);
    const keyed = rig.keyed('Closed');
    await server.stop();
    await eventually('the breaker opens', async () => {
      await ask(rig.limiter, [keyed]);
      return rig.transitions.includes('closed → open');
    });
    const before = rig.limiter.counters.storeCalls;

    const told = await askInTurn(rig.limiter, [keyed], 1_000);

    assert.ok(told.every(({ kind }) => kind === 'unavailable'));
    assert.ok(rig.limiter.counters.storeCalls - before <= 5);
  });
});

describe('a server that is frozen for five seconds', () => {
  test('delays nobody beyond the deadline, replays nothing, and is back in use by itself', async () => {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await openRedisServer());
    const rig = await connect(stack, server.url);
    const [keyed, local] = [rig.keyed(), rig.keyed('Local', { buckets: [bucketOf(50, 1)] })];
    const before = await askInTurn(rig.limiter, [local], 50);
    assert.ok(before.every(({ kind }) => kind === 'allowed'));
    let localAdmitted = 0;

    const tally = await under(rig, keyed, async () => {
      server.freeze();
      const end = performance.now() + 5_000;
      while (performance.now() < end) {
        if ((await ask(rig.limiter, [local])).kind === 'allowed') localAdmitted += 1;
        await delay(20);
      }
      server.thaw();
    });

    const charged = await taken(server, keyed);
    const { chargeUnknown } = rig.limiter.counters;
    assert.equal(tally.unsettled, 0);
    assert.ok(tally.degraded > 0);
    assert.ok(charged >= tally.admitted);
    assert.ok(charged <= tally.admitted + 1 + chargeUnknown);
    // Warm: the pod's own bucket was as empty as the shared one, and refilled at its rate only.
    assert.ok(localAdmitted <= 8, `${localAdmitted} admitted from a share of one token a second`);
    assert.equal(rig.limiter.pending, 0);
  });
});

describe('answers that get lost', () => {
  test('are never replayed: each is charged once and its request decided by failure mode', async () => {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await openRedisServer());
    const proxy = stack.use(await FaultProxy.open(server.port));
    const rig = await connect(stack, proxy.url);
    const keyed = rig.keyed();
    await ask(rig.limiter, [keyed]);

    proxy.losesReplies = true;
    const lost = await ask(rig.limiter, [keyed]);
    const alsoLost = await ask(rig.limiter, [keyed]);

    assert.deepEqual([lost.degraded, alsoLost.degraded], [true, true]);
    assert.equal(rig.limiter.counters.chargeUnknown, 2);
    await eventually('both have been executed', async () => (await taken(server, keyed)) === 3);
    proxy.losesReplies = false;
    proxy.cut();
    await recovered(rig, keyed);
    assert.equal(await taken(server, keyed), 4);
  });

  test('on a path that swallows everything: a new connection is made without being told', async () => {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await openRedisServer());
    const proxy = stack.use(await FaultProxy.open(server.port));
    const rig = await connect(stack, proxy.url);
    const keyed = rig.keyed();
    proxy.losesReplies = true;
    proxy.losesRequests = true;
    const before = proxy.opened;
    await eventually('the stalled connection is given up', async () => {
      await ask(rig.limiter, [keyed]);
      await delay(20);
      return proxy.opened > before;
    });

    proxy.losesReplies = false;
    proxy.losesRequests = false;

    await recovered(rig, keyed);
  });

  test('that are only late are dropped, and not refunded', async () => {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await openRedisServer());
    const proxy = stack.use(await FaultProxy.open(server.port));
    const rig = await connect(stack, proxy.url);
    const keyed = rig.keyed();

    proxy.delayMs = 150;
    const late = await ask(rig.limiter, [keyed]);

    assert.equal(late.degraded, true);
    await eventually('the late answer is in', () => rig.limiter.counters.lateReplies === 1);
    assert.equal(await taken(server, keyed), 1);
  });
});

describe('a server that refuses', () => {
  test('writes for want of memory fails with its own kind, and still refuses what is over the limit', async () => {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await openRedisServer());
    const rig = await connect(stack, server.url);
    const [fresh, empty] = [
      rig.keyed('Closed'),
      rig.keyed('Closed', { buckets: [bucketOf(1, 1)] }),
    ];
    await ask(rig.limiter, [empty]);

    await server.client().config('SET', 'maxmemory', '1');
    const [told, refused] = [await ask(rig.limiter, [fresh]), await ask(rig.limiter, [empty])];

    assert.deepEqual([told.kind, refused.kind], ['unavailable', 'denied']);
    assert.equal(rig.limiter.counters.errors.oom, 1);
    await server.client().config('SET', 'maxmemory', '0');
    await recovered(rig, fresh);
  });

  test('the user fails with auth, until it may again', async () => {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await openRedisServer());
    const rig = await connect(stack, server.url);
    const keyed = rig.keyed('Closed');
    const admin = server.client();

    await admin.call('ACL', 'SETUSER', 'default', '-evalsha');
    const told = await ask(rig.limiter, [keyed]);

    assert.equal(told.kind, 'unavailable');
    assert.equal(rig.limiter.counters.errors.auth, 1);
    await admin.call('ACL', 'SETUSER', 'default', '+evalsha');
    await recovered(rig, keyed);
  });

  test('to write without replicas fails without a charge', async () => {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await openRedisServer());
    const rig = await connect(stack, server.url);
    const keyed = rig.keyed();

    await server.client().config('SET', 'min-replicas-to-write', '1');
    const told = await ask(rig.limiter, [keyed]);

    assert.equal(told.degraded, true);
    assert.equal(rig.limiter.counters.errors.readonly, 1);
    assert.equal(await taken(server, keyed), 0);
  });

  test('because it became a replica is left, and found again', async () => {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await openRedisServer());
    const rig = await connect(stack, server.url);
    const keyed = rig.keyed('Closed');
    const admin = server.client();
    await admin.call('REPLICAOF', '127.0.0.1', '1');

    const told = await ask(rig.limiter, [keyed]);

    assert.equal(told.kind, 'unavailable');
    await admin.call('REPLICAOF', 'NO', 'ONE');
    await recovered(rig, keyed);
  });
});

describe('an ACL user of one namespace', () => {
  test('needs no more than the documented permissions, and reaches no other namespace', async () => {
    await using stack = new AsyncDisposableStack();
    const server = stack.use(await openRedisServer());
    const permissions =
      '~weir1:{shop/* +evalsha +eval +script|load +time +mget +exists +set +ping +info +hello +client';
    await server
      .client()
      .call('ACL', 'SETUSER', 'shop', 'on', '>s3cret', ...permissions.split(' '));
    const rig = await connect(stack, `redis://shop:s3cret@127.0.0.1:${server.port}`);
    const foreign = tierOf({
      policy: { namespace: 'bank', uid: randomUUID(), failureMode: 'Closed' },
    });

    const told = [
      await ask(rig.limiter, [rig.keyed('Closed')]),
      await ask(rig.limiter, [rig.limiter.keyed(foreign, 'client')]),
    ];

    assert.deepEqual(
      told.map(({ kind }) => kind),
      ['allowed', 'unavailable'],
    );
    assert.equal(rig.limiter.counters.errors.auth, 1);
  });
});
