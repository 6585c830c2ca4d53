// The picture of docs/performance.md: processor time per request, one bar per contender, Redis' part apart.
import type { ContenderName } from './contender.ts';
import { TITLES } from './contender.ts';
import { SCENARIOS } from './printout.ts';
import type { PeersResult, Scenario } from './peers-result.ts';
import { cellsOf, median } from './peers-result.ts';
import { INK, box, document, text } from './svg.ts';

const WIDTH = 760;
const LABEL = 210;
const BAR = 16;
const GAP = 8;
const TITLE = 26;

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
  return document({ title: 'Processor time per request', width: WIDTH, height: y }, [
    legend(),
    ...parts,
  ]);
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
  const colour = contender.startsWith('weir') ? INK.weir : INK.others;
  const total = (proxyUs + redisUs).toFixed(1);
  const end = LABEL + (proxyUs + redisUs) * scale;
  return [
    text({ x: 0, y: y + 12 }, TITLES[contender]),
    box({ x: LABEL, y, width: proxyUs * scale, height: BAR, colour }),
    box({
      x: LABEL + proxyUs * scale,
      y,
      width: redisUs * scale,
      height: BAR,
      colour: INK.redis,
    }),
    text({ x: end + 6, y: y + 12 }, total),
  ].join('\n');
}

function legend(): string {
  const marks = [
    [0, INK.weir, 'Weir'],
    [70, INK.others, 'others'],
    [150, INK.redis, 'Redis'],
  ] as const;
  return marks
    .flatMap(([x, colour, word]) => [
      box({ x: LABEL + x, y: 4, width: 12, height: BAR, colour }),
      text({ x: LABEL + x + 18, y: 16 }, word),
    ])
    .join('\n');
}
