// npm run bench:peers: the sidecar against what people would use instead, in one run, in turns, on one upstream and one
// Redis. Ratios are what counts. Ends by itself: fifteen minutes with every rival and three rounds.
import process from 'node:process';
import { readArguments } from '../scripts/arguments.ts';
import { ALGORITHMS } from './accuracy.ts';
import type { AccuracyCell } from './accuracy.ts';
import { measureAccuracy } from './accuracy-run.ts';
import type { Candidate, Contender, ContenderName } from './contender.ts';
import { TITLES } from './contender.ts';
import { figuresOf, verdictOn } from './figures.ts';
import { startHttp2 } from './http2-line-up.ts';
import { loadWithH2load } from './http2-load.ts';
import { lineUp } from './line-up.ts';
import { QUIET_BUSY_SHARE, machineFacts, waitForQuiet } from './machine.ts';
import { Meter } from './meter.ts';
import { measurePaced } from './paced.ts';
import type { Cell, Http2Cell, PacedCell, PeersResult, Scenario } from './peers-result.ts';
import { proveVerdicts } from './proof.ts';
import { keepPeersResult, writeReport } from './report.ts';
import { buildSidecar } from './sidecar.ts';
import { measureSidecar } from './sidecar-facts.ts';
import { printFigures, printTable } from './printout.ts';
import { openStage } from './stage.ts';
import { writeKeyScript } from './wrk.ts';
import type { LoadOptions } from './wrk.ts';

const KEYS = 2_000;
const CONNECTIONS = 32;
/** Begins each turn and is not counted: after a minute of rest a process has pages to map and code to compile again. */
const WARM_UP_SECONDS = 2;
const SCENARIOS = ['hot', 'many', 'refused'] as const;
const RATES = [200, 2_000] as const;
/** Longer waits help nobody: the run then says that the machine was not quiet. */
const QUIET_WAIT_MS = 30_000;

const { values: flags } = readArguments({
  command: 'npm run bench:peers',
  about: 'The sidecar against what people would use instead. Ends by itself after fifteen minutes.',
  lines: [
    '--rounds N    how often everybody gets a turn (3)',
    '--seconds N   how long a turn lasts (3)',
    '--check       exit code 1 when a gate of the budget is missed',
    '--dry         keep no results',
  ],
  config: {
    options: {
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '3' },
      check: { type: 'boolean', default: false },
      dry: { type: 'boolean', default: false },
    },
  },
  numbers: ['rounds', 'seconds'],
});

const rounds = Number(flags.rounds);
const seconds = Number(flags.seconds);

await using stack = new AsyncDisposableStack();
await buildSidecar();
const busyShare = await waitForQuiet(QUIET_WAIT_MS);
const isQuiet = busyShare < QUIET_BUSY_SHARE;
if (!isQuiet)
  say(`the machine is not quiet: ${(100 * busyShare).toFixed(0)} % busy with other work`);
const stage = await openStage(stack);
const KEYS_OF: Readonly<Record<Scenario, LoadOptions['keys']>> = {
  hot: { key: 'hot' },
  many: { script: await writeKeyScript(stage.folder, KEYS) },
  refused: { key: 'deny' },
};
const meter = await Meter.open(stage.redis);
const result = await measureAll();
printTable(result);
const figures = figuresOf(result);
printFigures(figures);
for (const absent of result.absent) say(`absent: ${absent}`);
if (!flags.dry) {
  await keepPeersResult(result);
  await writeReport();
}
const missed = figures.filter((figure) => verdictOn(figure) === 'gate missed');
if (missed.length > 0) say(`${String(missed.length)} gate(s) missed`);
if (flags.check && missed.length > 0) process.exitCode = 1;

