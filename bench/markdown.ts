// The pieces of Markdown that the report is made of.

/** The first row is the heading. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const [heading = [], ...body] = rows;
  return [row(heading), row(heading.map(() => '---')), ...body.map(row)];
}

/** A number with `digits` after the point; a dash for what was not measured. */
export function fixed(value: number, digits: number): string {
  return Number.isNaN(value) ? '–' : value.toFixed(digits);
}

/** Groups of three digits, as `1 000 000`. */
export function grouped(value: number): string {
  return value.toLocaleString('en').replaceAll(',', ' ');
}
