// Markdown tables. A cell's pipes and line ends must not end it.

export function markdownTable(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const lines = [heads, heads.map(() => '---'), ...rows.map((row) => row.map(cell))];
  return lines.map((line) => `| ${line.join(' | ')} |`).join('\n');
}

function cell(text: string): string {
  return text.replaceAll('|', String.raw`\|`).replaceAll('\n', ' ');
}

export const GENERATED_NOTE = '<!-- Made by `npm run generate`; edits belong into the code. -->';
