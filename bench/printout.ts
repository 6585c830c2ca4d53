// Results as a person reads them in a terminal; docs/performance.md is written from the same rows.
import process from 'node:process';
import { ALGORITHMS, beyondBound, exactBound } from './accuracy.ts';
import type { ContenderName } from './contender.ts';
import { TITLES } from './contender.ts';
import { addedMs, verdictOn } from './figures.ts';
import type { Figure } from './figures.ts';
import { fixed } from './markdown.ts';
import type { Cell, PeersResult, Scenario } from './peers-result.ts';
import { cellsOf, cpuUs, median } from './peers-result.ts';

export const SCENARIOS: Readonly<Record<Scenario, string>> = {
  hot: 'one hot key, allowed',
  many: '2 000 keys, allowed',
  refused: 'one key, refused',
};

export interface Row {
  readonly contender: ContenderName;
  readonly cells: readonly string[];
}

export const LOAD_HEADING: readonly string[] = [
  'contender',
  'CPU µs (min..max)',
  'of it Redis',
  'requests/s',
  'p50 ms',
  'p99 ms',
  'memory MB',
];

/** One row per contender that was measured in the scenario, in the order of the contenders. */
export function loadRows(result: PeersResult, scenario: Scenario): readonly Row[] {
  return contendersOf(result).flatMap((contender) => {
    const cells = cellsOf(result, contender, scenario);
    if (cells.length === 0) return [];
    const middle = (of: (cell: Cell) => number): number => median(cells.map(of));
    return [
      {
        contender,
        cells: [
          TITLES[contender],
          contender === 'direct' ? '–' : spread(cells.map(cpuUs)),
          fixed(
            middle(({ redisUs }) => redisUs),
            1,
          ),
          fixed(
            middle(({ perSecond }) => perSecond),
            0,
          ),
          fixed(
            middle(({ p50Ms }) => p50Ms),
            2,
          ),
          fixed(
            middle(({ p99Ms }) => p99Ms),
            2,
          ),
          fixed(
            middle(({ residentMb }) => residentMb),
            0,
          ),
        ],
      },
    ];
  });
}

export const PACED_HEADING: readonly string[] = [
  'contender',
  'added p50 ms at 200/s',
  'added p99 ms at 200/s',
  'added p50 ms at 2 000/s',
  'added p99 ms at 2 000/s',
];

export function pacedRows(result: PeersResult): readonly Row[] {
  const measured = new Set(result.paced.map(({ contender }) => contender));
  return contendersOf(result)
    .filter((contender) => measured.has(contender) && contender !== 'direct')
    .map((contender) => {
      const [slow, fast] = [addedMs(result, contender, 200), addedMs(result, contender, 2_000)];
      const values = [slow.p50, slow.p99, fast.p50, fast.p99];
      return { contender, cells: [TITLES[contender], ...values.map((value) => fixed(value, 2))] };
    });
}

export const FIGURE_HEADING: readonly string[] = ['figure', 'measured', 'goal', 'gate', 'verdict'];

export function figureRow(figure: Figure): readonly string[] {
  const { what, value, unit, goal, gate } = figure;
  const withUnit = (number: number): string => `${compact(number)}${unit === '' ? '' : ` ${unit}`}`;
  return [
    what,
    Number.isNaN(value) ? '–' : withUnit(value),
    `≤ ${withUnit(goal)}`,
    gate === undefined ? '–' : `≤ ${withUnit(gate)}`,
    verdictOn(figure),
  ];
}

export function printTable(result: PeersResult): void {
  for (const scenario of ['hot', 'many', 'refused'] as const) {
    const rows = loadRows(result, scenario).map(({ cells }) => cells);
    print(`\n${SCENARIOS[scenario]}`, [LOAD_HEADING, ...rows]);
  }
  print('\nopen loop', [PACED_HEADING, ...pacedRows(result).map(({ cells }) => cells)]);
  print('\nHTTP/2', [HTTP2_HEADING, ...http2Rows(result).map(({ cells }) => cells)]);
  print('\ntwo instances, one limit', [
    ACCURACY_HEADING,
    ...accuracyRows(result).map(({ cells }) => cells),
  ]);
}

export function printFigures(figures: readonly Figure[]): void {
  print('\nagainst the budget', [FIGURE_HEADING, ...figures.map(figureRow)]);
}

export const HTTP2_HEADING: readonly string[] = [
  'contender',
  'CPU µs (min..max)',
  'of it Redis',
  'requests/s',
  'memory MB',
];

export function http2Rows({ http2 = [] }: PeersResult): readonly Row[] {
  return [...Map.groupBy(http2, ({ contender }) => contender)].map(([contender, cells]) => ({
    contender,
    cells: [
      TITLES[contender],
      spread(cells.map(cpuUs)),
      fixed(median(cells.map(({ redisUs }) => redisUs)), 1),
      fixed(median(cells.map(({ perSecond }) => perSecond)), 0),
      fixed(median(cells.map(({ residentMb }) => residentMb)), 0),
    ],
  }));
}

export const ACCURACY_HEADING: readonly string[] = [
  'contender',
  'algorithm',
  'admitted',
  'exact',
  'beyond (+) or short (-)',
  'its own promise',
  'other answers',
];

export function accuracyRows({ accuracy = [] }: PeersResult): readonly Row[] {
  const known = Object.entries(ALGORITHMS);
  return known.flatMap(([name, { words, promised }]) => {
    const cell = accuracy.find(({ contender }) => contender === name);
    if (cell === undefined) return [];
    const { least, most } = exactBound(cell);
    const beyond = beyondBound(cell);
    return [
      {
        contender: cell.contender,
        cells: [
          TITLES[cell.contender],
          words,
          String(cell.admitted),
          least === most ? String(most) : `${String(least)} to ${String(most)}`,
          beyond > 0 ? `+${String(beyond)}` : String(beyond),
          `≤ ${String(promised(cell))}`,
          String(cell.failed),
        ],
      },
    ];
  });
}

function contendersOf(result: PeersResult): readonly ContenderName[] {
  const measured = new Set(result.cells.map(({ contender }) => contender));
  const order = ['direct', 'relay', 'nginx', 'nginx-lua', 'weir', 'weir-32'] as const;
  const rivals = ['traefik', 'envoy-local', 'envoy-ratelimit'] as const;
  return [...order, ...rivals].filter((name) => measured.has(name));
}

function print(title: string, rows: readonly (readonly string[])[]): void {
  const widths = (rows[0] ?? []).map((_, i) =>
    Math.max(...rows.map((row) => (row[i] ?? '').length)),
  );
  const lines = rows.map((row) => row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  '));
  process.stdout.write(`${[title, ...lines].join('\n')}\n`);
}

function spread(values: readonly number[]): string {
  const [middle, least, most] = [median(values), Math.min(...values), Math.max(...values)];
  return `${fixed(middle, 1)} (${fixed(least, 1)}..${fixed(most, 1)})`;
}

function compact(value: number): string {
  if (Number.isInteger(value)) return String(value);
  return value < 10 ? value.toFixed(value < 0.1 ? 3 : 2) : value.toFixed(0);
}
