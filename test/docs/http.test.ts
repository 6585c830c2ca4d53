// docs/http.md lists the differences that the corpus allows, word for word, and what the kept runs found.
import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { FuzzResult } from '../../bench/fuzz-result.ts';
import type { SoakResult } from '../../bench/soak-result.ts';
import { parseCases } from '../conformance/http/case-file.ts';
import { differences } from '../conformance/http/differences.ts';

const root = path.join(import.meta.dirname, '..', '..');
const page = path.join(root, 'docs', 'http.md');
const results = path.join(root, 'bench', 'results');
const corpus = path.join(root, 'test', 'conformance', 'http', 'corpus');

/** The cells of every row of the table under that heading, its head left out. */
async function rowsUnder(heading: string): Promise<string[][]> {
  const text = await readFile(page, 'utf8');
  const [, section = ''] = text.split(`\n## ${heading}\n`);
  const [, table = ''] = section.split(/\n(?=\| -)/, 2);
  const lines = table.split('\n').slice(1);
  const end = lines.findIndex((line) => !line.startsWith('|'));
  return lines.slice(0, end).map((line) =>
    line
      .slice(1, -1)
      .split(' | ')
      .map((cell) => cell.trim()),
  );
}

describe('docs/http.md', () => {
  it('lists every allowed difference with its reason, and no other', async () => {
    const rows = await rowsUnder('Every difference');

    const due = Object.values(differences).map((one) => [one.in, one.what, one.why]);
    assert.deepEqual(rows, due);
  });

  it('tells what the kept runs found', async () => {
    const rows = await rowsUnder('How this is held');

    assert.deepEqual(rows, [
      ['`npm test`', `${shown(await exchanges())} exchanges`, 'nothing differs but the above'],
      ...(await fuzzRows()),
      await soakRow(),
    ]);
  });
});

async function exchanges(): Promise<number> {
  const names = (await readdir(corpus)).filter((name) => name.endsWith('.cases'));
  const texts = await Promise.all(names.map((name) => readFile(path.join(corpus, name), 'utf8')));
  return texts.flatMap(parseCases).length;
}

async function fuzzRows(): Promise<string[][]> {
  const { at, minutes, dialects } = await kept<FuzzResult>('fuzz.json');
  return dialects.map(({ dialect, rounds, connections, seen, checks }) => [
    `\`npm run fuzz\`, ${VERSIONS[dialect]}`,
    `${at.slice(0, 10)}, ${String(minutes)} minutes: ${shown(rounds)} rounds, ${shown(connections)} connections, ${shown(seen)} requests that reached the application`,
    verdictOn(checks),
  ]);
}

const VERSIONS = { http1: 'HTTP/1.1', http2: 'HTTP/2' } as const;

async function soakRow(): Promise<string[]> {
  const { at, minutes, requests, abandoned, checks } = await kept<SoakResult>('soak.json');
  return [
    '`npm run soak`',
    `${at.slice(0, 10)}, ${String(minutes)} minutes: ${shown(requests)} requests, ${shown(abandoned)} of them left by their clients`,
    verdictOn(checks),
  ];
}

function verdictOn(checks: readonly { readonly isMet: boolean }[]): string {
  const missed = checks.filter(({ isMet }) => !isMet).length;
  return missed === 0
    ? `all ${String(checks.length)} checks are met`
    : `${String(missed)} checks are missed`;
}

async function kept<T>(name: string): Promise<T> {
  return JSON.parse(await readFile(path.join(results, name), 'utf8')) as T;
}

/** With spaces between thousands. */
function shown(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ' ');
}
