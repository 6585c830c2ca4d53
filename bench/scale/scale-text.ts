// The part of docs/performance.md that is about growth.
import { fixed, grouped, table } from '../markdown.ts';
import type { Cost } from '../meter.ts';
import { median } from '../peers-result.ts';
import { growthOf, kilobytesEach } from './scale-figures.ts';
import type { GrowthPoint } from './scale-figures.ts';
import type { ScaleResult } from './scale-result.ts';
import { byX } from './scale-result.ts';

export const SCALE_PICTURE = 'performance-scale.svg';

/** Lines of Markdown. */
export function scaleText(result: ScaleResult): string[] {
  const { machine } = result;
  const quiet = result.isQuiet
    ? 'Nobody else was at work on the machine.'
    : `**The machine was not quiet**: ${(100 * result.busyShare).toFixed(0)} % of it were busy with other work just before.`;
  return [
    '## Growth',
    '',
    `![Growth curves](${SCALE_PICTURE})`,
    '',
    `\`npm run bench:scale\`, ${result.at.slice(0, 10)}, ${machine.processor}, ${String(machine.cores)} cores, Node ${machine.node}. ${quiet} Each point is a fresh sidecar; sidecars and Redis share one core, load and upstream the other. CPU is µs per answered request.`,
    '',
    ...sidecarsText(result),
    ...rulesText(result),
    ...keysText(result),
    ...hotKeyText(result),
    ...crowdText(result),
    ...bodiesText(result),
    ...slowText(result),
  ];
}

const COST_HEADING = ['CPU µs of sidecars', 'CPU µs of Redis', 'script calls per request'] as const;

function sidecarsText({ sidecars, rounds, perSecondEach, burst }: ScaleResult): string[] {
  const points = growthOf(sidecars, (cell) => cell.sidecars);
  const latency = byX(sidecars, (cell) => cell.sidecars).map(([, cells]) =>
    median(cells.map(({ p99Ms }) => p99Ms)),
  );
  const rows = points.map((point, i) => [
    String(point.x),
    grouped(point.x * perSecondEach),
    ...costCells(point),
    fixed(latency[i] ?? NaN, 2),
    fixed(point.residentMb / point.x, 0),
  ]);
  return [
    '### Sidecars on one Redis',
    '',
    `An open loop of ${grouped(perSecondEach)} requests a second to each sidecar, ${String(burst)} at a time as under load, of 2 000 keys that all sidecars share; medians of ${String(rounds)} rounds. Latency includes the wait within such a burst.`,
    '',
    ...table([['sidecars', 'requests/s', ...COST_HEADING, 'p99 ms', 'memory MB each'], ...rows]),
    '',
  ];
}

function rulesText({ rules, rounds }: ScaleResult): string[] {
  const rows = growthOf(rules, (cell) => cell.rules).map((point) => [
    String(point.x),
    ...costCells(point),
  ]);
  return [
    '### Rules',
    '',
    `A closed loop of 32 connections, 2 000 keys; one rule applies, the others look at other paths; medians of ${String(rounds)} rounds.`,
    '',
    ...table([['rules', ...COST_HEADING], ...rows]),
    '',
  ];
}

function keysText({ keys }: ScaleResult): string[] {
  const rows = keys.map((cell) => [
    grouped(cell.keys),
    grouped(cell.requests),
    ...costCells({ x: cell.keys, ...cell }),
    fixed(cell.p99Ms, 2),
    fixed(cell.residentMb, 0),
  ]);
  return [
    '### Keys',
    '',
    'A closed loop of 32 connections; the keys take turns.',
    '',
    ...table([['keys', 'requests', ...COST_HEADING, 'p99 ms', 'memory MB'], ...rows]),
    '',
  ];
}

function hotKeyText({ hotKey }: ScaleResult): string[] {
  const rows = hotKey.map((cell) => [
    String(cell.connections),
    ...costCells({ x: cell.connections, ...cell }),
    fixed(cell.perSecond, 0),
    fixed(cell.p99Ms, 2),
  ]);
  return [
    '### One hot key',
    '',
    'A closed loop; requests for one bucket that meet in a turn of the event loop, or while a call is under way, share the next call.',
    '',
    ...table([['connections', ...COST_HEADING, 'requests/s', 'p99 ms'], ...rows]),
    '',
  ];
}

function crowdText({ crowd }: ScaleResult): string[] {
  return crowd.flatMap((facts) => {
    const { connections, beforeMb, crowdedMb, alone, beside } = facts;
    const row = (name: string, mb: number, load: typeof alone): string[] => [
      name,
      fixed(mb, 0),
      ...costCells({ x: 0, ...load }),
      fixed(load.perSecond, 0),
      fixed(load.p99Ms, 2),
    ];
    return [
      '### Idle connections',
      '',
      `${grouped(connections)} connections that were used once and stay open cost ${fixed(kilobytesEach(facts), 1)} kB of resident memory each; 32 others ask beside them.`,
      '',
      ...table([
        ['', 'memory MB', ...COST_HEADING, 'requests/s', 'p99 ms'],
        row('without them', beforeMb, alone),
        row('with them', crowdedMb, beside),
      ]),
      '',
    ];
  });
}

function bodiesText({ bodies }: ScaleResult): string[] {
  if (bodies.length === 0) return [];
  const rows = bodies.map(({ direction, bytes, seconds, processorMs, beforeMb, highWaterMb }) => [
    `${String(bytes / 1e9)} GB ${direction}`,
    fixed(bytes / 1e6 / seconds, 0),
    fixed(processorMs, 0),
    fixed(beforeMb, 0),
    fixed(highWaterMb, 0),
  ]);
  return [
    '### Large bodies',
    '',
    'Client and application are Node programs that share the other core, and mostly set the pace.',
    '',
    ...table([['body', 'MB/s', 'CPU ms of the sidecar', 'memory MB before', 'at most'], ...rows]),
    '',
  ];
}

function slowText({ slow }: ScaleResult): string[] {
  const [first] = slow;
  if (first === undefined) return [];
  const rows = slow.map(({ who, beforeMb, highWaterMb, alone, beside }) => [
    `${String(first.clients)} slow ${who}`,
    fixed(beforeMb, 0),
    fixed(highWaterMb, 0),
    fixed(alone.p50Ms, 2),
    fixed(beside.p50Ms, 2),
    fixed(alone.p99Ms, 2),
    fixed(beside.p99Ms, 2),
  ]);
  return [
    '### Slow readers and writers',
    '',
    `Each has a body of ${String(first.bytes / 1e6)} MB and moves ${grouped(first.bytesPerSecond)} bytes a second of it. Beside them an open loop of 200 requests a second, which is first measured without them.`,
    '',
    ...table([
      [
        ...['', 'memory MB before', 'at most', 'p50 ms without', 'with'],
        ...['p99 ms without', 'with'],
      ],
      ...rows,
    ]),
    '',
  ];
}

function costCells({
  proxyUs,
  redisUs,
  redisCalls,
}: GrowthPoint | (Cost & { readonly x: number })): string[] {
  return [fixed(proxyUs, 1), fixed(redisUs, 1), fixed(redisCalls, 3)];
}
