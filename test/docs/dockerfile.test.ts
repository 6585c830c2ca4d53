// What the Dockerfile repeats, because nothing can be read there from elsewhere, is what it repeats.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { valueAt } from '../cluster/json-value.ts';

async function textOf(file: string): Promise<string> {
  return readFile(new URL(`../../${file}`, import.meta.url), 'utf8');
}

function found(pattern: RegExp, text: string): string {
  const [, one] = pattern.exec(text) ?? [];
  assert.ok(one !== undefined, `nothing matches ${String(pattern)}`);
  return one;
}

describe('the Dockerfile', () => {
  it('starts the sidecar with the flags of Node.js that the first line of the program has', async () => {
    const flags = found(/^#!\/usr\/bin\/env -S node (.*)$/m, await textOf('cli/main.ts'));
    const entry = found(/^ENTRYPOINT (\[.*\])$/m, await textOf('Dockerfile'));

    assert.deepEqual(JSON.parse(entry), [
      ...['/usr/local/bin/node', ...flags.split(' ')],
      '/usr/local/bin/weir',
    ]);
  });

  it('labels the images with the version of the package unless told another', async () => {
    const manifest: unknown = JSON.parse(await textOf('package.json'));

    assert.equal(
      found(/^ARG VERSION=(.*)$/m, await textOf('Dockerfile')),
      valueAt(manifest, 'version'),
    );
  });
});
