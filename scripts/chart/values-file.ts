// values.yaml and values.schema.json from the list of values.
import { stringify } from 'yaml';
import { chartSections } from './chart-values.ts';
import type { ChartValue, Schema, Section } from './value.ts';

const WIDTH = 100;

export function writeValues(): string {
  const parts = chartSections.map(
    (section) => `\n# ${'-'.repeat(4)} ${section.name} ${'-'.repeat(4)}\n${sectionOf(section)}`,
  );
  return `# Made by \`npm run generate\`; edits belong into scripts/chart/.\n${parts.join('')}`;
}

function sectionOf({ values }: Section): string {
  let open: readonly string[] = [];
  const lines: string[] = [];
  for (const value of values) {
    const keys = value.path.split('.');
    const parents = keys.slice(0, -1);
    const kept = commonLength(open, parents);
    for (const [depth, key] of parents.entries()) {
      if (depth >= kept) lines.push(`${indent(depth)}${key}:`);
    }
    lines.push(...leafLines(value, keys));
    open = parents;
  }
  return `${lines.join('\n')}\n`;
}

function commonLength(a: readonly string[], b: readonly string[]): number {
  const different = b.findIndex((key, at) => a[at] !== key);
  return different === -1 ? b.length : different;
}

function leafLines({ value, about }: ChartValue, keys: readonly string[]): readonly string[] {
  const margin = indent(keys.length - 1);
  const text = stringify({ [keys.at(-1) ?? '']: value }, { lineWidth: 0, nullStr: 'null' });
  return [
    ...wrap(about, WIDTH - margin.length - 2).map((line) => `${margin}# ${line}`),
    ...text
      .trimEnd()
      .split('\n')
      .map((line) => `${margin}${line}`),
  ];
}

function indent(depth: number): string {
  return '  '.repeat(depth);
}

function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length + 1 > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

export function writeValuesSchema(): string {
  const root = newNode();
  for (const { values } of chartSections) {
    for (const value of values) place(root, value.path.split('.'), value);
  }
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Values of the chart weir',
    ...render(root, ''),
  };
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}

interface Node {
  readonly children: Map<string, Node>;
  leaf: ChartValue | undefined;
}

function newNode(): Node {
  return { children: new Map(), leaf: undefined };
}

function place(node: Node, [key, ...rest]: readonly string[], leaf: ChartValue): void {
  if (key === undefined) {
    node.leaf = leaf;
    return;
  }
  const child = node.children.get(key) ?? newNode();
  node.children.set(key, child);
  place(child, rest, leaf);
}

function render({ children, leaf }: Node, path: string): Schema {
  if (leaf !== undefined) {
    return { description: leaf.about.replaceAll('`', ''), ...leaf.schema, default: leaf.value };
  }
  const entries = [...children].map(([key, node]) => [key, render(node, join(path, key))]);
  return {
    type: 'object',
    ...(path === '' ? {} : { description: `Values below ${path}` }),
    // Helm hands the globals of a parent chart to every chart below it.
    additionalProperties: path === 'global',
    properties: Object.fromEntries(entries) as Schema,
    // `null` takes a value away, and the templates have no other; only one that begins as null may be it.
    required: [...children].filter(([, node]) => node.leaf?.value !== null).map(([key]) => key),
  };
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}
