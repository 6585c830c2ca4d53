// CPU µs per decision of the limiter alone: this process (client side) and the Redis it asks, from the operating
// system's own accounting. 32 requests are in flight, as 32 busy connections would have them.
// Run: node bench/micro/limiter.ts [rounds]
import { readFile } from 'node:fs/promises';
import process from 'node:process';
import type { CompiledPolicy, CompiledRule, CompiledTier } from '../../contract/bundle.ts';
import { bucketsOfTier, type KeyedBuckets } from '../../sidecar/limiter/bucket.ts';
import { systemClock } from '../../sidecar/store/clock.ts';
import { Limiter } from '../../sidecar/store/limiter.ts';
import { MemoryStore } from '../../sidecar/store/memory-store.ts';
import { openStore } from '../../sidecar/store/open-store.ts';
import type { LimitWaiter, PendingRequest } from '../../sidecar/store/outcome.ts';
import { parseStoreSettings } from '../../contract/store-settings.ts';
import type { Store } from '../../sidecar/store/store.ts';
import { openRedisServer } from '../../test/support/redis.ts';

const IN_FLIGHT = 32;
const DECISIONS = 60_000;
const rounds = Number(process.argv[2] ?? 3);

interface Scenario {
  readonly name: string;
  readonly keys: number;
  readonly capacity: number;
  readonly buckets: number;
}

const scenarios: readonly Scenario[] = [
  { name: 'one hot key, allowed', keys: 1, capacity: 100_000_000, buckets: 1 },
  { name: '2 000 keys, allowed', keys: 2_000, capacity: 100_000_000, buckets: 1 },
  { name: '2 000 keys, 3 buckets', keys: 2_000, capacity: 100_000_000, buckets: 3 },
  { name: 'one key, refused', keys: 1, capacity: 1, buckets: 1 },
];

await using server = await openRedisServer();
await using redis = openStore(parseStoreSettings({ url: server.url }));
await redis.connected(AbortSignal.timeout(5_000));
const pid = Number(/process_id:(\d+)/.exec(await server.client().info('server'))?.[1]);
const memory = new MemoryStore(systemClock);

for (let round = 0; round < rounds; round += 1) {
  for (const scenario of scenarios) {
    await measure('redis', redis, scenario, `r${round}`);
    await measure('memory', memory, scenario, `m${round}`);
  }
}

async function measure(kind: string, store: Store, scenario: Scenario, uid: string): Promise<void> {
  await using limiter = new Limiter({ store });
  const keys = keysOf(limiter, scenario, uid);
  await drive(limiter, keys, DECISIONS / 10);
  const before = {
    own: process.cpuUsage(),
    server: await cpuUs(pid),
    calls: limiter.counters.storeCalls,
  };
  await drive(limiter, keys, DECISIONS);
  const own = process.cpuUsage(before.own);
  const client = (own.user + own.system) / DECISIONS;
  const redisUs = kind === 'redis' ? ((await cpuUs(pid)) - before.server) / DECISIONS : 0;
  const calls = (limiter.counters.storeCalls - before.calls) / DECISIONS;
  console.log(
    `${kind.padEnd(7)}${scenario.name.padEnd(24)}client ${client.toFixed(2)} µs  redis ${redisUs.toFixed(2)} µs  calls/decision ${calls.toFixed(3)}`,
  );
}

function keysOf(limiter: Limiter, scenario: Scenario, uid: string): KeyedBuckets[] {
  const limit = {
    capacity: scenario.capacity,
    unitsPerToken: 1_000_000,
    unitsPerTick: 1,
    tickUs: 1,
  } as const;
  const buckets = Array.from({ length: scenario.buckets }, (_, i) => ({ name: `b${i}`, limit }));
  const tier: CompiledTier = { name: '-', match: [], buckets };
  const rule: CompiledRule = {
    name: 'rule',
    mode: 'Enforce',
    match: [],
    except: [],
    key: [{ kind: 'clientIP' }],
    onMissingKey: 'ClientIP',
    tiers: [tier],
    onNoTier: 'Skip',
    cost: { tokens: 1 },
  };
  const policy: CompiledPolicy = {
    namespace: 'bench',
    name: 'policy',
    uid: `${uid}-${scenario.name}`,
    generation: 1,
    mode: 'Enforce',
    enforcePercent: 100,
    failureMode: 'Local',
    scope: 'Policy',
    replicas: 1,
    clientIP: { trustedHops: 0, trustedProxies: [], ipv6PrefixLength: 64 },
    response: { status: 429, quotaHeaders: 'RateLimit', headers: [] },
    except: [],
    rules: [rule],
  };
  const buckets0 = bucketsOfTier(policy, rule, tier);
  return Array.from({ length: scenario.keys }, (_, i) => limiter.keyed(buckets0, `key-${i}`));
}

/** Each of 32 clients asks again one turn of the event loop after its answer, as a connection would. */
async function drive(
  limiter: Limiter,
  keys: readonly KeyedBuckets[],
  count: number,
): Promise<void> {
  await new Promise<void>((resolve) => {
    let left = count;
    let running = IN_FLIGHT;
    let next = 0;
    const weights = [1];
    for (let i = 0; i < IN_FLIGHT; i += 1) {
      const parts: KeyedBuckets[] = [];
      const waiter: LimitWaiter = {
        pending: undefined as PendingRequest | undefined,
        onOutcome: () => {
          if (left <= 0) {
            running -= 1;
            if (running === 0) resolve();
            return;
          }
          setImmediate(ask);
        },
      };
      const ask = (): void => {
        left -= 1;
        next = (next + 1) % keys.length;
        const key = keys[next];
        if (key !== undefined) parts[0] = key;
        limiter.acquire(parts, weights, 1, waiter);
      };
      ask();
    }
  });
}

/** User and system time of a process, in µs. */
async function cpuUs(process_: number): Promise<number> {
  const stat = await readFile(`/proc/${process_}/schedstat`, 'utf8');
  return Number(stat.split(' ')[0]) / 1_000;
}
