// docs/performance.md, written from the newest results. `node bench/report.ts` writes it again.
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { format } from 'prettier';
import { drawAccuracy } from './accuracy-picture.ts';
import { budgetOf } from './budget.ts';
import type { Results } from './budget.ts';
import type { ContenderName } from './contender.ts';
import { isMet, ofGoal, shown, type ControlResult } from './control/control-result.ts';
import type { FaultsResult } from './faults-result.ts';
import { table } from './markdown.ts';
import type { MicroResult } from './micro-result.ts';
import type { PeersResult } from './peers-result.ts';
import { ACCURACY_PICTURE, PEERS_PICTURE, peersText } from './peers-text.ts';
import type { ProfileResult } from './profile-result.ts';
import { drawPeers } from './picture.ts';
import { FIGURE_HEADING, figureRow, loadRows } from './printout.ts';
import { drawScale } from './scale/scale-picture.ts';
import type { ScaleResult } from './scale/scale-result.ts';
import { SCALE_PICTURE, scaleText } from './scale/scale-text.ts';

const root = path.join(import.meta.dirname, '..');
const docs = path.join(root, 'docs');
const results = path.join(import.meta.dirname, 'results');

/** Keeps a run as `peers-<date>.json`; a second one of the same day takes its place. */
export async function keepPeersResult(result: PeersResult): Promise<void> {
  await keep(`peers-${result.at.slice(0, 10)}.json`, result);
}

export async function keep(file: string, result: object): Promise<void> {
  await mkdir(results, { recursive: true });
  await writeFile(path.join(results, file), `${JSON.stringify(result, undefined, 1)}\n`);
}

export async function writeReport(): Promise<void> {
  const { markdown, pictures } = await composeReport();
  await mkdir(docs, { recursive: true });
  await writeFile(path.join(docs, 'performance.md'), markdown);
  for (const [name, svg] of Object.entries(pictures)) await writeFile(path.join(docs, name), svg);
}

export interface Report {
  readonly markdown: string;
  /** SVG by the name of its file beside the report; none of what was never measured. */
  readonly pictures: Readonly<Record<string, string>>;
}

/** The report of the newest results. */
export async function composeReport(): Promise<Report> {
  const measured: Results = {
    peers: await newest<PeersResult>(/^peers-.*\.json$/),
    scale: await newest<ScaleResult>(/^scale\.json$/),
    control: await newest<ControlResult>(/^control\.json$/),
  };
  const { peers, scale, control } = measured;
  const micro = await newest<MicroResult>(/^micro\.json$/);
  const profile = await newest<ProfileResult>(/^profile\.json$/);
  const faults = await newest<FaultsResult>(/^faults\.json$/);
  const text = [
    '# Performance',
    '',
    'Written by `node bench/report.ts` from the newest results in `bench/results/`. `npm run bench:peers`,',
    '`npm run bench:scale`, `npm run bench:micro -- --record`, `npm run bench:profile`, `npm run bench:faults` and',
    '`npm run bench:control` measure again.',
    '',
    ...budgetText(measured),
    ...(peers === undefined ? [] : peersText(peers)),
    ...(scale === undefined ? [] : scaleText(scale)),
    ...(profile === undefined ? [] : profileText(profile)),
    ...(faults === undefined ? [] : faultsText(faults)),
    ...(control === undefined ? [] : controlText(control)),
    ...(micro === undefined ? [] : microText(micro)),
  ];
  return {
    markdown: await format(text.join('\n'), { parser: 'markdown' }),
    pictures: picturesOf(measured),
  };
}

function proxiesOf(peers: PeersResult): readonly ContenderName[] {
  return loadRows(peers, 'hot')
    .map(({ contender }) => contender)
    .filter((name) => name !== 'direct');
}

function picturesOf({ peers, scale }: Results): Readonly<Record<string, string>> {
  const accuracy = peers?.accuracy ?? [];
  return {
    ...(peers === undefined ? {} : { [PEERS_PICTURE]: drawPeers(peers, proxiesOf(peers)) }),
    ...(accuracy.length === 0 ? {} : { [ACCURACY_PICTURE]: drawAccuracy(accuracy) }),
    ...(scale === undefined ? {} : { [SCALE_PICTURE]: drawScale(scale) }),
  };
}

