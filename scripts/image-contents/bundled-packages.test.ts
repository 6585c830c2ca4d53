import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { packageFolders, readPackage } from './bundled-packages.ts';

async function packageWith(
  t: TestContext,
  files: Readonly<Record<string, string>>,
): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-package-'));
  t.after(() => rm(folder, { recursive: true }));
  await mkdir(path.join(folder, 'own'));
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(folder, name), text);
  return folder;
}

describe('the packages of a bundle', () => {
  it('are those that gave a byte, nested and scoped ones by their own folder', () => {
    const inputs = {
      'cli/main.ts': { bytesInOutput: 10 },
      'node_modules/a/lib/one.js': { bytesInOutput: 5 },
      'node_modules/a/lib/two.js': { bytesInOutput: 5 },
      'node_modules/a/node_modules/@b/c/index.js': { bytesInOutput: 1 },
      'node_modules/unused/index.js': { bytesInOutput: 0 },
    };

    assert.deepEqual(packageFolders({ outputs: { 'main.mjs': { inputs } } }), [
      'node_modules/a',
      'node_modules/a/node_modules/@b/c',
    ]);
  });

  it('come with the text of their licence and a notice', async (t) => {
    const folder = await packageWith(t, {
      'package.json': '{ "name": "a", "version": "1.0.0", "license": "MIT" }',
      LICENSE: 'terms',
      NOTICE: 'thanks',
    });

    const { licence, licenceText } = await readPackage(folder, path.join(folder, 'own'));

    assert.equal(licence, 'MIT');
    assert.equal(licenceText, 'terms\n\nthanks');
  });

  it('may have a text that we keep, where they bring none', async (t) => {
    const folder = await packageWith(t, {
      'package.json': '{ "name": "@a/b", "version": "1.0.0", "license": "MIT" }',
      'own/@a__b.txt': 'kept terms',
    });

    assert.equal((await readPackage(folder, path.join(folder, 'own'))).licenceText, 'kept terms');
  });

  it('fail the build without a licence, or without its text', async (t) => {
    const silent = await packageWith(t, { 'package.json': '{ "name": "a", "version": "1.0.0" }' });
    const textless = await packageWith(t, {
      'package.json': '{ "name": "b", "version": "1.0.0", "license": "MIT" }',
    });

    await assert.rejects(readPackage(silent, silent), /a 1\.0\.0 names no licence/);
    await assert.rejects(
      readPackage(textless, textless),
      /b 1\.0\.0 \(MIT\) comes without the text/,
    );
  });
});
