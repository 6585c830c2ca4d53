// Faults in everything around the sidecars, one after the other, under traffic the whole time. What is counted: each
// answer against what the policies say, each write of the policies' status, each time a sidecar has its rules from
// anywhere but the stream, and how long after a fault an edit is in force again.
import { FaultProxy } from '../support/fault-proxy.ts';
import { driveLoad, type Sent } from '../support/load.ts';
import { eventually } from '../support/redis.ts';
import { CampaignWatch, type Seen } from './campaign-watch.ts';
import { deployment, policy, type EnforcedApp } from './enforced-app.ts';
import { faults, type FaultScene } from './operator-faults.ts';

export const PODS = 3;
/** Of the policy whose bucket fills all the time: demand is above the rate, so both bounds hold. */
export const STEADY = { capacity: 60, perSecond: 30 } as const;
/** Of the policy whose bucket never fills: so many are admitted, however long it takes. */
export const FIXED_CAPACITY = 500;
const STEADY_RATE = 75;
const FIXED_RATE = 15;
const CONNECTIONS_EACH = 2;
/** A restart of the API server on two busy cores takes 10 s, a Lease 15 s to run out. */
const RECOVERY_TIMEOUT_MS = 120_000;
/** Policies that nobody edits while faults strike. */
const UNTOUCHED = ['steady', 'fixed'] as const;

export interface Strike {
  readonly fault: string;
  /** From the strike until an edit of a policy was in force on every sidecar. */
  readonly recoveredMs: number;
}

export interface CampaignReport extends Seen {
  readonly seconds: number;
  readonly strikes: readonly Strike[];
  /** How often a replica ended by itself, as one does that loses its Lease. */
  readonly endings: number;
  readonly steady: Account;
  readonly fixed: Account;
}

export interface Account {
  readonly requests: number;
  readonly admitted: number;
  readonly refused: number;
  /** Answers that are neither: ours would be 502 or 503. */
  readonly others: Readonly<Record<number, number>>;
  readonly least: number;
  readonly most: number;
}

export interface CampaignPlan {
  readonly faults: readonly string[];
  /** Goes through the faults again and again for at least this long; 0 = once. */
  readonly atLeastMs: number;
  readonly onStrike?: (strike: Strike) => void;
}

/** Expects an app with two replicas and nothing deployed. Rejects when something does not recover. */
export async function runCampaign(app: EnforcedApp, plan: CampaignPlan): Promise<CampaignReport> {
  await using detour = await FaultProxy.open(app.redis.port);
  await arrange(app);
  const end = new AbortController();
  const watching = new CampaignWatch(app, UNTOUCHED, end.signal);
  const startedMs = performance.now();
  const loads = Promise.all([
    load(app, { key: 'steady', rate: STEADY_RATE, signal: end.signal }),
    load(app, { key: 'fixed', rate: FIXED_RATE, signal: end.signal }),
  ]);
  // The load is what fails first when a connection breaks; the strikes are not to go on without it.
  const strikes = await Promise.race([
    strikeAll({ app, detour, turn: 0 }, plan, watching).finally(() => {
      end.abort();
    }),
    loads.then(() => []),
  ]);
  const seconds = (performance.now() - startedMs) / 1_000;
  const [steady, fixed] = await loads;
  await watching.ended;
  return {
    ...{ seconds, strikes },
    endings: app.operators.replicas.reduce((sum, one) => sum + one.endings, 0),
    steady: accountOf(steady, STEADY),
    fixed: accountOf(fixed, { capacity: FIXED_CAPACITY, perSecond: 0 }),
    ...watching.found,
  };
}

async function arrange(app: EnforcedApp): Promise<void> {
  await app.apply([
    deployment('api', { replicas: PODS }),
    keyedPolicy('steady', { capacity: STEADY.capacity, tokens: STEADY.perSecond, every: '1s' }),
    // 366 days for one token: none comes back while this runs.
    keyedPolicy('fixed', { capacity: FIXED_CAPACITY, tokens: FIXED_CAPACITY, every: '366d' }),
    probe(1),
  ]);
  await app.sidecars.follow(PODS);
  for (const name of [...UNTOUCHED, 'probe']) await app.untilInForce(name);
  for (const name of UNTOUCHED) {
    await app.untilConditions(name, { Programmed: 'True/Programmed', Enforced: 'True/Enforced' });
  }
}

