import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { annotations } from '../../contract/names.ts';
import {
  noteReasons,
  refusalReasons,
  skipReasons,
} from '../../operator/injection/injection-outcome.ts';
import { annotationRules } from '../../operator/injection/pod-settings.ts';
import { bypassRows } from '../../operator/policy/bypass.ts';

/** Cells of the rows under a heading, without the table's own head. */
async function rowsUnder(heading: string): Promise<readonly (readonly string[])[]> {
  const section = await sectionOf(heading);
  const lines = section.split('\n').filter((line) => line.startsWith('|'));
  return lines
    .filter((line, index) => !/^[|\s:-]+$/.test(line) && !/^[|\s:-]+$/.test(lines[index + 1] ?? ''))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
}

async function sectionOf(heading: string): Promise<string> {
  const page = await readFile(new URL('../../docs/injection.md', import.meta.url), 'utf8');
  const found = page.split(/^## /m).find((section) => section.startsWith(`${heading}\n`));
  assert.ok(found !== undefined, heading);
  return found;
}

describe('docs/injection.md', () => {
  it('lists every annotation with its values and its default, and no other', async () => {
    const rules = new Map(Object.entries(annotationRules));
    const expected = Object.entries(annotations)
      .filter(([field]) => field !== 'inject')
      .map(([field, name]) => {
        const rule = rules.get(field);
        return [`\`${name}\``, rule?.values, rule?.fallback];
      });

    assert.deepEqual(
      (await rowsUnder('Annotations')).toSorted(),
      expected.map((row) => row.map(String)).toSorted(),
    );
  });

  it('shows every way around the sidecar', async () => {
    assert.deepEqual(
      await rowsUnder('Ways around the sidecar'),
      bypassRows.map(({ path, takeover, redirect, remedy }) => [path, takeover, redirect, remedy]),
    );
  });

  it('explains every reason for which a pod gets no sidecar, and no other', async () => {
    const rows = await rowsUnder('When a pod gets no sidecar');
    const refusals = rows.filter((cells) => cells.length === 3).map(([reason]) => reason);
    const notes = rows.filter((cells) => cells.length === 2).map(([reason]) => reason);
    const section = await sectionOf('When a pod gets no sidecar');

    assert.deepEqual(
      refusals.toSorted(),
      refusalReasons.map((reason) => `\`${reason}\``).toSorted(),
    );
    assert.deepEqual(
      notes,
      noteReasons.map((reason) => `\`${reason}\``),
    );
    for (const reason of skipReasons) assert.ok(section.includes(`\`${reason}\``), reason);
  });
});
