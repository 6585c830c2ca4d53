// npm run bench:faults: what the limiter promises in wall time when its store freezes or dies, on real processes. Each
// failure mode gets a Redis and a sidecar of its own; the store is frozen (SIGSTOP), let go, killed and started again
// under load. Exits 1 when a promise is not kept. Ends by itself after about a minute.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { readArguments } from '../scripts/arguments.ts';
import type { FailureMode } from '../contract/bundle.ts';
import { openRedisServer } from '../test/support/redis.ts';
import type { RedisServer } from '../test/support/redis.ts';
import type { FaultCheck } from './faults-result.ts';
import { freePort } from './free-port.ts';
import { QUIET_BUSY_SHARE, machineFacts, waitForQuiet } from './machine.ts';
import { Meter } from './meter.ts';
import { writeUpstream } from './nginx-text.ts';
import { Traffic } from './outage-traffic.ts';
import type { Answer } from './outage-traffic.ts';
import { LOAD_CORE, PinnedProcess, pinRunning, starvedMs } from './pinned-process.ts';
import { keep, writeReport } from './report.ts';
import { buildSidecar, startSidecar } from './sidecar.ts';
import type { Sidecar } from './sidecar.ts';

const DEADLINE_MS = 50;
/** What an answer may come after its deadline: one turn of the event loop and the way back. */
const SLACK_MS = 5;
const RECOVERY_MS = 2_000;
/** The breaker has opened by then: five calls in a row at one deadline each, and some. */
const SETTLED_MS = 500;
const OUTAGE_MS = 3_000;
const PER_SECOND = 200;
/** A tenth of a second: one answer that a busy machine delays past its deadline is no relapse. */
const IN_A_ROW = 20;
const WARM_UP_MS = 1_500;
const QUIET_WAIT_MS = 30_000;

/** Of the Local policy's one key: what one pod may admit on its own in Δt is capacity + refill·Δt. */
const LOCAL = { capacity: 20, perSecond: 10 } as const;

const { values: flags } = readArguments({
  command: 'npm run bench:faults',
  about:
    'What the limiter promises when its store freezes or dies. Exit code 1: a promise is not kept.',
  lines: ['--dry   keep no results'],
  config: { options: { dry: { type: 'boolean', default: false } } },
});

await using stack = new AsyncDisposableStack();
const folder = await mkdtemp(path.join(tmpdir(), 'weir-faults-'));
stack.defer(() => rm(folder, { recursive: true, force: true }));
await buildSidecar();
const busyShare = await waitForQuiet(QUIET_WAIT_MS);
const isQuiet = busyShare < QUIET_BUSY_SHARE;
if (!isQuiet) {
  say(`the machine is not quiet: ${(100 * busyShare).toFixed(0)} % busy with other work`);
}
await pinRunning(process.pid, LOAD_CORE);
const upstream = await openUpstream();
const checks: FaultCheck[] = [];
for (const mode of ['Closed', 'Open', 'Local'] as const) checks.push(...(await checkMode(mode)));
for (const { what, measured, bound, isMet } of checks) {
  process.stdout.write(`${isMet ? 'met   ' : 'MISSED'}  ${what}: ${measured} (${bound})\n`);
}
if (!flags.dry) {
  const at = new Date().toISOString();
  await keep('faults.json', {
    at,
    machine: machineFacts(),
    isQuiet,
    deadlineMs: DEADLINE_MS,
    checks,
  });
  await writeReport();
}
if (checks.some(({ isMet }) => !isMet)) process.exitCode = 1;

async function openUpstream(): Promise<number> {
  const port = await freePort();
  const config = await writeUpstream({ folder, name: 'upstream', port });
  const args = ['-e', '/dev/null', '-c', config];
  await stack.use(new PinnedProcess('nginx', args, { core: LOAD_CORE })).listening(port);
  return port;
}

async function checkMode(mode: FailureMode): Promise<FaultCheck[]> {
  say(`failureMode: ${mode}`);
  await using redis = await openRedisServer();
  await Meter.open(redis.port);
  await using sidecar = await startSidecar({
    policy: await writeFaultPolicy(mode),
    upstream,
    redis: redis.port,
    flags: ['--deadline', `${String(DEADLINE_MS)}ms`, '--log-level', 'info'],
  });
  await using traffic = new Traffic({
    port: sidecar.port,
    perSecond: PER_SECOND,
    keys: mode === 'Local' ? ['one'] : Array.from({ length: 50 }, (_, i) => `client-${String(i)}`),
  });
  const id = sidecar.process.id;
  await traffic.run(WARM_UP_MS);
  const before = await traffic.run(WARM_UP_MS);
  const starvedBefore = await starvedMs(id);
  const frozen = await outage(redis, traffic, 'frozen');
  const dead = await outage(redis, traffic, 'killed');
  return [
    {
      what: `${mode}: answers before any outage, p99`,
      measured: `${percentile(before, 0.99).toFixed(1)} ms`,
      bound: 'tells how quiet the machine was',
      isMet: true,
    },
    {
      what: `${mode}: the sidecar waited for a processor, of 12 s`,
      measured: `${((await starvedMs(id)) - starvedBefore).toFixed(0)} ms`,
      bound: 'tells how quiet the machine was',
      isMet: true,
    },
    ...promisesKept(mode, 'frozen', frozen),
    ...promisesKept(mode, 'killed', dead),
    ...linesLogged(mode, sidecar),
  ];
}

