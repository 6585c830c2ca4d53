import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { compiledPolicy } from '../../test/support/compiled-policy.ts';
import { ConfigCache } from './config-cache.ts';

const config = {
  version: 'v',
  policies: [compiledPolicy()],
  settings: { store: { url: 'redis://:secret@a' } },
  ca: undefined,
};

interface Fixture extends AsyncDisposable {
  readonly file: string;
  readonly folder: string;
  readonly cache: ConfigCache;
}

async function open(): Promise<Fixture> {
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-cache-'));
  return {
    folder,
    file: path.join(folder, 'config.json'),
    cache: new ConfigCache(folder, 'pod-1'),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

async function reasonOf(cache: ConfigCache): Promise<string> {
  const content = await cache.read();
  return content.kind === 'unusable' ? content.reason : content.kind;
}

describe('the cache', () => {
  it('gives back what was written last, for its owner only, and leaves nothing beside it', async () => {
    await using fixture = await open();

    await fixture.cache.write({ ...config, version: 'older' });
    await fixture.cache.write(config);

    assert.deepEqual(await fixture.cache.read(), { kind: 'config', config });
    assert.equal((await stat(fixture.file)).mode & 0o777, 0o600);
    assert.deepEqual(await readdir(fixture.folder), ['config.json']);
  });

  it('is empty when nothing was written', async () => {
    await using fixture = await open();

    assert.deepEqual(await fixture.cache.read(), { kind: 'none' });
  });

  it('does not use a file of another pod', async () => {
    await using fixture = await open();
    await new ConfigCache(fixture.folder, 'pod-2').write(config);

    assert.match(await reasonOf(fixture.cache), /another pod/);
  });

  it('does not use a file of which any byte is different', async () => {
    await using fixture = await open();
    await fixture.cache.write(config);
    const text = await readFile(fixture.file, 'utf8');
    const places = [0, 63, 64, 65, Math.floor(text.length / 2), text.length - 1];

    for (const at of places) {
      const other = text[at] === 'x' ? 'y' : 'x';
      await writeFile(fixture.file, text.slice(0, at) + other + text.slice(at + 1));
      assert.match(await reasonOf(fixture.cache), /checksum/, `byte ${at}`);
    }
  });

  it('does not use a file with a good checksum and another content', async () => {
    await using fixture = await open();
    const text = JSON.stringify({ format: 99, podUid: 'pod-1' });
    const sum = createHash('sha256').update(text).digest('hex');

    await writeFile(fixture.file, `${sum}\n${text}`);

    assert.match(await reasonOf(fixture.cache), /another version/);
  });

  it('does not read a file that is larger than any it writes', async () => {
    await using fixture = await open();
    await writeFile(fixture.file, '');
    await truncate(fixture.file, 17_825_793);

    assert.match(await reasonOf(fixture.cache), /more than 17825792 bytes/);
  });

  it('that cannot be written says so, and keeps what it has', async () => {
    const cache = new ConfigCache('/dev/null/nowhere', 'pod-1');

    await assert.rejects(cache.write(config));
    assert.match(await reasonOf(cache), /cannot be read/);
  });
});
