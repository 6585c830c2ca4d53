// The promises in wall time that `npm test` must not make: nobody waits beyond deadline + 5 ms, and the store decides
// again within 2 s after it is back. Exits 1 on a miss. Run: npm run bench:faults [-- --rounds N] on a quiet machine.
import { randomUUID } from 'node:crypto';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { readArguments } from '../scripts/arguments.ts';
import type { KeyedBuckets } from '../sidecar/limiter/bucket.ts';
import { DEFAULT_DEADLINE_MS, Limiter } from '../sidecar/store/limiter.ts';
import { openStore } from '../sidecar/store/open-store.ts';
import { parseStoreSettings } from '../contract/store-settings.ts';
import { ask } from '../test/support/asking.ts';
import { FaultProxy } from '../test/support/fault-proxy.ts';
import { bucketOf, tierOf } from '../test/support/limiter-fixture.ts';
import { openRedisSentinel, openRedisServer, type RedisServer } from '../test/support/redis.ts';

const MOST_WAIT_MS = DEFAULT_DEADLINE_MS + 5;
const MOST_RECOVERY_MS = 2_000;
const CLIENTS = 32;
const PAUSE_MS = 5;

interface Scene {
  readonly server: RedisServer;
  readonly proxy: FaultProxy;
}

/** Strikes, and resolves when the store is back. */
type Strike = (scene: Scene) => Promise<void>;

const strikes: Readonly<Record<string, Strike>> = {
  'SCRIPT FLUSH': async ({ server }) => {
    await server.client().script('FLUSH');
  },
  'CLIENT KILL': async ({ server }) => {
    await server.client().call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  },
  'stopped for 1 s': async ({ server }) => {
    await server.stop();
    await delay(1_000);
    await server.start();
  },
  'frozen for 5 s': async ({ server }) => {
    server.freeze();
    await delay(5_000);
    server.thaw();
  },
  'replies lost for 3 s': async ({ proxy }) => {
    proxy.losesReplies = true;
    await delay(3_000);
    proxy.losesReplies = false;
  },
  'path swallows all for 3 s': async ({ proxy }) => {
    proxy.losesReplies = true;
    proxy.losesRequests = true;
    await delay(3_000);
    proxy.losesReplies = false;
    proxy.losesRequests = false;
  },
};

interface Watched {
  /** The longest that any request waited. */
  longestMs: number;
  requests: number;
}

const { values } = readArguments({
  command: 'node bench/store-faults.ts',
  about:
    'What the store promises in wall time, on a quiet machine. Exit code 1: a promise is missed.',
  lines: ['--rounds N   how often each fault strikes (1)'],
  config: { options: { rounds: { type: 'string', default: '1' } } },
  numbers: ['rounds'],
});
const misses: string[] = [];
for (let round = 0; round < Number(values.rounds); round += 1) {
  for (const [name, strike] of Object.entries(strikes)) await stage(name, strike);
  await stageFailover();
}
process.exitCode = misses.length > 0 ? 1 : 0;

async function stage(name: string, strike: Strike): Promise<void> {
  await using server = await openRedisServer();
  await using proxy = await FaultProxy.open(server.port);
  await measure(name, proxy.url, () => strike({ server, proxy }));
}

async function stageFailover(): Promise<void> {
  await using redis = await openRedisSentinel();
  await measure('Sentinel failover on command', redis.url, () => redis.failover());
}

async function measure(name: string, url: string, strike: () => Promise<void>): Promise<void> {
  await using store = openStore(parseStoreSettings({ url }));
  await store.connected(AbortSignal.timeout(10_000));
  await using limiter = new Limiter({ store });
  const tier = tierOf({
    policy: { uid: randomUUID(), failureMode: 'Local' },
    buckets: [bucketOf(100_000_000, 1)],
  });
  const keys = Array.from({ length: CLIENTS }, (_, i) => limiter.keyed(tier, `client ${i}`));
  const watched: Watched = { longestMs: 0, requests: 0 };
  const end = new AbortController();
  const clients = keys.map((keyed) => keepWatching(limiter, keyed, watched, end.signal));
  await delay(500);
  watched.longestMs = 0;

  await strike();
  const back = performance.now();
  while ((await ask(limiter, keys.slice(0, 1))).degraded) await delay(PAUSE_MS);
  const recoveryMs = performance.now() - back;

  end.abort();
  await Promise.all(clients);
  report(name, watched, recoveryMs);
}

async function keepWatching(
  limiter: Limiter,
  keyed: KeyedBuckets,
  watched: Watched,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const start = performance.now();
    await ask(limiter, [keyed]);
    watched.longestMs = Math.max(watched.longestMs, performance.now() - start);
    watched.requests += 1;
    await delay(PAUSE_MS);
  }
}

function report(name: string, watched: Watched, recoveryMs: number): void {
  const isMiss = watched.longestMs > MOST_WAIT_MS || recoveryMs > MOST_RECOVERY_MS;
  if (isMiss) misses.push(name);
  console.log(
    [
      name.padEnd(30),
      `longest wait ${watched.longestMs.toFixed(1)} ms (≤ ${MOST_WAIT_MS})`.padEnd(34),
      `recovery ${recoveryMs.toFixed(0)} ms (≤ ${MOST_RECOVERY_MS})`.padEnd(28),
      `${watched.requests} requests`,
      isMiss ? 'MISS' : '',
    ].join(' '),
  );
}
