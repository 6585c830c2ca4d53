// One suite over every store: what a policy means must not depend on where its levels live.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { KeyedBuckets } from '../../sidecar/limiter/bucket.ts';
import { systemClock } from '../../sidecar/store/clock.ts';
import { Limiter } from '../../sidecar/store/limiter.ts';
import { MemoryStore } from '../../sidecar/store/memory-store.ts';
import { openStore } from '../../sidecar/store/open-store.ts';
import { slotOf } from '../../sidecar/store/slot.ts';
import { parseStoreSettings } from '../../contract/store-settings.ts';
import type { Store } from '../../sidecar/store/store.ts';
import { ask, askInTurn } from '../support/asking.ts';
import { RecordingSink, bucketOf, tierOf, type TierInput } from '../support/limiter-fixture.ts';
import { eventually, openRedis, openRedisCluster, openRedisSentinel } from '../support/redis.ts';

interface Subject {
  readonly store: Store;
  /** The servers that hold levels; none for the embedded store. */
  readonly servers: readonly Redis[];
}

/** Under load of the whole suite a store may take longer than a sidecar would give it. */
const DEADLINE_MS = 5_000;

const kinds: Readonly<Record<string, (stack: AsyncDisposableStack) => Promise<Subject>>> = {
  memory: async (stack) =>
    Promise.resolve({ store: stack.use(new MemoryStore(systemClock)), servers: [] }),
  redis: async (stack) => {
    const redis = stack.use(await openRedis());
    return { store: await connect(stack, redis.url), servers: [redis.client()] };
  },
  cluster: async (stack) => {
    const cluster = stack.use(await openRedisCluster());
    const servers = cluster.servers.map((server) => server.client());
    return { store: await connect(stack, cluster.url), servers };
  },
  sentinel: async (stack) => {
    const sentinel = stack.use(await openRedisSentinel());
    return { store: await connect(stack, sentinel.url), servers: [sentinel.master.client()] };
  },
};

async function connect(stack: AsyncDisposableStack, url: string): Promise<Store> {
  const store = stack.use(openStore(parseStoreSettings({ url })));
  await store.connected(AbortSignal.timeout(10_000));
  return store;
}

/** At least that long; a timer may fire almost a millisecond early. */
async function pass(us: number): Promise<void> {
  const due = performance.now() + us / 1_000;
  while (performance.now() < due) await delay(Math.ceil(due - performance.now()));
}

