import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { bypassRows } from '../../operator/policy/bypass.ts';

describe('docs/bypass.md', () => {
  it('shows every way around that the operator knows, and no other', async () => {
    const page = await readFile(new URL('../../docs/bypass.md', import.meta.url), 'utf8');
    const rows = page
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .slice(2)
      .map((line) =>
        line
          .split('|')
          .slice(1, -1)
          .map((cell) => cell.trim()),
      );

    assert.deepEqual(
      rows,
      bypassRows.map(({ path, takeover, redirect, cause, remedy }) => [
        path,
        takeover,
        redirect,
        cause === undefined ? '–' : `\`${cause}\``,
        remedy,
      ]),
    );
  });
});
