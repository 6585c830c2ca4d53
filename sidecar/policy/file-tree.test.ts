import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { describe, it } from 'node:test';
import {
  EMPTY_FOLDER,
  MOST_DEPTH,
  MOST_ENTRIES,
  MOST_FILE_BYTES,
  MOST_FILES,
  readPolicyFiles,
} from './file-tree.ts';

class Folder implements AsyncDisposable {
  readonly path: string;

  private constructor(at: string) {
    this.path = at;
  }

  static async open(): Promise<Folder> {
    return new Folder(await mkdtemp(path.join(tmpdir(), 'weir-tree-')));
  }

  async write(name: string, text = name): Promise<string> {
    const file = path.join(this.path, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, text);
    return file;
  }

  async names(): Promise<string[]> {
    const files = await readPolicyFiles([this.path]);
    return files.map((file) => path.relative(this.path, file.path));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}

describe('a folder of policies', () => {
  it('gives its YAML and JSON files, those of folders below too, in the order of their paths', async () => {
    await using folder = await Folder.open();
    for (const name of ['b.yml', 'a.yaml', 'c/d.json', 'notes.txt', 'e.YAML'])
      await folder.write(name);

    assert.deepEqual(await folder.names(), ['a.yaml', 'b.yml', path.join('c', 'd.json'), 'e.YAML']);
  });

  it('gives the visible names of a mounted ConfigMap once', async () => {
    await using folder = await Folder.open();
    await folder.write('..2026_01/p.yaml');
    await symlink('..2026_01', path.join(folder.path, '..data'));
    await symlink('..data/p.yaml', path.join(folder.path, 'p.yaml'));

    assert.deepEqual(await folder.names(), ['p.yaml']);
  });

  it('changes the identity of a file with every save', async () => {
    await using folder = await Folder.open();
    const file = await folder.write('a.yaml', 'one');
    const [before] = await readPolicyFiles([file]);
    await folder.write('a.yaml', 'another');

    const [after] = await readPolicyFiles([file]);

    assert.notEqual(after?.identity, before?.identity);
    assert.deepEqual([before?.text, after?.text, after?.isNamed], ['one', 'another', true]);
  });

  it('names each file once, however it is reached', async () => {
    await using folder = await Folder.open();
    const file = await folder.write('a.yaml');

    assert.equal((await readPolicyFiles([folder.path, file, file])).length, 1);
  });

  it('says why a file gives no text', async () => {
    await using folder = await Folder.open();
    await mkdir(path.join(folder.path, 'folder.yaml'));
    const large = await folder.write('large.yaml');
    await truncate(large, MOST_FILE_BYTES + 1);
    const fits = await folder.write('z-fits.yaml');
    await truncate(fits, MOST_FILE_BYTES);

    const [folderFile, largeFile, fittingFile] = await readPolicyFiles([folder.path]);
    const [missing] = await readPolicyFiles([path.join(folder.path, 'missing.yaml')]);

    assert.equal(folderFile?.failure, 'is not a file');
    assert.match(largeFile?.failure ?? '', /at most 2097152/);
    assert.equal(fittingFile?.failure, undefined);
    assert.match(missing?.failure ?? '', /^cannot be read: ENOENT/);
  });

  it('reads as many files as the bound, and reports the next', async () => {
    await using folder = await Folder.open();
    const name = (i: number): string => `p${String(i).padStart(5, '0')}.yaml`;
    for (let i = 0; i < MOST_FILES; i += 1) await folder.write(name(i), '');
    const atBound = await readPolicyFiles([folder.path]);
    await folder.write(name(MOST_FILES), '');
    await folder.write(name(MOST_FILES + 1), '');

    const beyond = await readPolicyFiles([folder.path]);

    assert.equal(atBound.at(-1)?.failure, undefined);
    assert.equal(beyond.length, MOST_FILES + 1);
    assert.match(beyond.at(-1)?.failure ?? '', /at most 1000 are read/);
  });

  it('is an entry of its own when it holds no policy file', async () => {
    await using folder = await Folder.open();
    await folder.write('notes.txt');

    const [only, ...more] = await readPolicyFiles([folder.path]);

    assert.deepEqual([only?.path, only?.failure, more], [folder.path, EMPTY_FOLDER, []]);
  });

  it('visits a real folder once, through whatever links it is reached', async () => {
    await using folder = await Folder.open();
    for (const name of ['a.yaml', 'sub/b.yaml']) await folder.write(name);
    for (const name of ['loop', 'other-loop']) await symlink('.', path.join(folder.path, name));
    await symlink('..', path.join(folder.path, 'sub', 'up'));
    await symlink('sub', path.join(folder.path, 'twin'));

    assert.deepEqual(await folder.names(), ['a.yaml', path.join('sub', 'b.yaml')]);
  });

  it('follows folders as deep as the bound, and reports the next', async () => {
    await using folder = await Folder.open();
    const deepest = path.join(...Array<string>(MOST_DEPTH).fill('d'));
    await folder.write(path.join(deepest, 'a.yaml'));
    await folder.write(path.join(deepest, 'd', 'b.yaml'));

    const files = await readPolicyFiles([folder.path]);

    const found = files.map((file) => [path.relative(folder.path, file.path), file.failure]);
    assert.deepEqual(found, [
      [path.join(deepest, 'a.yaml'), undefined],
      [path.join(deepest, 'd'), `is more than ${MOST_DEPTH} folders deep`],
    ]);
  });

  it('looks at as many entries as the bound, and reports that there are more', async () => {
    await using folder = await Folder.open();
    await folder.write('a.yaml');
    for (let i = 1; i < MOST_ENTRIES; i += 1) {
      await mkdir(path.join(folder.path, `.${i}`));
    }
    const atBound = await readPolicyFiles([folder.path]);
    await mkdir(path.join(folder.path, '.one-more'));

    const beyond = await readPolicyFiles([folder.path]);

    assert.deepEqual(
      atBound.map((file) => file.failure),
      [undefined],
    );
    assert.match(beyond[0]?.failure ?? '', /beyond 10000/);
  });

  it(
    'reports a folder below that cannot be read, beside the others',
    { skip: process.getuid?.() === 0 && 'root reads every folder' },
    async () => {
      await using folder = await Folder.open();
      for (const name of ['a.yaml', 'sub/b.yaml']) await folder.write(name);
      const sub = path.join(folder.path, 'sub');
      await chmod(sub, 0o000);

      const [good, closed] = await readPolicyFiles([folder.path]);

      await chmod(sub, 0o700);
      assert.equal(good?.failure, undefined);
      assert.equal(closed?.path, sub);
      assert.match(closed.failure ?? '', /^cannot be read: EACCES/);
    },
  );
});