for (const [kind, open] of Object.entries(kinds)) {
  describe(`the ${kind} store`, () => {
    const stack = new AsyncDisposableStack();
    let subject: Subject;
    let limiter: Limiter;

    before(async () => {
      subject = await open(stack);
      limiter = stack.use(new Limiter({ store: subject.store, deadlineMs: DEADLINE_MS }));
    });
    after(() => stack.disposeAsync());

    /** A client of a policy that no other test has touched. */
    const keyedOf = (input: TierInput = {}, text = 'client'): KeyedBuckets => {
      const uid = input.policy?.uid ?? randomUUID();
      return limiter.keyed(tierOf({ ...input, policy: { ...input.policy, uid } }), text);
    };

    test('denies the request after the last one the bucket holds', async () => {
      const told = await askInTurn(limiter, [keyedOf({ buckets: [bucketOf(5, 1)] })], 6);

      assert.deepEqual(
        told.map(({ kind: k }) => k),
        ['allowed', 'allowed', 'allowed', 'allowed', 'allowed', 'denied'],
      );
      assert.ok(told.every(({ degraded }) => !degraded));
    });

    test('admits exactly what the bucket holds of requests that come at once', async () => {
      const keyed = keyedOf({ buckets: [bucketOf(50, 1)] });

      const told = await Promise.all(Array.from({ length: 200 }, () => ask(limiter, [keyed])));

      const admitted = told.filter(({ kind: k }) => k === 'allowed').length;
      assert.equal(admitted, 50);
    });

    test('admits a retry after exactly the wait it was told, which is never 0', async () => {
      const keyed = keyedOf({ buckets: [bucketOf(1, 20)] });

      for (let i = 0; i < 10; i += 1) {
        await eventually(
          'the bucket is empty',
          async () => (await ask(limiter, [keyed])).kind === 'denied',
        );
        const refused = await ask(limiter, [keyed]);
        if (refused.kind === 'allowed') continue;
        assert.ok(refused.waitUs > 0 && refused.waitUs <= 50_000, `${refused.waitUs} µs`);

        await pass(refused.waitUs);

        assert.equal((await ask(limiter, [keyed])).kind, 'allowed');
      }
    });

    test('takes from all buckets of a rule or from none', async () => {
      const uid = randomUUID();
      const both = keyedOf({
        policy: { uid },
        buckets: [bucketOf(10, 1, 'wide'), bucketOf(2, 1, 'narrow')],
      });

      const told = await Promise.all(Array.from({ length: 6 }, () => ask(limiter, [both])));

      assert.equal(told.filter(({ kind: k }) => k === 'allowed').length, 2);
      const narrow = told.find(({ kind: k }) => k === 'denied');
      assert.equal(narrow?.bucket, 'narrow');
      const wide = keyedOf({ policy: { uid }, buckets: [bucketOf(10, 1, 'wide')] });
      const left = await ask(limiter, [wide], [8]);
      assert.equal(left.kind, 'allowed');
    });

    test('gives back what one policy granted when another refuses', async () => {
      const [poor, rich] = [
        keyedOf({ buckets: [bucketOf(1, 1)] }),
        keyedOf({ buckets: [bucketOf(3, 1)] }),
      ];
      await ask(limiter, [poor]);

      const told = [await ask(limiter, [rich, poor]), await ask(limiter, [poor, rich])];

      assert.deepEqual(
        told.map(({ kind: k }) => k),
        ['denied', 'denied'],
      );
      await eventually('the tokens are back', async () => {
        const sink = new RecordingSink();
        limiter.shadow(rich, 3, sink);
        await eventually('the shadow decision is in', () => sink.verdicts.length > 0);
        return sink.verdicts[0] === 'allowed';
      });
    });

    test('charges the cost of a response down to an empty bucket', async () => {
      const keyed = keyedOf({ buckets: [bucketOf(5, 1)] });
      await ask(limiter, [keyed]);

      limiter.chargeDown(keyed, 1_000);

      await eventually(
        'the bucket is empty',
        async () => (await ask(limiter, [keyed])).kind === 'denied',
      );
    });

    test('adds no token in a hundred reconciles that change nothing', async () => {
      const uid = randomUUID();
      const limit = {
        capacity: 3,
        unitsPerToken: 3_600_000_000,
        unitsPerTick: 1,
        tickUs: 1,
      } as const;
      const buckets = [{ name: 'main', limit }];
      let admitted = 0;

      for (let generation = 1; generation <= 100; generation += 1) {
        const told = await ask(limiter, [keyedOf({ policy: { uid, generation }, buckets })]);
        if (told.kind === 'allowed') admitted += 1;
      }

      assert.equal(admitted, 3);
    });

    test('holds a raised limit from the next request on, also when the bucket is empty', async () => {
      const uid = randomUUID();
      const at = (generation: number, capacity: number): KeyedBuckets =>
        keyedOf({ policy: { uid, generation }, buckets: [bucketOf(capacity, 1)] });
      await askInTurn(limiter, [at(1, 2)], 3);

      const told = await askInTurn(limiter, [at(2, 5)], 4);

      assert.deepEqual(
        told.map(({ kind: k }) => k),
        ['allowed', 'allowed', 'allowed', 'denied'],
      );
    });

    test('holds a lowered limit from the next request on', async () => {
      const uid = randomUUID();
      const at = (generation: number, capacity: number): KeyedBuckets =>
        keyedOf({ policy: { uid, generation }, buckets: [bucketOf(capacity, 1)] });
      await askInTurn(limiter, [at(1, 100)], 1);

      const told = await askInTurn(limiter, [at(2, 2)], 3);

      assert.deepEqual(
        told.map(({ kind: k }) => k),
        ['allowed', 'allowed', 'denied'],
      );
      assert.deepEqual([told[0]?.capacity, told[0]?.level], [2, 1_000_000]);
    });

    test('obeys the newest generation that any sidecar brought', async () => {
      const uid = randomUUID();
      const newer = keyedOf({ policy: { uid, generation: 2 }, buckets: [bucketOf(2, 1)] });
      await ask(limiter, [newer]);

      const told = await askInTurn(
        limiter,
        [keyedOf({ policy: { uid, generation: 1 }, buckets: [bucketOf(9, 1)] })],
        2,
      );

      assert.deepEqual(
        told.map((t) => [t.kind, t.capacity]),
        [
          ['allowed', 2],
          ['denied', 2],
        ],
      );
    });

    test('tells the same whatever the order of rules', async () => {
      const orders = [
        [0, 1, 2],
        [2, 1, 0],
        [1, 2, 0],
      ];
      const outcomes: unknown[] = [];
      for (const order of orders) {
        const uid = randomUUID();
        const parts = order.map((i) =>
          keyedOf({
            policy: { uid },
            rule: { name: `rule-${i}` },
            buckets: [bucketOf(2 + i, 1, `bucket-${i}`)],
          }),
        );
        const told = await Promise.all(Array.from({ length: 4 }, () => ask(limiter, parts)));
        // Whole tokens: between two orders time has passed.
        outcomes.push(told.map((t) => [t.kind, t.bucket, Math.floor(t.level / 1_000_000)]));
      }

      assert.deepEqual(outcomes[1], outcomes[0]);
      assert.deepEqual(outcomes[2], outcomes[0]);
    });

    test('never lets a foreign value decide or be overwritten', async () => {
      for (const server of subject.servers) {
        const keyed = keyedOf({ policy: { failureMode: 'Closed' } });
        const key = keyed.buckets[0]?.key ?? '';
        const wasSet = await server.rpush(key, 'x').catch(() => 0);
        if (wasSet === 0) continue;

        const told = await ask(limiter, [keyed]);

        assert.equal(told.kind, 'unavailable');
        assert.deepEqual(await server.lrange(key, 0, -1), ['x']);
      }
    });

    for (const hours of [-1, 1]) {
      test(`goes on when its clock is set ${hours > 0 ? 'forward' : 'back'} by an hour`, async () => {
        for (const server of subject.servers) {
          const uid = randomUUID();
          const keyed = keyedOf({ policy: { uid }, buckets: [bucketOf(3, 1)] });
          await askInTurn(limiter, [keyed], 4);
          const key = keyed.buckets[0]?.key ?? '';
          const state = await server.get(key).catch(() => null);
          if (state === null) continue;
          // An hour added to the stamp is a clock that was set back by an hour, seen from the bucket.
          const [level, stamp, ...limit] = state.split(' ');
          const stepped = [level, Number(stamp) - hours * 3_600_000_000, ...limit].join(' ');
          await server.set(key, stepped, 'KEEPTTL');

          const next = keyedOf({ policy: { uid, generation: 2 }, buckets: [bucketOf(2, 1)] });
          const told = await askInTurn(limiter, [next], 4);

          const admitted = told.filter(({ kind: k }) => k === 'allowed').length;
          // Set back: nothing is credited. Forward: at most the (lowered) capacity, once.
          assert.equal(admitted, hours > 0 ? 2 : 0);
          const last = told.at(-1);
          assert.ok(
            last?.kind === 'denied' && last.waitUs <= 1_000_000,
            'frozen for the whole step',
          );
        }
      });
    }

    test('gives every key a time to live', async () => {
      const tier = tierOf({ policy: { uid: randomUUID() } });
      await Promise.all(
        Array.from({ length: 300 }, (_, i) => ask(limiter, [limiter.keyed(tier, `client ${i}`)])),
      );

      for (const server of subject.servers) {
        const keys = await server.keys('weir1:*');
        for (const key of keys) {
          if ((await server.type(key)) !== 'string') continue;
          assert.ok((await server.pttl(key)) > 0, key);
        }
      }
    });

    test('puts a hash tag into the slot that the server would', async () => {
      if (kind !== 'cluster') return;
      for (const tag of ['shop/6f1c', 'a', 'file/default/policy/deployment.api/17']) {
        const slot = await subject.servers[0]?.call('CLUSTER', 'KEYSLOT', `weir1:{${tag}}:rule`);
        assert.equal(slotOf(tag), slot);
      }
    });
  });
}
