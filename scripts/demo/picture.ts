// The demo's picture: per client what was admitted and refused over time with the bucket's level, and the burst
// around the window's edge under both algorithms. Drawn with Observable Plot, written as SVG and as one HTML page.
import * as Plot from '@observablehq/plot';
import { JSDOM } from 'jsdom';
import type { Counted } from './fixed-window.ts';
import { EDGE_MS, LENGTH_MS, type Observation } from './traffic.ts';

const ADMITTED = '#2b8a3e';
const REFUSED = '#c92a2a';
const LEVEL = '#1c7ed6';
const WIDTH = 860;

export interface Story {
  readonly observations: readonly Observation[];
  /** The same greedy requests under a fixed window of the same sustained rate. */
  readonly fixedWindow: readonly Counted[];
  readonly clients: readonly string[];
}

/** One `<svg>` document with all panels below each other. */
export function drawSvg(story: Story): string {
  const { document } = new JSDOM('').window;
  const panels = [
    ...story.clients.map((client) => clientPanel(document, client, story.observations)),
    edgePanel(document, story),
  ];
  return stack(panels);
}

/** A page that needs nothing else; `summary` is preformatted text. */
export function drawPage(svg: string, summary: string): string {
  const { document } = new JSDOM('').window;
  const pre = document.createElement('pre');
  pre.textContent = summary;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Weir: what was admitted</title>
<style>body{font:15px/1.5 system-ui,sans-serif;max-width:${WIDTH}px;margin:2rem auto;padding:0 1rem;color:#212529}
pre{background:#f8f9fa;padding:1rem;overflow:auto}</style></head>
<body><h1>What was admitted</h1>
<p>Each dot is a request: <b style="color:${ADMITTED}">admitted</b> or <b style="color:${REFUSED}">refused with 429</b>.
The <b style="color:${LEVEL}">line</b> is the level of the tightest bucket (its name beside it), as the responses' <code>RateLimit</code> field told the client.</p>
${svg}
${pre.outerHTML}
</body></html>
`;
}

interface Panel {
  readonly svg: string;
  readonly height: number;
}

function clientPanel(
  document: Document,
  client: string,
  observations: readonly Observation[],
): Panel {
  const own = observations
    .filter((one) => one.client === client)
    .sort((a, b) => a.atMs - b.atMs)
    .map((one) => ({ ...one, s: one.atMs / 1_000, admitted: one.status < 400 }));
  const levels = own.flatMap(({ s, bucket }) => (bucket === undefined ? [] : [{ s, ...bucket }]));
  const admitted = own.filter((one) => one.admitted).length;
  const top = Math.max(1, ...levels.map((one) => one.tokens));
  return render(document, {
    title: `${client}: sent ${own.length}, admitted ${admitted}, refused ${own.length - admitted}`,
    height: 190,
    y: { label: 'tokens left in the tightest bucket', domain: [0, top * 1.1], grid: true },
    marks: [
      Plot.lineY(levels, { x: 's', y: 'tokens', z: 'name', stroke: LEVEL, curve: 'step-after' }),
      Plot.text(
        levels,
        Plot.selectLast({ x: 's', y: 'tokens', z: 'name', text: 'name', ...LABEL }),
      ),
      Plot.dot(own, { x: 's', y: () => top * 1.05, r: 2.5, fill: dotColour }),
    ],
  });
}

const LABEL = { fill: LEVEL, textAnchor: 'end', dy: -8 } as const;

function edgePanel(document: Document, { observations, fixedWindow }: Story): Panel {
  const greedy = observations
    .filter((one) => one.client === 'free, greedy')
    .map((one) => ({
      s: one.atMs / 1_000,
      admitted: one.status < 400,
      who: 'token bucket (Weir)',
    }));
  const counter = fixedWindow.map((one) => ({
    s: one.atMs / 1_000,
    admitted: one.isAdmitted,
    who: 'fixed window',
  }));
  return render(document, {
    title: 'free, greedy: the same requests under a token bucket and under a fixed-window counter',
    height: 150,
    y: { label: null },
    marks: [
      Plot.tickX([...greedy, ...counter], {
        x: 's',
        y: 'who',
        stroke: dotColour,
        strokeWidth: 2,
      }),
      Plot.ruleX([EDGE_MS / 1_000], { stroke: '#212529', strokeDasharray: '4,3' }),
      Plot.text([EDGE_MS / 1_000], {
        x: (edge: number) => edge,
        frameAnchor: 'top',
        dy: -10,
        text: () => 'edge of the window',
      }),
    ],
  });
}

function dotColour(one: { readonly admitted: boolean }): string {
  return one.admitted ? ADMITTED : REFUSED;
}

interface Drawing {
  readonly title: string;
  readonly height: number;
  readonly y: Plot.ScaleOptions;
  readonly marks: Plot.Markish[];
}

const TITLE_HEIGHT = 26;

function render(document: Document, { title, height, y, marks }: Drawing): Panel {
  const plot = Plot.plot({
    document,
    width: WIDTH,
    height,
    marginLeft: 120,
    x: { label: 'seconds', domain: [0, LENGTH_MS / 1_000] },
    y,
    marks,
  });
  plot.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  plot.setAttribute('y', String(TITLE_HEIGHT));
  const heading = document.createElement('text');
  heading.textContent = title;
  const text = `<text x="8" y="18" font-family="system-ui, sans-serif" font-size="14" font-weight="600">${heading.innerHTML}</text>`;
  return { svg: `${text}${plot.outerHTML}`, height: height + TITLE_HEIGHT };
}

function stack(panels: readonly Panel[]): string {
  let y = 0;
  const placed = panels.map(({ svg, height }) => {
    const group = `<svg y="${y}" width="${WIDTH}" height="${height}" overflow="visible">${svg}</svg>`;
    y += height + 10;
    return group;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${y}" viewBox="0 0 ${WIDTH} ${y}"><rect width="100%" height="100%" fill="white"/>${placed.join('')}</svg>`;
}
