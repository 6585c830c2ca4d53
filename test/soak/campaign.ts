// A soak: a real sidecar with a real Redis under mixed load for a while, then silence, then the account. Everything that
// came in must have gone one way, every token that Redis misses must have been spent by somebody, and nothing may stay.
import { setTimeout as delay } from 'node:timers/promises';
import { randomFrom } from '../support/http1-messages.ts';
import { eventually, openRedisServer } from '../support/redis.ts';
import type { RedisServer } from '../support/redis.ts';
import { closedPort } from '../support/upstream.ts';
import type { ProcessFacts } from './facts-preload.ts';
import { Ledger } from './ledger.ts';
import { limitsFor, soakPolicies, tokensTaken } from './soak-policies.ts';
import type { RuleName } from './soak-policies.ts';
import { SoakHttp2Upstream } from './soak-http2.ts';
import { SoakUpstream } from './soak-upstream.ts';
import { SoakedSidecar } from './soaked-sidecar.ts';
import { visits } from './visits.ts';
import type { Visitor } from './visits.ts';

/** Clients at work at once. */
const CLIENTS = 16;
/** What a visit takes from a bucket at most: a priced request, 9 and 5 afterwards. */
const MOST_TOKENS_A_VISIT = 14;
/** What lingers for longest is an unused connection of HTTP/2 to the application, half a minute. */
const QUIET_MS = 45_000;

export interface SoakOptions {
  readonly minutes: number;
  /** Visits a second, all clients together. */
  readonly perSecond: number;
  readonly seed: number;
  /** What the application may take: above what a busy machine keeps it from answering. */
  readonly upstreamTimeoutSeconds: number;
  /** How often the process is looked at. */
  readonly sampleMs: number;
  readonly onSurprise?: (text: string) => void;
  readonly onSample?: (sample: Sample, ledger: Ledger) => void;
}

/** The sidecar in the middle of its work. */
export interface Sample extends ProcessFacts {
  /** Since the load began. */
  readonly atMs: number;
}

/** The process without load. */
export interface Rest {
  readonly facts: ProcessFacts;
  readonly descriptors: number;
  readonly connections: number;
  readonly tunnels: number;
}

export interface SoakReport {
  readonly seconds: number;
  readonly ledger: Ledger;
  /** `weir_requests_total` by verdict. */
  readonly verdicts: Readonly<Record<string, number>>;
  /** Tokens missing in Redis. */
  readonly taken: Readonly<Record<RuleName, number>>;
  /** Other metrics that have to be 0. */
  readonly zeros: Readonly<Record<string, number>>;
  readonly clientAborts: number;
  /** Requests that the sidecar sent to the application a second time. */
  readonly retries: number;
  readonly upstreamSaw: number;
  readonly before: Rest;
  readonly after: Rest;
  readonly samples: readonly Sample[];
}

const VERDICTS = ['allowed', 'denied', 'unavailable', 'error', 'exempt'] as const;
const ZEROS = [
  'weir_faults_total',
  'weir_degraded_total',
  'weir_charge_unknown_total',
  'weir_charges_lost_total',
  'weir_connections_refused_total',
  'weir_heads_shed_total',
] as const;

/** Runs a soak to its end. Rejects only when a process cannot be started or does not come to rest. */
export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  await using redis = await openRedisServer();
  await using upstream = await SoakUpstream.open();
  await using http2 = await SoakHttp2Upstream.open((id) => {
    upstream.note(id);
  });
  await using sidecar = await openSidecar(options, { redis, upstream, http2 });
  const world = { upstream, sidecar, ledger: new Ledger(options.onSurprise) };
  await visitOnce(world);
  const before = await restOf(sidecar);

  const startedAt = performance.now();
  const end = new AbortController();
  const samples: Sample[] = [];
  const sampling = keepSampling(options, { ...world, samples, startedAt, signal: end.signal });
  const deadline = startedAt + options.minutes * 60_000;
  await Promise.all(
    Array.from({ length: CLIENTS }, (_, i) => keepVisiting(options, world, { i, deadline })),
  );
  end.abort();
  await sampling;
  const seconds = (performance.now() - startedAt) / 1_000;

  const after = await restOf(sidecar, before);
  return {
    ...{ seconds, ledger: world.ledger, before, after, samples },
    ...{ verdicts: await verdictsOf(sidecar), zeros: await zerosOf(sidecar) },
    taken: await tokensTaken(redis.client()),
    clientAborts: await sidecar.process.metric('weir_client_aborts_total'),
    retries: await sidecar.process.metric('weir_upstream_retries_total'),
    upstreamSaw: upstream.seen,
  };
}

interface World {
  readonly upstream: SoakUpstream;
  readonly sidecar: SoakedSidecar;
  readonly ledger: Ledger;
}

async function openSidecar(
  { minutes, upstreamTimeoutSeconds }: SoakOptions,
  {
    redis,
    upstream,
    http2,
  }: {
    readonly redis: RedisServer;
    readonly upstream: SoakUpstream;
    readonly http2: SoakHttp2Upstream;
  },
): Promise<SoakedSidecar> {
  const dead = await closedPort();
  return SoakedSidecar.open({
    files: soakPolicies(limitsFor(minutes)),
    upstreamPort: upstream.port,
    flags: [
      ...['--redis', redis.url, '--upstream-idle-timeout', '1s'],
      ...['--upstream-timeout', `${String(upstreamTimeoutSeconds)}s`],
      // A busy machine must not be taken for a store that is away.
      ...['--deadline', '20s'],
      ...['--listen', '127.0.0.1:0', '--upstream', `127.0.0.1:${String(dead)}`],
      ...['--listen', '127.0.0.1:0', '--upstream', `127.0.0.1:${String(http2.port)}`],
    ],
  });
}

