// npm run bench:control: what the operator costs and how fast it is beside a real API server: 1 000 sidecars (the real
// stream client without a data path, each with a token of its own pod) and 500 policies. Pods come from Deployments
// through the webhook. Edits, deletions, a minute of rest, and a crash of the operator. Exits 1 when a goal is missed.
// Ends by itself after about five minutes.
// x509, which the control plane's credentials are made with, wants it before it is loaded.
import 'reflect-metadata';
import { mkdtemp, rm } from 'node:fs/promises';
import { setPriority, tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { readArguments } from '../scripts/arguments.ts';
import { openControlPlane, type ControlPlane } from '../test/cluster/control-plane.ts';
import { installCrds } from '../test/cluster/crd-installation.ts';
import { listAt, textAt, valueAt } from '../test/cluster/json-value.ts';
import { installOperatorAccess, OperatorProcess } from '../test/cluster/operator-process.ts';
import { freeServerPort } from '../test/cluster/port.ts';
import { eventually } from '../test/support/redis.ts';
import { operatorRequests, statusWrites, tokenReviews } from './control/audit-log.ts';
import { isMet, ofGoal, percentile, shown, type ControlFigure } from './control/control-result.ts';
import { deletePolicies, editPolicies, type Latencies } from './control/edits.ts';
import { sharedNowMs } from './control/fleet-message.ts';
import { Fleet } from './control/fleet.ts';
import { asInPod, buildOperator } from './control/operator-program.ts';
import {
  APP_SIZE,
  appsFor,
  createApps,
  createPolicies,
  EVERYONE,
  NAMESPACE,
  policiesPath,
  runPods,
  writeTokens,
  type PolicyPlace,
} from './control/population.ts';
import { QUIET_BUSY_SHARE, machineFacts, waitForQuiet } from './machine.ts';
import { NICENESS, processorTimeUs, residentMb } from './pinned-process.ts';
import { keep, writeReport } from './report.ts';

const SIDECARS = 1_000;
const POLICIES = 500;
const EDITS = 40;
const EDITS_OF_ALL = 8;
const DELETIONS = 10;
const REST_MS = 60_000;
/** The operator believes silence a minute after its start, and writes a status at most every 5 s. */
const SETTLED_AFTER_START_MS = 75_000;
const CONNECT_WITHIN_MS = 120_000;
const SAMPLE_MS = 2_000;
const QUIET_WAIT_MS = 30_000;

const { values: flags } = readArguments({
  command: 'npm run bench:control',
  about: 'What the operator costs and how fast it is. Exit code 1: a goal is missed.',
  lines: [
    `--sidecars N            a smaller world, for trying; its results are not kept (${SIDECARS})`,
    `--policies N            the same (${POLICIES})`,
    '--dry                   keep no results',
    "--operator-node FLAGS   more flags for the operator's node, such as --cpu-prof",
  ],
  config: {
    options: {
      dry: { type: 'boolean', default: false },
      sidecars: { type: 'string', default: String(SIDECARS) },
      policies: { type: 'string', default: String(POLICIES) },
      'operator-node': { type: 'string', default: '' },
    },
  },
  numbers: ['sidecars', 'policies'],
});
const sidecars = countFrom('sidecars', APP_SIZE, 5_000);
const policyCount = countFrom('policies', 20, 5_000);
const isFull = sidecars === SIDECARS && policyCount === POLICIES;

interface Bench {
  readonly cluster: ControlPlane;
  readonly policies: readonly PolicyPlace[];
  readonly fleet: Fleet;
  readonly startOperator: () => Promise<OperatorProcess>;
  readonly operator: OperatorProcess;
}

const startedMs = performance.now();
await using stack = new AsyncDisposableStack();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    say('ending');
    void stack.disposeAsync().finally(() => process.exit(1));
  });
}
const folder = await mkdtemp(path.join(tmpdir(), 'weir-control-'));
stack.defer(() => rm(folder, { recursive: true, force: true }));
const busyShare = await waitForQuiet(flags.dry ? 0 : QUIET_WAIT_MS);
const isQuiet = busyShare < QUIET_BUSY_SHARE;
if (!isQuiet) {
  say(`the machine is not quiet: ${(100 * busyShare).toFixed(0)} % busy with other work`);
}
// Everything it starts inherits that.
setPriority(NICENESS);
const figures: ControlFigure[] = [];
const bench = await openBench();
await measureEdits(bench);
await measureRest(bench);
await measureRestart(bench);
for (const figure of figures) {
  const { what, value, unit, goal } = figure;
  const ratio = ofGoal(figure);
  const share = ratio === '' ? '' : `${ratio} of the `;
  const bound = goal === undefined ? '' : ` (${share}goal: ${shown(goal, unit)})`;
  const verdict = goal === undefined ? '      ' : isMet(figure) ? 'met   ' : 'MISSED';
  process.stdout.write(`${verdict}  ${what}: ${shown(value, unit)}${bound}\n`);
}
if (!flags.dry && isFull) {
  const at = new Date().toISOString();
  const about = { busyShare, isQuiet, sidecars, policies: policyCount, figures };
  await keep('control.json', { at, machine: machineFacts(), ...about });
  await writeReport();
}
if (figures.some((figure) => !isMet(figure))) process.exitCode = 1;

