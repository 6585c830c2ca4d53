// How much two instances admitted of one key together, one bar per contender, with the exact bound as a line.
import type { AccuracyCell } from './accuracy.ts';
import { beyondBound, exactBound } from './accuracy.ts';
import { TITLES } from './contender.ts';
import { INK, box, document, line, text } from './svg.ts';

const WIDTH = 760;
const LABEL = 210;
const BAR = 16;
const GAP = 8;
const TOP = 48;

/** An SVG; one cell per contender, in the order of the bars. */
export function drawAccuracy(cells: readonly AccuracyCell[]): string {
  const most = Math.max(...cells.map(({ admitted }) => admitted));
  const scale = (WIDTH - LABEL - 150) / most;
  const height = TOP + cells.length * (BAR + GAP) + GAP;
  const shapes = cells.flatMap((cell, i) => drawBar(cell, TOP + i * (BAR + GAP), scale));
  const bound = LABEL + Math.max(...cells.map((cell) => exactBound(cell).most)) * scale;
  const ends = [
    { x: bound, y: TOP - 6 },
    { x: bound, y: height - GAP },
  ];
  return document({ title: 'Requests admitted by two instances', width: WIDTH, height }, [
    text({ x: 0, y: 16, weight: 'bold' }, 'Requests admitted by two instances with one limit'),
    ...shapes,
    line(ends, INK.redis, '4,3'),
    text({ x: bound, y: TOP - 10, anchor: 'middle' }, 'the exact bound'),
  ]);
}

function drawBar(cell: AccuracyCell, y: number, scale: number): string[] {
  const { contender, admitted } = cell;
  const beyond = beyondBound(cell);
  const words = beyond === 0 ? 'exact' : `${String(Math.abs(beyond))} ${sideOf(beyond)}`;
  const colour = contender === 'weir' ? INK.weir : INK.others;
  return [
    text({ x: 0, y: y + 12 }, TITLES[contender]),
    box({ x: LABEL, y, width: admitted * scale, height: BAR, colour }),
    text({ x: LABEL + admitted * scale + 8, y: y + 12 }, `${String(admitted)}, ${words}`),
  ];
}

function sideOf(beyond: number): string {
  return beyond > 0 ? 'beyond' : 'short';
}
