// The budget: each figure with its goal and, where a release depends on it, its gate. Ratios are between contenders of
// one round of one run; absolute times of other machines or evenings are not compared.
import { beyondBound } from './accuracy.ts';
import type { ContenderName } from './contender.ts';
import type { Cell, PeersResult, Scenario } from './peers-result.ts';
import { cellsOf, cpuUs, median, pacedOf } from './peers-result.ts';

export interface Figure {
  readonly what: string;
  /** NaN when it could not be measured. */
  readonly value: number;
  readonly unit: '×' | 'ms' | 'MB' | 'kB' | 'µs' | '';
  /** At most. */
  readonly goal: number;
  readonly gate?: number;
}

export type FigureVerdict = 'goal met' | 'gate met' | 'gate missed' | 'goal missed' | 'absent';

export function verdictOn({ value, goal, gate }: Figure): FigureVerdict {
  if (Number.isNaN(value)) return 'absent';
  if (value <= goal) return 'goal met';
  if (gate === undefined) return 'goal missed';
  return value <= gate ? 'gate met' : 'gate missed';
}

/** Every figure of the budget that this run can tell. */
export function figuresOf(result: PeersResult): readonly Figure[] {
  return [
    ...ratioFigures(result),
    ...latencyFigures(result),
    ...oneBucketFigures(result),
    ...accuracyFigures(result),
    ...sidecarFigures(result),
    http2Figure(result),
  ];
}

function ratioFigures(result: PeersResult): Figure[] {
  const ratio = (scenario: Scenario, rival: ContenderName): number =>
    cpuRatio(result, { scenario, contender: 'weir', rival });
  const manyRules = cpuRatio(result, { scenario: 'many', contender: 'weir-32', rival: 'weir' });
  const [hot, many] = [
    'CPU per allowed request, one hot key',
    'CPU per allowed request, 2 000 keys',
  ];
  const refused = 'CPU per refused request';
  return [
    figure(`${hot}, against nginx + Lua + Redis`, ratio('hot', 'nginx-lua'), 0.5, 0.7),
    figure(`${many}, against nginx + Lua + Redis`, ratio('many', 'nginx-lua'), 0.65, 0.85),
    figure(`${refused}, against nginx + Lua + Redis`, ratio('refused', 'nginx-lua'), 0.25, 0.4),
    figure(`${refused}, against Envoy's local limit`, ratio('refused', 'envoy-local'), 1),
    figure(`${many}, against Envoy + ratelimit + Redis`, ratio('many', 'envoy-ratelimit'), 0.12),
    figure(`${many}, against Traefik + Redis`, ratio('many', 'traefik'), 0.3),
    figure(`${hot}, against nginx as a plain proxy`, ratio('hot', 'nginx'), 2),
    figure(`${many}, 32 rules instead of 1`, manyRules, 1.25, 1.5),
  ];
}

function figure(what: string, value: number, goal: number, gate?: number): Figure {
  return { what, value, unit: '×', goal, ...(gate === undefined ? {} : { gate }) };
}

interface Comparison {
  readonly scenario: Scenario;
  readonly contender: ContenderName;
  readonly rival: ContenderName;
}

function cpuRatio(result: PeersResult, { scenario, contender, rival }: Comparison): number {
  return ratioWithinRounds(cellsOf(result, contender, scenario), cellsOf(result, rival, scenario));
}

/** The median over rounds of the ratio within a round; NaN where no round has both. */
function ratioWithinRounds(own: readonly OfRound[], others: readonly OfRound[]): number {
  const ratios = own.flatMap((cell) => {
    const other = others.find(({ round }) => round === cell.round);
    return other === undefined ? [] : [cpuUs(cell) / cpuUs(other)];
  });
  return median(ratios);
}

type OfRound = Pick<Cell, 'round' | 'proxyUs' | 'redisUs'>;