interface Outage {
  readonly during: readonly Answer[];
  readonly startedAt: number;
  readonly recoveryMs: number;
}

type Fault = 'frozen' | 'killed';

async function outage(redis: RedisServer, traffic: Traffic, fault: Fault): Promise<Outage> {
  const startedAt = performance.now();
  if (fault === 'frozen') redis.freeze();
  else await redis.stop();
  const during = await traffic.run(OUTAGE_MS);
  if (fault === 'frozen') redis.thaw();
  else await redis.start();
  const backAt = performance.now();
  const after = await traffic.run(RECOVERY_MS + 1_000);
  return { during, startedAt, recoveryMs: recoveredAt(after) - backAt };
}

/** When the first of twenty answers in a row left that the store gave; Infinity when there is no such row. */
function recoveredAt(answers: readonly Answer[]): number {
  let [row, since] = [0, Infinity];
  for (const { isFromStore, atMs } of answers) {
    if (!isFromStore) row = 0;
    else if (row === 0) since = atMs;
    if (isFromStore) row += 1;
    if (row === IN_A_ROW) return since;
  }
  return Infinity;
}

function promisesKept(
  mode: FailureMode,
  fault: Fault,
  { during, startedAt, recoveryMs }: Outage,
): FaultCheck[] {
  const settled = during.filter(({ atMs }) => atMs - startedAt > SETTLED_MS);
  const slowest = percentile(during, 0.99);
  const later = percentile(settled, 0.95);
  const where = `${mode}, store ${fault}`;
  return [
    check(`${where}: answers, p99`, { value: slowest, bound: DEADLINE_MS + SLACK_MS, unit: 'ms' }),
    check(`${where}: answers once the breaker is open, p95`, {
      value: later,
      bound: SLACK_MS,
      unit: 'ms',
    }),
    verdictCheck(mode, where, during),
    check(`${where}: the store decides again after`, {
      value: recoveryMs,
      bound: RECOVERY_MS,
      unit: 'ms',
    }),
  ];
}

function verdictCheck(mode: FailureMode, where: string, during: readonly Answer[]): FaultCheck {
  // What left just before the outage was seen may still have been decided by the store.
  const byMode = during.filter(({ isFromStore }) => !isFromStore);
  const admitted = byMode.filter(({ status }) => status === 200).length;
  const counted = `${String(admitted)} of ${String(byMode.length)} admitted`;
  switch (mode) {
    case 'Closed': {
      const isMet = byMode.length > 0 && byMode.every(({ status }) => status === 503);
      return { what: `${where}: verdicts`, measured: counted, bound: 'all 503', isMet };
    }
    case 'Open': {
      const isMet = byMode.length > 0 && admitted === byMode.length;
      return { what: `${where}: verdicts`, measured: counted, bound: 'all admitted', isMet };
    }
    case 'Local': {
      const most = LOCAL.capacity + Math.ceil((LOCAL.perSecond * (OUTAGE_MS + 100)) / 1_000);
      const isMet = admitted > 0 && admitted <= most;
      const bound = `1..${String(most)} admitted`;
      return { what: `${where}: verdicts`, measured: counted, bound, isMet };
    }
  }
}

/** One line when the store goes, one when it is back, for each of the two outages. */
function linesLogged(mode: FailureMode, sidecar: Sidecar): FaultCheck[] {
  const lines = sidecar.process.errors
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line): Readonly<Record<string, unknown>> => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line['event'] === 'breaker');
  const gone = lines.filter((line) => line['from'] === 'closed').length;
  const back = lines.filter((line) => line['to'] === 'closed').length;
  return [
    {
      what: `${mode}: log lines of two outages`,
      measured: `${String(gone)} gone, ${String(back)} back, ${String(lines.length)} in all`,
      bound: '2 gone, 2 back, no other',
      isMet: gone === 2 && back === 2 && lines.length === 4,
    },
  ];
}

interface Measure {
  readonly value: number;
  readonly bound: number;
  readonly unit: string;
}

function check(what: string, { value, bound, unit }: Measure): FaultCheck {
  return {
    what,
    measured: `${value.toFixed(1)} ${unit}`,
    bound: `≤ ${String(bound)} ${unit}`,
    isMet: value <= bound,
  };
}

function percentile(answers: readonly Answer[], share: number): number {
  const sorted = answers.map(({ latencyMs }) => latencyMs).sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

async function writeFaultPolicy(mode: FailureMode): Promise<string> {
  const file = path.join(folder, `${mode.toLowerCase()}.yaml`);
  const { capacity, perSecond } =
    mode === 'Local' ? LOCAL : { capacity: 100_000, perSecond: 100_000 };
  const text = `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: faults, namespace: bench}
spec:
  selector: {}
  failureMode: ${mode}
  rules:
    - name: per-key
      key: [{header: {name: X-Api-Key}}]
      buckets: [{capacity: ${String(capacity)}, refill: {tokens: ${String(perSecond)}, every: 1s}}]
`;
  await writeFile(file, text);
  return file;
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
