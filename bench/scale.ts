// npm run bench:scale: how the sidecar's cost grows with sidecars, rules, keys, connections, bodies and slow peers. Ends
// by itself after seven minutes.
import process from 'node:process';
import { readArguments } from '../scripts/arguments.ts';
import { QUIET_BUSY_SHARE, machineFacts, waitForQuiet } from './machine.ts';
import { Meter } from './meter.ts';
import { printFigures } from './printout.ts';
import { keep, writeReport } from './report.ts';
import { measureBody, measureSlow } from './scale/bodies.ts';
import { measureCrowd } from './scale/crowd.ts';
import {
  BURST,
  PER_SECOND_EACH,
  measureHotKey,
  measureKeys,
  measureRules,
  measureSidecars,
} from './scale/growth.ts';
import { scaleFiguresOf } from './scale/scale-figures.ts';
import type { ScaleResult } from './scale/scale-result.ts';
import { buildSidecar } from './sidecar.ts';
import { openStage } from './stage.ts';

const SIDECARS = [1, 2, 4, 8] as const;
const RULES = [1, 2, 4, 8, 16, 32] as const;
const KEYS = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000] as const;
const CONNECTIONS = [1, 2, 4, 8, 16, 32, 64, 128, 256] as const;
/** Longer waits help nobody: the run then says that the machine was not quiet. */
const QUIET_WAIT_MS = 30_000;

const { values: flags } = readArguments({
  command: 'npm run bench:scale',
  about: "How the sidecar's cost grows with what it has to do. Ends by itself after seven minutes.",
  lines: [
    '--rounds N   how often what is compared gets a turn (3)',
    '--only A,B   some of: sidecars, rules, keys, hot-key, crowd, bodies, slow; keeps no results',
    '--dry        keep no results',
  ],
  config: {
    options: {
      rounds: { type: 'string', default: '3' },
      only: { type: 'string' },
      dry: { type: 'boolean', default: false },
    },
  },
  numbers: ['rounds'],
});
const rounds = Array.from({ length: Number(flags.rounds) }, (_, i) => i + 1);
const only = flags.only?.split(',');

await using stack = new AsyncDisposableStack();
await buildSidecar();
const busyShare = await waitForQuiet(QUIET_WAIT_MS);
const stage = await openStage(stack);
const meter = await Meter.open(stage.redis);
const result = await measureAll();
printFigures(scaleFiguresOf(result));
if (!flags.dry && only === undefined) {
  await keep('scale.json', result);
  await writeReport();
}

async function measureAll(): Promise<ScaleResult> {
  return {
    at: new Date().toISOString(),
    machine: machineFacts(),
    busyShare,
    isQuiet: busyShare < QUIET_BUSY_SHARE,
    rounds: rounds.length,
    perSecondEach: PER_SECOND_EACH,
    burst: BURST,
    sidecars: await inRounds('sidecars', SIDECARS, (at) => measureSidecars(stage, meter, at)),
    rules: await inRounds('rules', RULES, (at) => measureRules(stage, meter, at)),
    keys: await each('keys', KEYS, (keys) => measureKeys(stage, meter, keys)),
    hotKey: await each('hot-key', CONNECTIONS, (count) => measureHotKey(stage, meter, count)),
    crowd: await each('crowd', [10_000], (count) => measureCrowd(stage, meter, count)),
    bodies: await each('bodies', ['up', 'down'] as const, (one) => measureBody(stage, one)),
    slow: await each('slow', ['readers', 'writers'] as const, (who) => measureSlow(stage, who)),
  };
}

/** Every count in each round, so that what is compared shares its moment of the machine. */
async function inRounds<Cell>(
  name: string,
  counts: readonly number[],
  measure: (at: { readonly count: number; readonly round: number }) => Promise<Cell>,
): Promise<Cell[]> {
  const cells: Cell[] = [];
  for (const round of rounds) {
    cells.push(...(await each(name, counts, (count) => measure({ count, round }))));
  }
  return cells;
}

async function each<Point extends string | number, Cell>(
  name: string,
  points: readonly Point[],
  measure: (point: Point) => Promise<Cell>,
): Promise<Cell[]> {
  if (only?.includes(name) === false) return [];
  const cells: Cell[] = [];
  for (const point of points) {
    process.stderr.write(`${name}: ${String(point)}\n`);
    cells.push(await measure(point));
  }
  return cells;
}