function latencyFigures(result: PeersResult): Figure[] {
  const rates = [...new Set(result.paced.map(({ perSecond }) => perSecond))];
  const paced = rates.flatMap((rate): Figure[] => {
    const at = `at ${String(rate)} requests a second`;
    const added = addedMs(result, 'weir', rate);
    const rival = addedMs(result, 'nginx-lua', rate);
    return [
      { what: `added latency ${at}, p50`, value: added.p50, unit: 'ms', goal: 0.5 },
      {
        what: `added latency ${at}, p50, against nginx + Lua + Redis`,
        value: added.p50 / rival.p50,
        unit: '×',
        goal: 1.3,
      },
      { what: `added latency ${at}, p99`, value: added.p99, unit: 'ms', goal: 3 },
    ];
  });
  const p99 = (name: ContenderName): number =>
    median(cellsOf(result, name, 'many').map(({ p99Ms }) => p99Ms));
  const others = (['nginx-lua', 'traefik', 'envoy-local', 'envoy-ratelimit'] as const).map(p99);
  const best = Math.min(...others.filter((value) => !Number.isNaN(value)));
  return [
    figure(
      'p99 with 32 connections, 2 000 keys, against the best of the other limiters',
      Number.isFinite(best) ? p99('weir') / best : NaN,
      1,
    ),
    ...paced,
  ];
}

interface AddedMs {
  readonly p50: number;
  readonly p99: number;
}

/** What a contender adds to the latency without any proxy. */
export function addedMs(result: PeersResult, contender: ContenderName, rate: number): AddedMs {
  const [own, bare] = [pacedOf(result, contender, rate), pacedOf(result, 'direct', rate)];
  return {
    p50: median(own.map(({ p50Ms }) => p50Ms)) - median(bare.map(({ p50Ms }) => p50Ms)),
    p99: median(own.map(({ p99Ms }) => p99Ms)) - median(bare.map(({ p99Ms }) => p99Ms)),
  };
}

function oneBucketFigures({ sidecar, ...result }: PeersResult): Figure[] {
  const { capacity, admitted, redisCalls } = sidecar.oneBucket;
  const refused = cellsOf({ sidecar, ...result }, 'weir', 'refused');
  const many = cellsOf({ sidecar, ...result }, 'weir', 'many');
  return [
    {
      what: 'script calls per request, one bucket, 64 connections',
      value: redisCalls,
      unit: '',
      goal: 0.1,
    },
    {
      what: 'requests admitted beyond or short of one bucket, 64 connections',
      value: Math.abs(admitted - capacity),
      unit: '',
      goal: 0,
    },
    {
      what: 'script calls per refused request',
      value: median(refused.map((cell) => cell.redisCalls)),
      unit: '',
      goal: 0.01,
    },
    {
      what: 'Redis CPU per decision, 2 000 keys',
      value: median(many.map(({ redisUs }) => redisUs)),
      unit: 'µs',
      goal: 10,
    },
  ];
}

function accuracyFigures({ accuracy = [] }: PeersResult): Figure[] {
  const own = accuracy.find(({ contender }) => contender === 'weir');
  return [
    {
      what: 'requests admitted beyond or short of one limit, two instances, 20 s at 4 times the limit',
      value: own === undefined ? NaN : Math.abs(beyondBound(own)),
      unit: '',
      goal: 0,
    },
  ];
}

function http2Figure({ http2 = [] }: PeersResult): Figure {
  const of = (name: ContenderName): readonly OfRound[] =>
    http2.filter(({ contender }) => contender === name);
  const ratio = ratioWithinRounds(of('weir-http2'), of('envoy-local-http2'));
  return figure("CPU per request over HTTP/2 without TLS, against Envoy's local limit", ratio, 1);
}

function sidecarFigures({ sidecar }: PeersResult): Figure[] {
  return [
    { what: 'resident memory, idle', value: sidecar.idleMb, unit: 'MB', goal: 70, gate: 100 },
    { what: 'resident memory, at load', value: sidecar.loadMb, unit: 'MB', goal: 100, gate: 130 },
    {
      what: 'start to listening',
      value: median(sidecar.readyMs),
      unit: 'ms',
      goal: 250,
      gate: 400,
    },
  ];
}
