// Promise: however many processes share a bucket, together they admit what it holds and earns, to the unit.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { KeyInterner } from '../../sidecar/limiter/key-interner.ts';
import { bucketOf, tierOf } from '../support/limiter-fixture.ts';
import { runLimiterProcess } from '../support/limiter-process.ts';
import { openRedisServer } from '../support/redis.ts';

const PROCESSES = 4;

describe('one bucket and four processes', () => {
  test('admit together exactly what the bucket held and earned', async () => {
    await using server = await openRedisServer();
    const uid = randomUUID();
    // Large enough not to fill while the processes start.
    const bucket = bucketOf(10_000, 500);
    const tier = tierOf({ policy: { uid }, buckets: [bucket] });
    const key = new KeyInterner(1).intern(tier, 'client').buckets[0]?.key ?? '';
    const redis = server.client();
    const { text, unitsPerToken } = tier.buckets[0]?.bucket.stored ?? assert.fail();
    // Empty from a known instant on, so that the account can be closed to the unit.
    const [seconds, micros] = await redis.time();
    const from = Number(seconds) * 1_000_000 + Number(micros);
    await redis.set(key, `0 ${from} ${text}`, 'PX', 60_000);

    const work = { kind: 'share', clients: 8, admitted: 200, refused: 200 } as const;
    const outputs = await Promise.all(
      Array.from({ length: PROCESSES }, () =>
        runLimiterProcess({ url: server.url, uid, buckets: [bucket], work }),
      ),
    );

    const tallies = outputs.map(({ tally }) => tally);
    const admitted = tallies.reduce((sum, tally) => sum + tally.admitted, 0);
    assert.ok(tallies.every(({ degraded, unsettled }) => degraded === 0 && unsettled === 0));
    const state = (await redis.get(key)) ?? '';
    const [level = 0, stamp = 0] = state.split(' ').map(Number);
    // Demand never let the bucket fill, so: taken = earned − left. One unit a µs is earned.
    assert.ok(level < 10_000 * unitsPerToken);
    assert.equal(admitted * unitsPerToken, stamp - from - level);
    assert.ok(
      tallies.every((tally) => tally.admitted >= 200),
      'each had its part',
    );
  });
});

describe('a million distinct keys', () => {
  const KEYS = 1_000_000;

  test('leave the memory of the sidecar flat, and all have a time to live', async () => {
    await using server = await openRedisServer();
    // An hour to fill: no key expires while the test runs.
    const limit = {
      capacity: 1,
      unitsPerToken: 3_600_000_000,
      unitsPerTick: 1,
      tickUs: 1,
    } as const;

    const { tally, heapBytes } = await runLimiterProcess({
      url: server.url,
      uid: randomUUID(),
      buckets: [{ name: 'main', limit }],
      work: { kind: 'flood', keys: KEYS },
    });

    assert.deepEqual([tally.admitted, tally.degraded, tally.unsettled], [KEYS, 0, 0]);
    // Kept, 900 000 keys of 600 bytes would be 540 MB.
    const growth = heapBytes[1] - heapBytes[0];
    assert.ok(growth < 15_000_000, `${growth} bytes more after a million keys than after a tenth`);
    const keyspace = await server.client().info('keyspace');
    assert.match(keyspace, new RegExp(`keys=${KEYS},expires=${KEYS},`));
  });
});