async function openBench(): Promise<Bench> {
  const program = await buildOperator(path.join(folder, 'dist'));
  const more = flags['operator-node'].split(' ').filter((flag) => flag !== '');
  say('starting a control plane');
  const cluster = stack.use(await openControlPlane({ audit: true, say }));
  const { api } = cluster;
  await installCrds(api);
  await installOperatorAccess(cluster);
  const apps = appsFor(sidecars);
  const policies = await createPolicies(api, policyCount, apps);
  say(`${String(policyCount)} policies are there`);
  const inPod = await asInPod(cluster, path.join(folder, 'account'));
  const ports = { webhook: await freeServerPort(), stream: await freeServerPort() };
  const startOperator = async (): Promise<OperatorProcess> =>
    stack.use(
      await OperatorProcess.start({
        ...{ cluster, program: [...inPod, ...more, ...program], ports },
        onLog: (line) => {
          // What it says of its own failures is worth a person's eyes; the rest is not.
          if (/"level":"(error|fatal)"/.test(line)) say(`the operator: ${line}`);
        },
      }),
    );
  const operator = await startOperator();
  await operator.ready();
  await createApps(api, apps);
  const pods = await runPods(api, sidecars, say);
  const simulated = await writeTokens(api, pods, folder);
  say('every sidecar has a token; connecting');
  const ca = await trustFrom(cluster);
  const openedMs = sharedNowMs();
  const fleet = stack.use(await Fleet.open({ url: operator.addresses.stream, ca }, simulated));
  const times = await fleet.programmed(CONNECT_WITHIN_MS);
  note({
    what: 'all sidecars connect for the first time, at once: the last one obeys after',
    ...{ value: (Math.max(...times) - openedMs) / 1_000, unit: 's' },
  });
  await everyoneProgrammed(cluster);
  return { cluster, policies, fleet, startOperator, operator };
}

async function measureEdits({ cluster, policies, fleet, operator }: Bench): Promise<void> {
  const fromMs = Date.now();
  const context = { api: cluster.api, fleet };
  const of50 = policies.filter(({ pods, name }) => pods === APP_SIZE && name !== EVERYONE);
  say(`editing policies of ${String(APP_SIZE)} sidecars`);
  const cpuBefore = await processorTimeUs(operator.pid);
  const some = await editPolicies(context, of50.slice(0, -DELETIONS), EDITS);
  const cpuMs = ((await processorTimeUs(operator.pid)) - cpuBefore) / 1_000;
  noteLatencies(`an edit is in force on ${String(APP_SIZE)} sidecars`, some, 1_000);
  note({
    what: `processor time of the operator for one edit of ${String(APP_SIZE)} sidecars, streams included`,
    ...{ value: cpuMs / EDITS, unit: 'ms' },
  });
  say(`editing the policy of all ${String(sidecars)} sidecars`);
  const ofAll = policies.filter(({ name }) => name === EVERYONE);
  const all = await editPolicies(context, ofAll, EDITS_OF_ALL);
  noteLatencies(`an edit is in force on all ${String(sidecars)} sidecars`, all, 2_000);
  say('deleting policies');
  const gone = await deletePolicies(context, of50.slice(-DELETIONS));
  noteLatencies('a deleted policy is lifted', gone, 1_000);
  await everyoneProgrammed(cluster);
  await noteStatusWrites(cluster, { fromMs, of: 'edits and deletions', goal: 3 * EDITS_OF_ALL });
}

function noteLatencies(what: string, latencies: Latencies, goal: number): void {
  const every = latencies.flat();
  const slowest = latencies.map((one) => Math.max(...one));
  note({ what: `${what}, half of them after`, value: percentile(every, 0.5), unit: 'ms' });
  note({ what: `${what}, 99 % of them after`, value: percentile(every, 0.99), unit: 'ms', goal });
  note({ what: `${what}, the last one after`, value: Math.max(...slowest), unit: 'ms', goal });
}

async function measureRest({ cluster, operator }: Bench): Promise<void> {
  say(`resting for ${String(REST_MS / 1_000)} s`);
  const fromMs = Date.now();
  const { residentMb: most, cpuShare } = await observe(operator.pid, REST_MS);
  note({
    what: 'resident memory of the operator at rest, the most',
    value: most,
    unit: 'MB',
    goal: 220,
  });
  note({
    what: 'processor time of the operator at rest',
    value: 100 * cpuShare,
    unit: '% of a core',
    goal: 20,
  });
  const { auditLogPath = '' } = cluster;
  const requests = await operatorRequests(auditLogPath, { fromMs, toMs: Date.now() });
  note({
    what: 'requests of the operator to the API server at rest',
    ...{ value: (60_000 * requests.length) / REST_MS, unit: 'a minute' },
  });
  await noteStatusWrites(cluster, { fromMs, of: 'rest', goal: 0 });
}

