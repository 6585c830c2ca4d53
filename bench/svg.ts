// The few shapes that the report's pictures are made of. Coordinates are in the picture's own units, y downwards.

/** Colours that read on white and on dark, and differ for the colour-blind. */
export const INK = {
  weir: '#0072b2',
  others: '#8c8c8c',
  redis: '#d55e00',
  text: '#1b1b1b',
  grid: '#dcdcdc',
} as const;

export interface DocumentOptions {
  /** Read out in place of the picture. */
  readonly title: string;
  readonly width: number;
  readonly height: number;
}

/** A file with the shapes on white. */
export function document(
  { title, width, height }: DocumentOptions,
  shapes: readonly string[],
): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${String(width)} ${String(height)}" font-family="sans-serif" font-size="12" role="img">`,
    `<title>${title}</title>`,
    `<rect width="${String(width)}" height="${String(height)}" fill="#ffffff"/>`,
    ...shapes,
    '</svg>',
    '',
  ].join('\n');
}

export interface TextPlace {
  readonly x: number;
  readonly y: number;
  readonly weight?: 'bold';
  /** Which part of the text is at `x`; its start unless given. */
  readonly anchor?: 'middle' | 'end';
}

export function text({ x, y, weight, anchor }: TextPlace, content: string): string {
  const bold = weight === undefined ? '' : ` font-weight="${weight}"`;
  const at = anchor === undefined ? '' : ` text-anchor="${anchor}"`;
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" fill="${INK.text}"${bold}${at}>${content}</text>`;
}

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly colour: string;
}

export function box({ x, y, width, height, colour }: Box): string {
  return `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${width.toFixed(1)}" height="${String(height)}" fill="${colour}"/>`;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A line through the points; `dash` as SVG's stroke-dasharray. */
export function line(points: readonly Point[], colour: string, dash?: string): string {
  const through = points.map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ');
  const dashed = dash === undefined ? '' : ` stroke-dasharray="${dash}"`;
  return `<polyline points="${through}" fill="none" stroke="${colour}" stroke-width="1.5"${dashed}/>`;
}

export function dot({ x, y }: Point, colour: string): string {
  return `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="3" fill="${colour}"/>`;
}
