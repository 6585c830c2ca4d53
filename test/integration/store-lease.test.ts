// Promise: leases spare calls to the store and cost nobody a token. However many processes hold some of a bucket's
// tokens ahead of their requests, together they admit what it held and earned, and nothing is missing in the end.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { KeyInterner } from '../../sidecar/limiter/key-interner.ts';
import { bucketOf, tierOf } from '../support/limiter-fixture.ts';
import { runLimiterProcess, type LimiterProcessOutput } from '../support/limiter-process.ts';
import { driveLoad } from '../support/load.ts';
import { openRedisServer, type RedisServer } from '../support/redis.ts';
import { SidecarProcess } from '../support/sidecar.ts';
import { AnsweringUpstream } from '../support/upstream.ts';

const PROCESSES = 4;
const CLIENTS = 8;
/** Never fills: half of it is there, and a test takes a few seconds. */
const CAPACITY = 20_000;
const START = CAPACITY / 2;
const PER_SECOND = 500;

interface Shared {
  readonly outputs: readonly LimiterProcessOutput[];
  readonly admitted: number;
  /** Units in the bucket in the end, and earned until then. */
  readonly level: number;
  readonly earned: number;
  readonly unitsPerToken: number;
}

async function share(processes: number, lease: boolean): Promise<Shared> {
  await using server = await openRedisServer();
  const uid = randomUUID();
  const bucket = bucketOf(CAPACITY, PER_SECOND);
  const tier = tierOf({ policy: { uid }, buckets: [bucket] });
  const key = new KeyInterner(1).intern(tier, 'client').buckets[0]?.key ?? '';
  const { text, unitsPerToken } = tier.buckets[0]?.bucket.stored ?? assert.fail();
  const from = await timeOf(server);
  const redis = server.client();
  await redis.set(key, `${START * unitsPerToken} ${from} ${text}`, 'PX', 60_000);

  // Until it has run dry for everybody.
  const work = { kind: 'share', clients: CLIENTS, admitted: 200, refused: 50 } as const;
  const outputs = await Promise.all(
    Array.from({ length: processes }, () =>
      runLimiterProcess({ url: server.url, uid, buckets: [bucket], lease, work }),
    ),
  );

  const [level = 0, stamp = 0] = ((await redis.get(key)) ?? '').split(' ').map(Number);
  const admitted = outputs.reduce((sum, { tally }) => sum + tally.admitted, 0);
  assert.ok(level < CAPACITY * unitsPerToken, 'the bucket was full: the account cannot be closed');
  // One unit a µs.
  return { outputs, admitted, level, earned: stamp - from, unitsPerToken };
}

async function timeOf(server: RedisServer): Promise<number> {
  const [seconds, micros] = await server.client().time();
  return Number(seconds) * 1_000_000 + Number(micros);
}

describe('one bucket and processes that take tokens ahead', () => {
  it('admits exactly what it held and earned, less what is left in it', async () => {
    const { outputs, admitted, level, earned, unitsPerToken } = await share(PROCESSES, true);

    assert.ok(outputs.every(({ tally }) => tally.degraded === 0 && tally.unsettled === 0));
    for (const { counted } of outputs) {
      assert.ok(counted.leaseUsed > 0, 'a process that leased nothing proves nothing');
      assert.equal(counted.leaseLost, 0);
      assert.equal(counted.leaseGranted, counted.leaseUsed + counted.leaseRefunded);
    }
    assert.equal(admitted * unitsPerToken, START * unitsPerToken + earned - level);
  });

  it('is asked less often for each request that it admits', async () => {
    const [without, leasing] = [await share(1, false), await share(1, true)];

    const callsPerRequest = [without, leasing].map(({ outputs, admitted }) => {
      const calls = outputs.reduce((sum, { counted }) => sum + counted.storeCalls, 0);
      return calls / admitted;
    });
    const [alone = 0, ahead = 0] = callsPerRequest;
    // A call admits the 8 who wait, with a lease 25 more; it is a half of that at the worst.
    assert.ok(ahead < alone / 2, `${ahead} calls a request, and ${alone} without`);
  });
});

describe('a sidecar that is told to stop', () => {
  const capacity = 100_000;
  const perSecond = 2_000;
  const policy = `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: hot }
spec:
  selector: {}
  rules:
    - name: all
      buckets: [{ capacity: ${capacity}, refill: { tokens: ${perSecond}, every: 1s } }]
`;

  for (const workers of [1, 2]) {
    it(`leaves exactly what it did not admit in the bucket, with ${workers} serving`, async () => {
      await using server = await openRedisServer();
      await using upstream = await AnsweringUpstream.open(
        'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
      );
      const flags = ['--redis', server.url, '--lease', 'true', '--deadline', '2s'];
      await using sidecar = await SidecarProcess.open({
        files: { 'hot.yaml': policy },
        upstreamPort: upstream.port,
        flags: [...flags, '--workers', String(workers)],
      });
      const redis = server.client();
      await fetch(`http://127.0.0.1:${sidecar.port}/`);
      const [key = ''] = await redis.keys('weir1:*');
      // From a known level at a known instant on, and never full again.
      const [, , ...limit] = ((await redis.get(key)) ?? '').split(' ');
      const [, , unitsPerToken = 0, unitsPerTick = 0, tickUs = 1] = limit.map(Number);
      const from = Math.floor((await timeOf(server)) / tickUs);
      const start = (capacity / 2) * unitsPerToken;
      await redis.set(key, `${start} ${from} ${limit.join(' ')}`, 'PX', 60_000);

      const sent = await driveLoad({
        ports: [sidecar.port],
        connectionsEach: 24,
        // As fast as it answers.
        rate: 1_000_000,
        key: 'any',
        signal: AbortSignal.timeout(1_000),
      });
      const granted = await sidecar.metric('weir_lease_tokens_total', '{fate="granted"}');
      sidecar.kill('SIGTERM');
      const code = await sidecar.exited;

      assert.equal(code, 0);
      assert.ok(granted > 0, 'nothing was leased');
      assert.ok(sent.every(({ status }) => status === 200));
      const [level = 0, stamp = 0] = ((await redis.get(key)) ?? '').split(' ').map(Number);
      const earned = (stamp - from) * unitsPerTick;
      assert.equal((start + earned - level) / unitsPerToken, sent.length);
    });
  }
});
