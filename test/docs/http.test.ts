// docs/http.md lists the differences that the corpus allows, word for word.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { differences } from '../conformance/http/differences.ts';

const page = path.join(import.meta.dirname, '..', '..', 'docs', 'http.md');

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
});
