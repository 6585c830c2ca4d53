// The store moves while it is in use: a slot of a Cluster to another master, a master's role to its replica.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { Limiter } from '../../sidecar/store/limiter.ts';
import { openStore } from '../../sidecar/store/open-store.ts';
import { slotOf } from '../../sidecar/store/slot.ts';
import { parseStoreSettings } from '../../contract/store-settings.ts';
import { ask, askInTurn, keepAsking } from '../support/asking.ts';
import { tierOf } from '../support/limiter-fixture.ts';
import {
  eventually,
  openRedisCluster,
  openRedisSentinel,
  type RedisServer,
} from '../support/redis.ts';

const CLIENTS = 8;
const CAPACITY = 1_000_000;
/** A token every 32 s: nothing refills while a test runs. */
const LIMIT = {
  capacity: CAPACITY,
  unitsPerToken: 31_622,
  unitsPerTick: 1,
  tickUs: 1_000,
} as const;

function tokensTaken(state: string | null): number {
  if (state === null) return 0;
  return Math.ceil(CAPACITY - Number(state.split(' ')[0]) / LIMIT.unitsPerToken);
}

describe('a slot that moves to another master under load', () => {
  test('fails no decision, and every bucket is charged what was admitted', async () => {
    await using cluster = await openRedisCluster();
    await using store = openStore(parseStoreSettings({ url: cluster.url }));
    await store.connected(AbortSignal.timeout(10_000));
    await using limiter = new Limiter({ store, deadlineMs: 10_000 });
    const buckets = ['one', 'two', 'three'].map((name) => ({ name, limit: LIMIT }));
    const tier = tierOf({ policy: { uid: randomUUID() }, buckets });
    const keys = Array.from({ length: CLIENTS }, (_, i) => limiter.keyed(tier, `client ${i % 4}`));
    const [first] = keys;
    assert.ok(first);
    await ask(limiter, [first]);
    const end = new AbortController();
    // A test that fails before its end must not leave clients asking for ever.
    using ending = new DisposableStack();
    ending.defer(() => {
      end.abort();
    });
    const parts = keys.map((keyed) => [keyed]);
    const asking = keepAsking(limiter, (client) => parts[client] ?? [], {
      clients: CLIENTS,
      pauseMs: 1,
      isOver: () => end.signal.aborted,
    });

    await moveSlot(cluster.servers, slotOf(first.tag));
    await delay(200);
    end.abort();
    const tally = await asking;

    assert.deepEqual([tally.degraded, tally.refused, tally.unsettled], [0, 0, 0]);
    assert.equal(limiter.counters.failures, 0);
    const errors = await Promise.all(
      cluster.servers.map((server) => server.client().info('errorstats')),
    );
    assert.ok(
      errors.some((text) => text.includes('TRYAGAIN')),
      'the migration was never in the way',
    );
    const target = await ownerOf(cluster.servers, slotOf(first.tag));
    for (const bucket of [0, 1, 2]) {
      let taken = 0;
      for (const keyed of new Set(keys)) {
        taken += tokensTaken(await target.get(keyed.buckets[bucket]?.key ?? ''));
      }
      assert.equal(taken, tally.admitted + 1, `bucket ${bucket}`);
    }
  });
});

/** Moves a slot as redis-cli does, and stays in the middle of it for a while. */
async function moveSlot(servers: readonly RedisServer[], slot: number): Promise<void> {
  const source = await ownerOf(servers, slot);
  const targetServer = servers.find(({ port }) => port !== source.options.port);
  assert.ok(targetServer);
  const target = targetServer.client();
  const [sourceId, targetId] = await Promise.all(
    [source, target].map((redis) => redis.call('CLUSTER', 'MYID')),
  );
  await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(sourceId));
  await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(targetId));
  await delay(100);
  for (;;) {
    const keys = await source.call('CLUSTER', 'GETKEYSINSLOT', slot, 1);
    if (!Array.isArray(keys) || keys.length === 0) break;
    await source.call('MIGRATE', '127.0.0.1', targetServer.port, String(keys[0]), 0, 1_000);
    await delay(20);
  }
  for (const redis of [target, source])
    await redis.call('CLUSTER', 'SETSLOT', slot, 'NODE', String(targetId));
}

async function ownerOf(servers: readonly RedisServer[], slot: number): Promise<Redis> {
  const clients = servers.map((server) => server.client());
  const [first] = clients;
  assert.ok(first);
  const ranges = await first.cluster('SLOTS');
  const owner = ranges.find(([from, to]) => from <= slot && slot <= to)?.[2];
  const port = Array.isArray(owner) ? owner[1] : 0;
  const found = servers.findIndex((server) => server.port === port);
  return clients[found] ?? assert.fail(`no owner of slot ${slot}`);
}

