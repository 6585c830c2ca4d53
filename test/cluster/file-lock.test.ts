import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { describe, it } from 'node:test';
import { lockFile } from './file-lock.ts';

async function openFolder(): Promise<AsyncDisposable & { readonly file: string }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-lock-'));
  return {
    file: path.join(folder, 'lock'),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}

describe('a file lock', () => {
  it('lets the next one in when its owner gives it back, and tells it whom it waits for', async () => {
    await using folder = await openFolder();
    const owners: number[] = [];
    const first = await lockFile(folder.file, () => undefined);
    const told = Promise.withResolvers<undefined>();
    const second = lockFile(folder.file, (owner) => {
      owners.push(owner);
      told.resolve(undefined);
    });
    await told.promise;

    await first[Symbol.asyncDispose]();
    await (await second)[Symbol.asyncDispose]();

    assert.deepEqual(owners, [process.pid]);
  });

  it('is taken over from an owner that died', async () => {
    await using folder = await openFolder();
    const dead = spawn('true');
    await once(dead, 'exit');
    await writeFile(folder.file, String(dead.pid));

    const lock = await lockFile(folder.file, () => undefined);

    assert.equal(await readFile(folder.file, 'utf8'), String(process.pid));
    await lock[Symbol.asyncDispose]();
  });
});