async function measureRestart({ cluster, fleet, operator, startOperator }: Bench): Promise<void> {
  say('killing the operator');
  await fleet.mark();
  const [fromMs, killedMs] = [Date.now(), sharedNowMs()];
  await operator.stop('SIGKILL');
  const startMs = sharedNowMs();
  const restarted = await startOperator();
  const servingMs = sharedNowMs();
  const isReady = restarted.ready().then(() => sharedNowMs());
  const times = await fleet.programmed(CONNECT_WITHIN_MS);
  const spentMs = (await processorTimeUs(restarted.pid)) / 1_000;
  note({
    what: 'from the start of the operator until its caches are full',
    value: (servingMs - startMs) / 1_000,
    unit: 's',
  });
  note({
    what: 'from the start of the operator until it is ready',
    value: ((await isReady) - startMs) / 1_000,
    unit: 's',
  });
  note({
    what: 'after a kill and a restart all sidecars are back and programmed, from the kill on',
    ...{ value: (Math.max(...times) - killedMs) / 1_000, unit: 's', goal: 15 },
  });
  note({
    what: 'and from when the operator serves again',
    ...{ value: Math.max(0, Math.max(...times) - servingMs) / 1_000, unit: 's' },
  });
  note({
    what: 'processor time of the operator for all that',
    ...{ value: spentMs / 1_000, unit: 's' },
  });
  say('waiting for the operator to settle');
  const restMs = startMs + SETTLED_AFTER_START_MS - sharedNowMs();
  const { residentMb: most } = await observe(restarted.pid, Math.max(0, restMs));
  note({
    what: 'resident memory of the operator after that, the most',
    value: most,
    unit: 'MB',
    goal: 220,
  });
  await noteReviews(cluster, fromMs);
  await noteStatusWrites(cluster, { fromMs, of: 'the restart', goal: 1 });
  await everyoneProgrammed(cluster);
}

async function noteReviews(cluster: ControlPlane, fromMs: number): Promise<void> {
  const range = { fromMs, toMs: fromMs + 60_000 };
  const reviews = tokenReviews(await operatorRequests(cluster.auditLogPath ?? '', range));
  note({
    what: 'token reviews for each pod in the minute after the kill',
    ...{ value: reviews / sidecars, unit: '', goal: 1 },
  });
}

async function noteStatusWrites(
  cluster: ControlPlane,
  { fromMs, of, goal }: { readonly fromMs: number; readonly of: string; readonly goal: number },
): Promise<void> {
  const requests = await operatorRequests(cluster.auditLogPath ?? '', { fromMs, toMs: Date.now() });
  const writes = [...statusWrites(requests).values()];
  const all = writes.reduce((sum, one) => sum + one, 0);
  note({ what: `status writes of all policies during ${of}`, value: all, unit: '' });
  note({
    what: `status writes of one policy during ${of}, the most`,
    value: Math.max(0, ...writes),
    unit: '',
    goal,
  });
}

/** The most memory that was resident, and the share of a core that was used. */
async function observe(
  id: number,
  ms: number,
): Promise<{ readonly residentMb: number; readonly cpuShare: number }> {
  const [before, fromMs] = [await processorTimeUs(id), sharedNowMs()];
  let most = 0;
  do {
    const now = await residentMb(id);
    if (now === 0) throw new Error('the operator has ended');
    most = Math.max(most, now);
    await delay(SAMPLE_MS);
  } while (sharedNowMs() < fromMs + ms);
  const usedUs = (await processorTimeUs(id)) - before;
  return { residentMb: most, cpuShare: usedUs / 1_000 / (sharedNowMs() - fromMs) };
}

/** What the operator says of the policy of all agrees with what the sidecars do. */
async function everyoneProgrammed({ api }: ControlPlane): Promise<void> {
  const isSaid = async (): Promise<boolean> => {
    const { body } = await api.request('GET', `${policiesPath(NAMESPACE)}/${EVERYONE}`);
    return listAt(body, 'status', 'conditions').some(
      (one) =>
        textAt(one, 'type') === 'Programmed' &&
        textAt(one, 'status') === 'True' &&
        valueAt(one, 'observedGeneration') === valueAt(body, 'metadata', 'generation'),
    );
  };
  await eventually('the policy of all is Programmed', isSaid, CONNECT_WITHIN_MS);
}

async function trustFrom({ api }: ControlPlane): Promise<string> {
  const at = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/weir-inject';
  const { body } = await api.request('GET', at);
  const bundle = textAt(body, 'webhooks', 0, 'clientConfig', 'caBundle');
  return Buffer.from(bundle, 'base64').toString('utf8');
}

function note(figure: ControlFigure): void {
  figures.push(figure);
  say(`${figure.what}: ${shown(figure.value, figure.unit)}`);
}

function countFrom(flag: 'sidecars' | 'policies', least: number, most: number): number {
  const count = Number(flags[flag]);
  if (Number.isInteger(count) && count >= least && count <= most) return count;
  throw new Error(`--${flag} is a number from ${String(least)} to ${String(most)}`);
}

function say(text: string): void {
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(0).padStart(4);
  process.stderr.write(`${seconds} s  ${text}\n`);
}