describe('a master that gives all its slots away', () => {
  test('is left, and its circuit breaker forgotten', async () => {
    await using cluster = await openRedisCluster();
    const [stays, , leaves] = cluster.servers;
    assert.ok(stays && leaves);
    // Only what the settings do not name is left.
    const url = `redis+cluster://127.0.0.1:${stays.port}`;
    await using store = openStore(parseStoreSettings({ url }));
    await store.connected(AbortSignal.timeout(10_000));
    await using limiter = new Limiter({ store, deadlineMs: 10_000 });
    const nodes = (): string[] => limiter.breakerStates().map(({ node }) => node);
    // The last third of the slots is the third server's.
    const uids = Array.from({ length: 200 }, () => randomUUID());
    const keys = uids.map((uid) => limiter.keyed(tierOf({ policy: { uid } }), 'client'));
    const keyed = keys.find(({ tag }) => slotOf(tag) > (16_384 * 2) / 3) ?? assert.fail();
    await ask(limiter, [keyed]);
    assert.ok(nodes().includes(`127.0.0.1:${leaves.port}`));

    await leaves.client().flushall();
    await giveSlots(leaves.client(), stays.client());

    await eventually('the store has left the server', async () => {
      // The first one is told where its slot has gone.
      assert.equal((await ask(limiter, [keyed])).degraded, false);
      return !nodes().includes(`127.0.0.1:${leaves.port}`);
    });
    // The server may leave before a request has been led to the one that took its slots over.
    await eventually('the server that stays is asked', async () => {
      assert.equal((await ask(limiter, [keyed])).degraded, false);
      return nodes().includes(`127.0.0.1:${stays.port}`);
    });
  });
});

/** All slots of a master without keys. */
async function giveSlots(source: Redis, target: Redis): Promise<void> {
  const id = String(await target.call('CLUSTER', 'MYID'));
  // Else a gossip message on its way may claim the slots back: the higher epoch of the two owns a slot.
  await target.call('CLUSTER', 'BUMPEPOCH');
  const ranges = await source.cluster('SLOTS');
  const moves: Promise<unknown>[] = [];
  for (const [first, last, owner] of ranges) {
    if (!Array.isArray(owner) || owner[1] !== source.options.port) continue;
    for (let slot = first; slot <= last; slot += 1) {
      for (const redis of [target, source]) {
        moves.push(redis.call('CLUSTER', 'SETSLOT', slot, 'NODE', id));
      }
    }
  }
  await Promise.all(moves);
}

describe('a master that hands over to its replica under load', () => {
  test('is followed, and what was replicated stays charged', async () => {
    await using redis = await openRedisSentinel();
    await using store = openStore(parseStoreSettings({ url: redis.url }));
    await store.connected(AbortSignal.timeout(10_000));
    await using limiter = new Limiter({ store });
    const tier = tierOf({
      policy: { uid: randomUUID() },
      buckets: [{ name: 'main', limit: LIMIT }],
    });
    const keyed = limiter.keyed(tier, 'client');
    const key = keyed.buckets[0]?.key ?? '';
    const before = await askInTurn(limiter, [keyed], 100);
    assert.ok(before.every(({ degraded }) => !degraded));
    await eventually(
      'the replica has the charges',
      async () => tokensTaken(await redis.replica.client().get(key)) === 100,
    );
    const end = new AbortController();
    // A test that fails before its end must not leave clients asking for ever.
    using ending = new DisposableStack();
    ending.defer(() => {
      end.abort();
    });
    const asking = keepAsking(limiter, () => [keyed], {
      clients: CLIENTS,
      pauseMs: 1,
      isOver: () => end.signal.aborted,
    });

    await redis.failover();
    await eventually('the new master is charged', async () => {
      const role = await redis.replica.client().call('ROLE');
      if (!Array.isArray(role) || role[0] !== 'master') return false;
      const taken = tokensTaken(await redis.replica.client().get(key));
      const told = await ask(limiter, [keyed]);
      return !told.degraded && tokensTaken(await redis.replica.client().get(key)) > taken;
    });
    end.abort();
    const tally = await asking;

    assert.equal(tally.unsettled, 0);
    assert.ok(tokensTaken(await redis.replica.client().get(key)) > 100);
    assert.equal(limiter.pending, 0);
  });

  test('that dies is replaced, and the limiter finds the replacement by itself', async () => {
    await using redis = await openRedisSentinel();
    await using store = openStore(parseStoreSettings({ url: redis.url }));
    await store.connected(AbortSignal.timeout(10_000));
    await using limiter = new Limiter({ store });
    const tier = tierOf({
      policy: { uid: randomUUID(), failureMode: 'Closed' },
      buckets: [{ name: 'main', limit: LIMIT }],
    });
    const keyed = limiter.keyed(tier, 'client');
    await askInTurn(limiter, [keyed], 10);
    const replica = redis.replica.client();
    await eventually(
      'the replica has the charges',
      async () => tokensTaken(await replica.get(keyed.buckets[0]?.key ?? '')) === 10,
    );

    await redis.master.stop();

    await eventually(
      'the replica decides',
      async () => (await ask(limiter, [keyed])).kind === 'allowed',
      30_000,
    );
    assert.ok(tokensTaken(await replica.get(keyed.buckets[0]?.key ?? '')) >= 11);
  });
});
