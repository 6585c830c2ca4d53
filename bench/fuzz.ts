// npm run fuzz: bytes that are mostly HTTP against real sidecars, for ten minutes, HTTP/1.1 and HTTP/2 beside each other. A
// strict application behind each counts what it sees; no request may appear there that no client sent whole, no answer may
// reach another connection or stream, nobody may hang, nothing may crash, and memory stays flat. Rounds with findings are
// kept as seeds. Exits 1 when there are any.
import { randomInt } from 'node:crypto';
import { readFile, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { readArguments } from '../scripts/arguments.ts';
import { FuzzCampaign } from '../test/fuzz/campaign.ts';
import type { Finding, FuzzReport } from '../test/fuzz/campaign.ts';
import type { Dialect } from '../test/fuzz/dialect.ts';
import { http1Dialect } from '../test/fuzz/http1-dialect.ts';
import { http2Dialect } from '../test/fuzz/http2-dialect.ts';
import { parseSeeds, writtenSeed } from '../test/fuzz/seed-file.ts';
import type { FuzzCheck, FuzzResult, FuzzedDialect } from './fuzz-result.ts';
import { machineFacts } from './machine.ts';
import { keep } from './report.ts';

const SAMPLES = 60;
/** Resident memory moves with the allocator's pages; 60 bytes kept of every connection would be as much. */
const MOST_GROWTH_MB = 20;
/** A shorter run ends while the sidecar still warms up. */
const LEAST_WARM_MS = 5 * 60_000;
/** Findings written down. */
const MOST_KEPT = 50;
const seedFolder = path.join(import.meta.dirname, '..', 'test', 'fuzz', 'seeds');
const DIALECTS: readonly Dialect[] = [http1Dialect, http2Dialect];

const { values: flags } = readArguments({
  command: 'npm run fuzz',
  about: 'Bytes that are mostly HTTP against real sidecars. Exit code 1: there are findings.',
  lines: [
    '--minutes N      how long (10)',
    `--dialect NAME   only one of ${namesOf(DIALECTS)}`,
    '--seed N         of all rounds; a round is a function of dialect, seed and number',
    '--dry            keep neither results nor seeds',
  ],
  config: {
    options: {
      minutes: { type: 'string', default: '10' },
      dialect: { type: 'string' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
      dry: { type: 'boolean', default: false },
    },
  },
  numbers: ['minutes', 'seed'],
  whyWrong: ({ values: { dialect } }) =>
    DIALECTS.some(({ name }) => (dialect ?? name) === name)
      ? undefined
      : `--dialect ${String(dialect)}: expected one of ${namesOf(DIALECTS)}`,
});
const seed = Number(flags.seed);
const lengthMs = Number(flags.minutes) * 60_000;
const chosen = DIALECTS.filter(({ name }) => (flags.dialect ?? name) === name);
const startedAt = performance.now();

say(`seed ${String(seed)}, ${namesOf(chosen)}`);
const dialects = await Promise.all(chosen.map(fuzz));
for (const { dialect, checks } of dialects) {
  for (const { what, measured, bound, isMet } of checks) {
    const verdict = isMet ? 'met   ' : 'MISSED';
    process.stdout.write(`${verdict}  ${dialect}: ${what}: ${measured} (${bound})\n`);
  }
}
// Of one dialect alone nothing is kept: the result tells of all.
if (!flags.dry && chosen.length === DIALECTS.length) {
  const minutes = Math.round((performance.now() - startedAt) / 6_000) / 10;
  const at = new Date().toISOString();
  const result: FuzzResult = { at, machine: machineFacts(), minutes, seed, dialects };
  await keep('fuzz.json', result);
}
if (dialects.some(({ checks }) => checks.some(({ isMet }) => !isMet))) process.exitCode = 1;

function namesOf(some: readonly Dialect[]): string {
  return some.map(({ name }) => name).join(', ');
}

async function fuzz(dialect: Dialect): Promise<FuzzedDialect> {
  let found = 0;
  await using campaign = await FuzzCampaign.open({
    ...{ dialect, seed },
    goesOn: () => performance.now() - startedAt < lengthMs,
    given: (await keptSeeds(dialect)).map(({ round }) => round),
    onFinding: (finding) => {
      found += 1;
      say(`${dialect.name}, round ${String(finding.number)}: ${finding.what.join('\n  ')}`);
    },
  });
  const end = new AbortController();
  const memory = sampleMemory(campaign, end.signal, (mb) => {
    const rounds = `${String(campaign.rounds)} rounds, ${mb.toFixed(0)} MB`;
    say(`${minute()}  ${dialect.name}: ${rounds}, ${String(found)} findings`);
  });
  const report = await campaign.run();
  end.abort();
  const samples = await memory;
  if (!flags.dry) await keepFindings(dialect, report.findings);
  const { rounds, playedAgain, connections, bytes, seen, refusals } = report;
  return {
    ...{ dialect: dialect.name, rounds, playedAgain, connections, bytes, seen, refusals },
    residentMb: samples.map((mb) => Math.round(mb * 10) / 10),
    checks: checksOf(report, samples),
  };
}

function minute(): string {
  return `${((performance.now() - startedAt) / 60_000).toFixed(1).padStart(5)} min`;
}

async function keptSeeds({ name }: Dialect): Promise<ReturnType<typeof parseSeeds>> {
  const folder = path.join(seedFolder, name);
  const files = (await readdir(folder)).filter((file) => file.endsWith('.cases')).sort();
  const texts = files.map((file) => readFile(path.join(folder, file), 'utf8'));
  return (await Promise.all(texts)).flatMap(parseSeeds);
}

/** Resident memory in MB (10^6 bytes), until the run is over. */
async function sampleMemory(
  campaign: FuzzCampaign,
  end: AbortSignal,
  onSample: (mb: number) => void,
): Promise<number[]> {
  const samples: number[] = [];
  while (!end.aborted) {
    await delay(lengthMs / SAMPLES, undefined, { signal: end }).catch(() => undefined);
    const mb = (await campaign.residentBytes()) / 1e6;
    samples.push(mb);
    onSample(mb);
  }
  return samples;
}

function checksOf(run: FuzzReport, residentMb: readonly number[]): FuzzCheck[] {
  const plateau = residentMb.slice(Math.floor(residentMb.length / 4));
  const third = Math.max(1, Math.floor(plateau.length / 3));
  const isLong = lengthMs >= LEAST_WARM_MS;
  const growth = median(plateau.slice(-third)) - median(plateau.slice(0, third));
  return [
    {
      what: 'rounds in which a request was smuggled, an answer went astray, somebody hung, or two readers disagreed',
      measured: String(run.findings.length),
      bound: '= 0',
      isMet: run.findings.length === 0,
    },
    {
      what: 'requests the application saw',
      measured: String(run.seen),
      bound: `≤ ${String(run.admitted)} admitted, retries included`,
      isMet: run.seen <= run.admitted && run.seen > 0,
    },
    { what: 'faults', measured: String(run.faults), bound: '= 0', isMet: run.faults === 0 },
    {
      what: 'resident memory, last quarter of the run less its second',
      measured: `${growth.toFixed(1)} MB`,
      bound: `≤ ${String(MOST_GROWTH_MB)} MB${isLong ? '' : ' in a run of five minutes'}`,
      isMet: growth <= MOST_GROWTH_MB || !isLong,
    },
  ];
}

/** Each with its number, so that it can be played again as it was. */
async function keepFindings({ name }: Dialect, findings: readonly Finding[]): Promise<void> {
  const texts = findings
    .slice(0, MOST_KEPT)
    .map(({ round, number, what }, i) =>
      writtenSeed(
        `finding ${String(i)} of seed ${String(seed)}, round ${String(number)}: ${(what[0] ?? '').slice(0, 120)}`,
        round,
      ),
    );
  if (texts.length === 0) return;
  await writeFile(path.join(seedFolder, name, `found-${String(seed)}.cases`), texts.join('\n'));
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