function visitorOf({ upstream, sidecar, ledger }: World, client: string, seed: number): Visitor {
  const [port = 0, deadPort = 0, http2Port = 0] = sidecar.process.ports;
  let ids = 0;
  return {
    ...{ upstream, ledger, port, deadPort, http2Port, client, random: randomFrom(seed) },
    newId: () => {
      ids += 1;
      return `${client}-${String(seed)}-${String(ids)}`;
    },
  };
}

/** Everything that is made at first use is there afterwards. */
async function visitOnce(world: World): Promise<void> {
  for (const [name, [, visit]] of Object.entries(visits)) {
    world.ledger.visited(name);
    await visit(visitorOf(world, 'first', 1));
  }
}

async function keepVisiting(
  { minutes, perSecond, seed }: SoakOptions,
  world: World,
  { i, deadline }: { readonly i: number; readonly deadline: number },
): Promise<void> {
  const random = randomFrom(seed + i);
  const visitsAName = Math.floor(limitsFor(minutes).capacity / MOST_TOKENS_A_VISIT);
  const everyMs = (1_000 * CLIENTS) / perSecond;
  let dueAt = performance.now() + random() * everyMs;
  for (let n = 0; ; n += 1) {
    const inMs = dueAt - performance.now();
    if (inMs > 0) await delay(inMs);
    if (performance.now() >= deadline) return;
    const name = `${String(i)}-${String(Math.floor(n / visitsAName))}`;
    const visitor = visitorOf(world, name, Math.floor(random() * 2 ** 31));
    await makeVisit(world.ledger, chosenVisit(random()), {
      ...visitor,
    });
    // Whoever is late does not catch up: a stalled machine must not be followed by a flood.
    dueAt = Math.max(dueAt + everyMs, performance.now());
  }
}

async function makeVisit(ledger: Ledger, name: string, visitor: Visitor): Promise<void> {
  ledger.visited(name);
  try {
    await visits[name]?.[1](visitor);
  } catch (error) {
    ledger.surprise(`${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

const allWeights = Object.values(visits).reduce((sum, [weight]) => sum + weight, 0);

/** The visit at that share of all weights. */
function chosenVisit(share: number): string {
  let left = share * allWeights;
  for (const [name, [weight]] of Object.entries(visits)) {
    left -= weight;
    if (left < 0) return name;
  }
  return Object.keys(visits)[0] ?? '';
}

async function keepSampling(
  { sampleMs, onSample }: SoakOptions,
  run: World & {
    readonly samples: Sample[];
    readonly startedAt: number;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  while (await sleeps(sampleMs, run.signal)) {
    const sample = { ...(await run.sidecar.facts()), atMs: performance.now() - run.startedAt };
    run.samples.push(sample);
    onSample?.(sample, run.ledger);
  }
}

/** False when it was woken. */
function sleeps(ms: number, signal: AbortSignal): Promise<boolean> {
  return delay(ms, true, { signal }).catch(() => false);
}

/** What the sidecar holds once it has come to rest; as little as `before`, or what it is after half a minute. */
async function restOf(sidecar: SoakedSidecar, before?: Rest): Promise<Rest> {
  const looks: Rest[] = [];
  const isResting = async (): Promise<boolean> => {
    const rest = await lookedAt(sidecar);
    looks.push(rest);
    return isAtRest(rest, before);
  };
  // What does not come to rest is shown by what it is then.
  await eventually('rest', isResting, QUIET_MS).catch(() => undefined);
  return looks.at(-1) ?? lookedAt(sidecar);
}

async function lookedAt(sidecar: SoakedSidecar): Promise<Rest> {
  return {
    connections: await sidecar.process.metric('weir_connections'),
    tunnels: await sidecar.process.metric('weir_tunnels'),
    descriptors: await sidecar.descriptors(),
    facts: await sidecar.facts(),
  };
}

/** Before there is anything to compare with: besides listeners the store’s connection and one of HTTP/2 are left. */
function isAtRest(rest: Rest, before: Rest | undefined): boolean {
  const { facts, descriptors, connections, tunnels } = rest;
  if (connections > 0 || tunnels > 0) return false;
  if (before === undefined) return (facts.resources['TCPSocketWrap'] ?? 0) <= 2;
  return descriptors <= before.descriptors && hasNoMore(facts.resources, before.facts.resources);
}

/** Whether of no kind of resource there is more than before. */
export function hasNoMore(
  now: Readonly<Record<string, number>>,
  before: Readonly<Record<string, number>>,
): boolean {
  return Object.entries(now).every(([name, count]) => count <= (before[name] ?? 0));
}

async function verdictsOf(sidecar: SoakedSidecar): Promise<Record<string, number>> {
  const verdicts: Record<string, number> = {};
  for (const verdict of VERDICTS) {
    const labels = `{verdict="${verdict}"}`;
    verdicts[verdict] = await sidecar.process.metric('weir_requests_total', labels);
  }
  return verdicts;
}

async function zerosOf(sidecar: SoakedSidecar): Promise<Record<string, number>> {
  const zeros: Record<string, number> = {};
  for (const name of ZEROS) zeros[name] = await sidecar.process.metric(name);
  return zeros;
}