function budgetText(results: Results): string[] {
  const rows = budgetOf(results).map(({ figure, by }) => [...figureRow(figure), by]);
  return [
    '## The budget',
    '',
    'Every figure that has a goal, and where a release depends on it a gate. The sidecar is the installed bundle. Ratios are between contenders of one round of one run, and medians of those over the rounds; absolute times of other machines are not comparable.',
    '',
    ...table([[...FIGURE_HEADING, 'measured by'], ...rows]),
    '',
  ];
}

function faultsText({ at, isQuiet, deadlineMs, checks }: FaultsResult): string[] {
  const quiet = isQuiet
    ? ''
    : ' **The machine was not quiet**: read bounds of a few milliseconds beside the latency before any outage.';
  const rows = checks.map(({ what, measured, bound, isMet }) => [
    what,
    measured,
    bound,
    isMet ? 'met' : 'missed',
  ]);
  return [
    '## When Redis freezes or dies',
    '',
    `${at.slice(0, 10)}. A real Redis is stopped (SIGSTOP) or killed under load; each decision may wait ${String(deadlineMs)} ms for it.${quiet}`,
    '',
    ...table([['promise', 'measured', 'bound', ''], ...rows]),
    '',
  ];
}

function profileText({ at, machine, requests, parts, functions }: ProfileResult): string[] {
  const rows = ({ name, share }: ProfileResult['parts'][number]): [string, string] => [
    name,
    `${(100 * share).toFixed(1)} %`,
  ];
  return [
    '## Where the time goes',
    '',
    `${at.slice(0, 10)}, ${machine.processor}, Node ${machine.node}. The sidecar under ${String(requests)} requests of 2 000 keys on Redis, as V8's profiler sees its main thread; time without work is left out. The profile itself is \`bench/results/profile.cpuprofile\`.`,
    '',
    ...table([['part', 'share'], ...parts.filter(({ share }) => share >= 0.005).map(rows)]),
    '',
    ...table([['function, without what it calls', 'share'], ...functions.map(rows)]),
    '',
  ];
}

function controlText(result: ControlResult): string[] {
  const { at, machine, sidecars, policies, figures } = result;
  const quiet = result.isQuiet
    ? 'Nobody else was at work on the machine.'
    : `**The machine was not quiet**: ${(100 * result.busyShare).toFixed(0)} % of it were busy with other work just before. Times are longer than they would be; memory, processor time and counts hold.`;
  const rows = figures.map((figure) => {
    const { what, value, unit, goal } = figure;
    if (goal === undefined) return [what, shown(value, unit), '', '', ''];
    const verdict = isMet(figure) ? 'met' : 'missed';
    return [what, shown(value, unit), `≤ ${shown(goal, unit)}`, ofGoal(figure), verdict];
  });
  return [
    '## The operator with a thousand sidecars',
    '',
    `${at.slice(0, 10)}, ${machine.processor}, ${String(machine.cores)} cores, Node ${machine.node}. ${quiet}`,
    '',
    `A real API server with its etcd and controllers, ${String(sidecars)} pods of Deployments that came through the webhook, ${String(policies)} policies, and a sidecar's stream client for each pod with a token of that pod; all of it on this machine. *In force* is when the client's answer leaves: a sidecar with traffic compiles the rules before that, which takes it milliseconds.`,
    '',
    ...table([['figure', 'measured', 'goal', 'of it', ''], ...rows]),
    '',
  ];
}

function microText({ at, benches }: MicroResult): string[] {
  const rows = benches.map(({ name, ns }) => [name, ns < 100 ? ns.toFixed(1) : ns.toFixed(0)]);
  return [
    '## The pieces',
    '',
    `${at.slice(0, 10)}. Nanoseconds an operation, lower quartile of the samples; the recorded baseline of \`npm run bench:micro\`.`,
    '',
    ...table([['operation', 'ns'], ...rows]),
    '',
  ];
}

/** The last file by name, hence by date; undefined when there is none. */
async function newest<T>(pattern: RegExp): Promise<T | undefined> {
  const files = (await readdir(results).catch(() => [])).filter((file) => pattern.test(file));
  const last = files.sort().at(-1);
  if (last === undefined) return undefined;
  return JSON.parse(await readFile(path.join(results, last), 'utf8')) as T;
}

if (import.meta.main) await writeReport();
