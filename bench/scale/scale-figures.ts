// The part of the budget that bench:scale tells, and the curves that its growth is drawn and judged by.
import type { Figure } from '../figures.ts';
import type { Cost } from '../meter.ts';
import { cpuUs, median } from '../peers-result.ts';
import type { BodyFacts, CrowdFacts, ScaleResult, SlowFacts } from './scale-result.ts';
import { byX } from './scale-result.ts';

/** Medians over the rounds for each x, in the order of x. */
export interface GrowthPoint {
  readonly x: number;
  readonly proxyUs: number;
  readonly redisUs: number;
  readonly redisCalls: number;
  readonly residentMb: number;
}

export function growthOf<Cell extends Cost>(
  cells: readonly Cell[],
  xOf: (cell: Cell) => number,
): readonly GrowthPoint[] {
  return byX(cells, xOf).map(([x, own]) => ({
    x,
    proxyUs: median(own.map(({ proxyUs }) => proxyUs)),
    redisUs: median(own.map(({ redisUs }) => redisUs)),
    redisCalls: median(own.map(({ redisCalls }) => redisCalls)),
    residentMb: median(own.map(({ residentMb }) => residentMb)),
  }));
}

/** Every figure of the budget that this run can tell. */
export function scaleFiguresOf(result: ScaleResult): readonly Figure[] {
  return [
    ...growthFigures(result),
    ...keysFigures(result),
    ...result.hotKey
      .filter(({ connections }) => connections === 64)
      .map(({ redisCalls }): Figure => ({
        what: 'script calls per request, hot key, 64 connections',
        value: redisCalls,
        unit: '',
        goal: 0.1,
      })),
    ...result.crowd.flatMap(crowdFigures),
    ...result.bodies.map(bodyFigure),
    ...result.slow.flatMap(slowFigures),
  ];
}

function growthFigures({ sidecars, rules }: ScaleResult): Figure[] {
  const most = Math.max(1, ...sidecars.map((cell) => cell.sidecars));
  return [
    {
      what: `CPU per request, up to ${String(most)} sidecars on one Redis instead of 1, the worst`,
      value: worstGrowth(sidecars, (cell) => cell.sidecars),
      unit: '×',
      goal: 1.1,
    },
    {
      what: 'CPU per request, up to 32 rules instead of 1, the worst',
      value: worstGrowth(rules, (cell) => cell.rules),
      unit: '×',
      goal: 1.25,
      gate: 1.5,
    },
  ];
}

/** The largest median over rounds of the ratio to the smallest x of the same round. */
export function worstGrowth<Cell extends Cost & { readonly round: number }>(
  cells: readonly Cell[],
  xOf: (cell: Cell) => number,
): number {
  const [first, ...others] = byX(cells, xOf);
  if (first === undefined || others.length === 0) return NaN;
  const ratios = others.map(([, own]) =>
    median(
      own.flatMap((cell) => {
        const base = first[1].find(({ round }) => round === cell.round);
        return base === undefined ? [] : [cpuUs(cell) / cpuUs(base)];
      }),
    ),
  );
  return Math.max(...ratios);
}

function keysFigures({ keys }: ScaleResult): Figure[] {
  const most = keys.reduce<ScaleResult['keys'][number] | undefined>(
    (found, one) => (found === undefined || one.keys > found.keys ? one : found),
    undefined,
  );
  if (most === undefined) return [];
  // One key is a load of its own: everything coalesces. Growth is what comes after it.
  const others = keys.filter((one) => one.keys > 1 && one.keys < most.keys);
  const name = most.keys.toLocaleString('en').replaceAll(',', ' ');
  return [
    {
      what: `resident memory after ${name} keys against fewer, the median`,
      value: most.residentMb / median(others.map(({ residentMb }) => residentMb)),
      unit: '×',
      goal: 1.1,
    },
    {
      what: `resident memory after ${name} keys`,
      value: most.residentMb,
      unit: 'MB',
      goal: MOST_MEMORY_MB,
      gate: 130,
    },
    {
      what: `Redis CPU per decision, ${name} keys`,
      value: most.redisUs,
      unit: 'µs',
      goal: 10,
    },
  ];
}

/** All of them together take no more than a whole sidecar at load may. */
const MOST_KILOBYTES_EACH = 10;
/** "Unchanged", with what repeated runs of the same load differ by. */
const UNCHANGED = 1.2;
/** What a sidecar may take at load, whatever the load is. */
const MOST_MEMORY_MB = 100;

function crowdFigures(facts: CrowdFacts): Figure[] {
  const { connections, alone, beside } = facts;
  const name = connections.toLocaleString('en').replaceAll(',', ' ');
  return [
    {
      what: `memory of each of ${name} idle connections`,
      value: kilobytesEach(facts),
      unit: 'kB',
      goal: MOST_KILOBYTES_EACH,
    },
    {
      what: `CPU per request beside ${name} idle connections`,
      value: cpuUs(beside) / cpuUs(alone),
      unit: '×',
      goal: UNCHANGED,
    },
  ];
}

/** In thousands of bytes. */
export function kilobytesEach({ connections, beforeMb, crowdedMb }: CrowdFacts): number {
  return ((crowdedMb - beforeMb) * 1_000) / connections;
}

function bodyFigure({ direction, bytes, highWaterMb }: BodyFacts): Figure {
  return {
    what: `resident memory while a body of ${String(bytes / 1e9)} GB passes ${direction}, the most`,
    value: highWaterMb,
    unit: 'MB',
    goal: MOST_MEMORY_MB,
  };
}

function slowFigures({ who, clients, highWaterMb, alone, beside }: SlowFacts): Figure[] {
  return [
    {
      what: `resident memory with ${String(clients)} slow ${who}, the most`,
      value: highWaterMb,
      unit: 'MB',
      goal: MOST_MEMORY_MB,
    },
    {
      what: `latency beside ${String(clients)} slow ${who}, p50`,
      value: beside.p50Ms / alone.p50Ms,
      unit: '×',
      goal: UNCHANGED,
    },
  ];
}