interface Refill {
  readonly capacity: number;
  readonly tokens: number;
  readonly every: string;
}

/** For requests that say so in X-Api-Key. `Closed`: a decision without the store would be a 503. */
function keyedPolicy(name: string, { capacity, tokens, every }: Refill): object {
  return policy(name, {
    spec: { failureMode: 'Closed' },
    rule: {
      match: [{ headers: [{ name: 'X-Api-Key', value: name }] }],
      buckets: [{ capacity, refill: { tokens, every } }],
    },
  });
}

/** A policy that no request meets, edited to see whether edits still arrive. */
function probe(capacity: number): object {
  return keyedPolicy('probe', { capacity, tokens: 1, every: '1s' });
}

interface LoadOptions {
  readonly key: string;
  readonly rate: number;
  readonly signal: AbortSignal;
}

function load(app: EnforcedApp, options: LoadOptions): Promise<Sent[]> {
  const { ports } = app.sidecars;
  return driveLoad({ ports, connectionsEach: CONNECTIONS_EACH, ...options });
}

async function strikeAll(
  scene: FaultScene,
  { faults: names, atLeastMs, onStrike }: CampaignPlan,
  watching: CampaignWatch,
): Promise<readonly Strike[]> {
  const strikes: Strike[] = [];
  const startedMs = performance.now();
  do {
    for (const name of names) {
      const turn = strikes.length;
      watching.fault = name;
      const struckMs = performance.now();
      const fault = faults[name];
      if (fault === undefined) throw new Error(`there is no fault ${name}`);
      await fault({ ...scene, turn });
      await recovered(scene.app, turn + 2);
      const strike = { fault: name, recoveredMs: performance.now() - struckMs };
      strikes.push(strike);
      onStrike?.(strike);
    }
  } while (performance.now() - startedMs < atLeastMs);
  // What settles only now must not change any status either.
  await settled(scene.app);
  return strikes;
}

/** An edit goes the whole way again. */
async function recovered(app: EnforcedApp, capacity: number): Promise<void> {
  await eventually(
    'the API server takes an edit',
    async () => {
      const answer = await app.tryApply(probe(capacity)).catch(() => undefined);
      return answer !== undefined && answer.status < 300;
    },
    RECOVERY_TIMEOUT_MS,
  );
  for (const { name, process: sidecar } of app.sidecars.all) {
    await eventually(
      `the edit is in force on ${name}`,
      async () => {
        const { policies } = await sidecar.bundle();
        const found = policies.find((one) => one.name === 'probe');
        return found?.rules[0]?.tiers[0]?.buckets[0]?.limit.capacity === capacity;
      },
      RECOVERY_TIMEOUT_MS,
    );
  }
}

/** Every replica is ready, one leads, and the status of the policy that was edited is that of its last generation. */
async function settled(app: EnforcedApp): Promise<void> {
  for (const replica of app.operators.replicas) await replica.ready();
  await app.operators.leader();
  await app.untilConditions('probe', { Programmed: 'True/Programmed', Enforced: 'True/Enforced' });
}

/**
 * At most capacity + rate · (last answer − first request), at least rate · (last request − first answer) less what was
 * under way on each connection and the token that was not whole; a bucket that never fills gives its capacity.
 */
function accountOf(
  sent: readonly Sent[],
  { capacity, perSecond }: { readonly capacity: number; readonly perSecond: number },
): Account {
  const admitted = sent.filter(({ status }) => status === 200).length;
  const refused = sent.filter(({ status }) => status === 429).length;
  const others: Record<number, number> = {};
  for (const { status } of sent) {
    if (status !== 200 && status !== 429) others[status] = (others[status] ?? 0) + 1;
  }
  const first = Math.min(...sent.map(({ sentMs }) => sentMs));
  const last = Math.max(...sent.map(({ doneMs }) => doneMs));
  const seconds = (last - first) / 1_000;
  const inFlight = PODS * CONNECTIONS_EACH;
  const least =
    perSecond === 0
      ? Math.min(capacity, sent.length)
      : Math.floor(perSecond * seconds) - 2 * inFlight - 1;
  const most = capacity + Math.floor(perSecond * seconds);
  return { requests: sent.length, admitted, refused, others, least, most };
}
