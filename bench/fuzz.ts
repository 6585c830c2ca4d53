// npm run fuzz: bytes that are mostly HTTP against a real sidecar, for ten minutes. A strict application behind it counts
// what it sees; no request may appear there that no client sent whole, no answer may reach another connection, nobody may
// hang, nothing may crash, and memory stays flat. Rounds with findings are kept as seeds. Exits 1 when there are any.
//   --minutes N   how long (10)
//   --seed N      of all rounds; a round is a function of seed and number
//   --dry         keep no results
import { randomInt } from 'node:crypto';
import { readFile, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { FuzzCampaign } from '../test/fuzz/campaign.ts';
import type { Finding, FuzzReport } from '../test/fuzz/campaign.ts';
import { http1Dialect } from '../test/fuzz/http1-dialect.ts';
import { parseSeeds, writtenSeed } from '../test/fuzz/seed-file.ts';
import type { FuzzCheck, FuzzResult } from './fuzz-result.ts';
import { machineFacts } from './machine.ts';
import { keep } from './report.ts';

const SAMPLES = 60;
/** Resident memory moves with the allocator's pages; 60 bytes kept of every connection would be as much. */
const MOST_GROWTH_MB = 20;
/** A shorter run ends while the sidecar still warms up. */
const LEAST_WARM_MS = 5 * 60_000;
/** Findings written down. */
const MOST_KEPT = 50;
const seedFolder = path.join(import.meta.dirname, '..', 'test', 'fuzz', 'seeds', 'http1');

const { values: flags } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    dry: { type: 'boolean', default: false },
  },
});
const seed = Number(flags.seed);
const lengthMs = Number(flags.minutes) * 60_000;
const startedAt = performance.now();
let found = 0;

say(`seed ${String(seed)}`);
await using campaign = await FuzzCampaign.open({
  dialect: http1Dialect,
  seed,
  goesOn: () => performance.now() - startedAt < lengthMs,
  given: (await keptSeeds()).map(({ round }) => round),
  onFinding: (finding) => {
    found += 1;
    say(`round ${String(finding.number)}: ${finding.what.join('\n  ')}`);
  },
});
const end = new AbortController();
const memory = sampleMemory();
const report = await campaign.run();
end.abort();
const samples = await memory;
const checks = checksOf(report, samples);
for (const { what, measured, bound, isMet } of checks) {
  process.stdout.write(`${isMet ? 'met   ' : 'MISSED'}  ${what}: ${measured} (${bound})\n`);
}
await keepFindings(report.findings);
if (!flags.dry) {
  const minutes = Math.round((performance.now() - startedAt) / 6_000) / 10;
  const { rounds, connections, bytes, seen, refusals } = report;
  const result: FuzzResult = {
    ...{ at: new Date().toISOString(), machine: machineFacts(), dialect: http1Dialect.name },
    ...{ minutes, seed, rounds, connections, bytes, seen, refusals },
    residentMb: samples.map((mb) => Math.round(mb * 10) / 10),
    checks,
  };
  await keep('fuzz.json', result);
}
if (checks.some(({ isMet }) => !isMet)) process.exitCode = 1;

async function keptSeeds(): Promise<ReturnType<typeof parseSeeds>> {
  const files = (await readdir(seedFolder)).filter((name) => name.endsWith('.cases')).sort();
  const texts = files.map((name) => readFile(path.join(seedFolder, name), 'utf8'));
  return (await Promise.all(texts)).flatMap(parseSeeds);
}

/** Resident memory in MB (10^6 bytes), until the run is over. */
async function sampleMemory(): Promise<number[]> {
  const samples: number[] = [];
  while (!end.signal.aborted) {
    await delay(lengthMs / SAMPLES, undefined, { signal: end.signal }).catch(() => undefined);
    samples.push((await campaign.residentBytes()) / 1e6);
    const minute = (performance.now() - startedAt) / 60_000;
    say(
      `${minute.toFixed(1).padStart(5)} min  ${String(campaign.rounds)} rounds, ${(samples.at(-1) ?? 0).toFixed(0)} MB, ${String(found)} findings`,
    );
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
async function keepFindings(findings: readonly Finding[]): Promise<void> {
  const texts = findings
    .slice(0, MOST_KEPT)
    .map(({ round, number, what }, i) =>
      writtenSeed(
        `finding ${String(i)} of seed ${String(seed)}, round ${String(number)}: ${(what[0] ?? '').slice(0, 120)}`,
        round,
      ),
    );
  if (texts.length === 0) return;
  await writeFile(path.join(seedFolder, `found-${String(seed)}.cases`), texts.join('\n'));
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
