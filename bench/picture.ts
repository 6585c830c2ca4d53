// The picture of docs/performance.md: processor time per request, one bar per contender, Redis' part apart.
import type { ContenderName } from './contender.ts';
import { TITLES } from './contender.ts';
import { SCENARIOS } from './printout.ts';
import type { PeersResult, Scenario } from './peers-result.ts';
import { cellsOf, median } from './peers-result.ts';

const WIDTH = 760;
const LABEL = 210;
const BAR = 16;
const GAP = 8;
const TITLE = 26;

/** Colours that read on white and on dark, and differ for the colour-blind. */
const PROXY = '#0072b2';
const RIVAL = '#8c8c8c';
const REDIS = '#d55e00';

interface Bar {
  readonly contender: ContenderName;
  readonly proxyUs: number;
  readonly redisUs: number;
}

/** An SVG with its description; `contenders` in the order of the bars. */
export function drawPeers(result: PeersResult, contenders: readonly ContenderName[]): string {
  const groups = (['hot', 'many', 'refused'] as const).map((scenario) => ({
    scenario,
    bars: barsOf(result, scenario, contenders),
  }));
  const longest = Math.max(
    ...groups.flatMap(({ bars }) => bars.map((bar) => bar.proxyUs + bar.redisUs)),
  );
  const scale = (WIDTH - LABEL - 70) / longest;
  let y = 30;
  const parts: string[] = [];
  for (const { scenario, bars } of groups) {
    parts.push(
      text({ x: 0, y: y + 14, weight: 'bold' }, `${SCENARIOS[scenario]}, CPU µs per request`),
    );
    y += TITLE;
    for (const bar of bars) {
      parts.push(drawBar(bar, y, scale));
      y += BAR + GAP;
    }
    y += GAP;
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${String(WIDTH)} ${String(y)}" font-family="sans-serif" font-size="12" role="img">`,
    '<title>Processor time per request</title>',
    `<rect width="${String(WIDTH)}" height="${String(y)}" fill="#ffffff"/>`,
    legend(),
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

function barsOf(
  result: PeersResult,
  scenario: Scenario,
  contenders: readonly ContenderName[],
): readonly Bar[] {
  return contenders.flatMap((contender) => {
    const cells = cellsOf(result, contender, scenario);
    if (cells.length === 0) return [];
    return [
      {
        contender,
        proxyUs: median(cells.map(({ proxyUs }) => proxyUs)),
        redisUs: median(cells.map(({ redisUs }) => redisUs)),
      },
    ];
  });
}

function drawBar({ contender, proxyUs, redisUs }: Bar, y: number, scale: number): string {
  const colour = contender.startsWith('weir') ? PROXY : RIVAL;
  const total = (proxyUs + redisUs).toFixed(1);
  const end = LABEL + (proxyUs + redisUs) * scale;
  return [
    text({ x: 0, y: y + 12 }, TITLES[contender]),
    box({ x: LABEL, y, width: proxyUs * scale, colour }),
    box({ x: LABEL + proxyUs * scale, y, width: redisUs * scale, colour: REDIS }),
    text({ x: end + 6, y: y + 12 }, total),
  ].join('\n');
}

function legend(): string {
  return [
    box({ x: LABEL, y: 4, width: 12, colour: PROXY }),
    text({ x: LABEL + 18, y: 16 }, 'Weir'),
    box({ x: LABEL + 70, y: 4, width: 12, colour: RIVAL }),
    text({ x: LABEL + 88, y: 16 }, 'others'),
    box({ x: LABEL + 150, y: 4, width: 12, colour: REDIS }),
    text({ x: LABEL + 168, y: 16 }, 'Redis'),
  ].join('\n');
}

interface TextPlace {
  readonly x: number;
  readonly y: number;
  readonly weight?: 'bold';
}

function text({ x, y, weight }: TextPlace, content: string): string {
  const bold = weight === undefined ? '' : ` font-weight="${weight}"`;
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" fill="#1b1b1b"${bold}>${content}</text>`;
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly colour: string;
}

function box({ x, y, width, colour }: Box): string {
  return `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${width.toFixed(1)}" height="${String(BAR)}" fill="${colour}"/>`;
}