async function measureAll(): Promise<PeersResult> {
  const sidecar = await measureSidecar(stage, meter);
  const { present, absent } = await lineUp();
  const contenders = await startAll(present);
  const http2 = await startHttp2(stage);
  const cells: Cell[] = [];
  const paced: PacedCell[] = [];
  const http2Cells: Http2Cell[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const turns = inTurn(contenders, round);
    for (const scenario of SCENARIOS) {
      tell(round, scenario);
      cells.push(...(await measureCells(turns, scenario, round)));
    }
    for (const rate of RATES) {
      tell(round, `${String(rate)} requests a second`);
      for (const contender of turns.filter(({ name }) => name !== 'weir-32')) {
        paced.push(await measurePaced(contender, { rate, round, seconds }));
      }
    }
    tell(round, 'HTTP/2');
    for (const contender of inTurn(http2.contenders, round)) {
      http2Cells.push(await measureHttp2(contender, round));
    }
  }
  const weir = cells.filter(({ contender }) => contender === 'weir');
  const loadMb = Math.max(...weir.map(({ residentMb }) => residentMb));
  return {
    format: 1,
    at: new Date().toISOString(),
    machine: machineFacts(),
    busyShare,
    isQuiet,
    rounds,
    seconds,
    cells,
    paced,
    http2: http2Cells,
    accuracy: await measureAccuracies(present),
    sidecar: { ...sidecar, loadMb },
    versions: versionsOf(present),
    absent: [...absent, ...http2.absent],
  };
}

async function startAll(candidates: readonly Candidate[]): Promise<readonly Contender[]> {
  const contenders: Contender[] = [];
  for (const { start } of candidates) {
    const contender = await start(stage);
    await proveVerdicts(contender);
    contenders.push(contender);
  }
  return contenders;
}

/** Last, because it starts second instances: nobody else is to run beside the load. */
async function measureAccuracies(candidates: readonly Candidate[]): Promise<AccuracyCell[]> {
  const accuracy: AccuracyCell[] = [];
  for (const candidate of candidates) {
    if (ALGORITHMS[candidate.name] === undefined) continue;
    say(`two instances, one limit: ${TITLES[candidate.name]}`);
    accuracy.push(await measureAccuracy(candidate, stage));
  }
  return accuracy;
}

async function measureHttp2(contender: Contender, round: number): Promise<Http2Cell> {
  const load = { port: contender.port, key: 'hot' };
  await loadWithH2load({ ...load, seconds: WARM_UP_SECONDS });
  const measured = await meter.measure(contender, () => loadWithH2load({ ...load, seconds }));
  assertVerdicts(contender.name, 'hot', measured);
  return { contender: contender.name, round, ...measured };
}

function versionsOf(
  candidates: readonly Candidate[],
): Readonly<Partial<Record<ContenderName, string>>> {
  return Object.fromEntries(
    candidates.flatMap(({ name, version }) => (version === undefined ? [] : [[name, version]])),
  );
}

/** Who begins changes with the round, so that no contender always runs on a warm or a hot machine. */
function inTurn(contenders: readonly Contender[], round: number): readonly Contender[] {
  const first = (round - 1) % contenders.length;
  return [...contenders.slice(first), ...contenders.slice(0, first)];
}

/**
 * Everybody's turn in one scenario: whom a ratio compares had their turns within seconds of each other, on a machine
 * that is faster at one minute than at the next.
 */
async function measureCells(
  turns: readonly Contender[],
  scenario: Scenario,
  round: number,
): Promise<Cell[]> {
  const cells: Cell[] = [];
  for (const contender of turns) {
    const { name, port, refusingPort } = contender;
    const target = scenario === 'refused' ? refusingPort : port;
    if (target === undefined) continue;
    const load = { connections: CONNECTIONS, port: target, keys: KEYS_OF[scenario] };
    await meter.load(contender, { ...load, seconds: WARM_UP_SECONDS });
    const measured = await meter.load(contender, { ...load, seconds });
    assertVerdicts(name, scenario, measured);
    cells.push({ contender: name, scenario, round, ...measured });
  }
  return cells;
}

/** A contender that admits what it should refuse, or the other way round, was not measured at all. */
function assertVerdicts(
  name: string,
  scenario: Scenario,
  { requests, refused }: { readonly requests: number; readonly refused: number },
): void {
  const share = refused / requests;
  if (scenario === 'refused' ? share > 0.99 : share === 0) return;
  throw new Error(`${name}, ${scenario}: ${String(refused)} of ${String(requests)} refused`);
}

function tell(round: number, what: string): void {
  say(`round ${String(round)} of ${String(rounds)}: ${what}`);
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
