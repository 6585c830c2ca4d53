import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { errorCatalogue } from '../../contract/errors.ts';

describe('docs/errors.md', () => {
  it('explains every code of the catalogue, and no other', async () => {
    const page = await readFile(new URL('../../docs/errors.md', import.meta.url), 'utf8');
    const explained = [...page.matchAll(/^## ([A-Z_]+)$/gm)].map(([, code]) => code);

    assert.deepEqual(explained.toSorted(), Object.keys(errorCatalogue).toSorted());
  });
});
