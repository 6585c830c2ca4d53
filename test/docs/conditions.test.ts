import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { conditionReasons } from '../../contract/conditions.ts';

/** Reasons of each condition, in the order of the page. */
async function explained(): Promise<Map<string, string[]>> {
  const page = await readFile(new URL('../../docs/conditions.md', import.meta.url), 'utf8');
  const sections = page.split(/^## /m).slice(1);
  const reasons = sections.map((section): [string, string[]] => {
    const [title = ''] = section.split('\n');
    const rows = [...section.matchAll(/^\| `([A-Za-z]+)` +\| (?:True|False|Unknown)/gm)];
    return [title, rows.map(([, reason = '']) => reason)];
  });
  return new Map(reasons.filter(([, names]) => names.length > 0));
}

describe('docs/conditions.md', () => {
  it('explains every condition and reason, and no other, in the order in which they are told', async () => {
    const page = await explained();

    assert.deepEqual([...page.keys()], Object.keys(conditionReasons));
    for (const [type, [well, ...others]] of Object.entries(conditionReasons)) {
      assert.deepEqual(page.get(type), [...others, well], type);
    }
  });
});
