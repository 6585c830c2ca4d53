// The growth curves of docs/performance.md: small panels, each with what a request costs over one thing that grows.
import { INK, box, document, dot, line, text } from '../svg.ts';
import type { Point } from '../svg.ts';
import type { GrowthPoint } from './scale-figures.ts';
import { growthOf } from './scale-figures.ts';
import type { ScaleResult } from './scale-result.ts';

const WIDTH = 760;
const PANEL = { width: 380, height: 190, left: 46, right: 16, top: 34, bottom: 30 } as const;

interface Curve {
  readonly colour: string;
  readonly points: readonly Point[];
}

interface Panel {
  readonly title: string;
  /** Every x that was measured; the axis is logarithmic, with a mark for each. */
  readonly curves: readonly Curve[];
}

/** An SVG of every growth that was measured. */
export function drawScale(result: ScaleResult): string {
  const panels = panelsOf(result);
  const height = Math.ceil(panels.length / 2) * PANEL.height + 24;
  const shapes = panels.map((panel, i) =>
    drawPanel(panel, { x: (i % 2) * PANEL.width, y: 24 + Math.floor(i / 2) * PANEL.height }),
  );
  return document({ title: 'Growth', width: WIDTH, height }, [legend(), ...shapes]);
}

function panelsOf({ sidecars, rules, keys, hotKey }: ScaleResult): readonly Panel[] {
  const bySidecars = growthOf(sidecars, (cell) => cell.sidecars);
  const byRules = growthOf(rules, (cell) => cell.rules);
  const byKeys = growthOf(keys, (cell) => cell.keys);
  const byConnections = growthOf(hotKey, (cell) => cell.connections);
  return [
    { title: 'CPU µs per request, sidecars on one Redis', curves: cpuCurves(bySidecars) },
    { title: 'CPU µs per request, rules', curves: cpuCurves(byRules) },
    { title: 'CPU µs per request, distinct keys', curves: cpuCurves(byKeys) },
    {
      title: 'resident memory in MB, distinct keys',
      curves: [curve(INK.weir, byKeys, ({ residentMb }) => residentMb)],
    },
    { title: 'CPU µs per request, connections, one hot key', curves: cpuCurves(byConnections) },
    {
      title: 'script calls per request, connections, one hot key',
      curves: [curve(INK.redis, byConnections, ({ redisCalls }) => redisCalls)],
    },
  ].filter(({ curves }) => curves.every(({ points }) => points.length > 0));
}

function cpuCurves(growth: readonly GrowthPoint[]): readonly Curve[] {
  return [
    curve(INK.weir, growth, ({ proxyUs }) => proxyUs),
    curve(INK.redis, growth, ({ redisUs }) => redisUs),
  ];
}

function curve(
  colour: string,
  growth: readonly GrowthPoint[],
  yOf: (point: GrowthPoint) => number,
): Curve {
  return { colour, points: growth.map((point) => ({ x: point.x, y: yOf(point) })) };
}

/** From the panel's own coordinates to the picture's. */
type Place = (point: Point) => Point;

function drawPanel({ title, curves }: Panel, at: Point): string {
  const all = curves.flatMap(({ points }) => points);
  const top = niceCeiling(Math.max(...all.map(({ y }) => y)));
  const xs = [...new Set(all.map(({ x }) => x))];
  const place = placeIn(at, Math.max(...xs), top);
  return [
    text({ x: at.x + 8, y: at.y + 16, weight: 'bold' }, title),
    ...[0, top / 2, top].flatMap((y) => drawGridLine(y, Math.max(...xs), place)),
    ...xs.map((x) => {
      const foot = place({ x, y: 0 });
      return text({ x: foot.x, y: foot.y + 16, anchor: 'middle' }, shortNumber(x));
    }),
    ...curves.flatMap(({ colour, points }) => [
      line(points.map(place), colour),
      ...points.map((point) => dot(place(point), colour)),
    ]),
  ].join('\n');
}

function placeIn(at: Point, mostX: number, top: number): Place {
  const width = PANEL.width - PANEL.left - PANEL.right;
  const height = PANEL.height - PANEL.top - PANEL.bottom;
  return ({ x, y }) => ({
    x: at.x + PANEL.left + (mostX === 1 ? 0 : (Math.log(x) / Math.log(mostX)) * width),
    y: at.y + PANEL.top + height * (1 - y / top),
  });
}

function drawGridLine(y: number, mostX: number, place: Place): string[] {
  const [from, to] = [place({ x: 1, y }), place({ x: mostX, y })];
  return [
    line([from, to], INK.grid),
    text({ x: from.x - 6, y: from.y + 4, anchor: 'end' }, shortNumber(y)),
  ];
}

/** The next of 1, 2, 5, 10, 20, 50, … at or above a positive value. */
export function niceCeiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 5, 10].find((one) => one * power >= value) ?? 10;
  return factor * power;
}

function shortNumber(value: number): string {
  if (value >= 1e6) return `${String(value / 1e6)} M`;
  if (value >= 1e3) return `${String(value / 1e3)} k`;
  return Number(value.toPrecision(3)).toString();
}

function legend(): string {
  return [
    box({ x: 8, y: 2, width: 12, height: 12, colour: INK.weir }),
    text({ x: 26, y: 13 }, 'sidecars'),
    box({ x: 96, y: 2, width: 12, height: 12, colour: INK.redis }),
    text({ x: 114, y: 13 }, 'Redis'),
  ].join('\n');
}
