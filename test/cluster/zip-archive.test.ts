import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { crc32, deflateRawSync } from 'node:zlib';
import { readZipEntry } from './zip-archive.ts';

interface Entry {
  readonly name: string;
  readonly text: string;
  readonly isDeflated: boolean;
}

/** As APPNOTE.TXT 4.3 lays an archive out; sizes stand in the directory only, as of a streamed one. */
function archiveOf(entries: readonly Entry[]): Buffer {
  const locals: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, text, isDeflated } of entries) {
    const data = isDeflated ? deflateRawSync(text) : Buffer.from(text);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04_03_4b_50, 0);
    local.writeUInt16LE(name.length, 26);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02_01_4b_50, 0);
    entry.writeUInt16LE(isDeflated ? 8 : 0, 10);
    entry.writeUInt32LE(crc32(text), 16);
    entry.writeUInt32LE(data.length, 20);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt32LE(offset, 42);
    locals.push(local, Buffer.from(name), data);
    directory.push(entry, Buffer.from(name));
    offset += local.length + name.length + data.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06_05_4b_50, 0);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, ...directory, end]);
}

describe('a zip archive', () => {
  const archive = archiveOf([
    { name: 'helm/LICENSE', text: 'free', isDeflated: false },
    { name: 'helm/helm', text: 'a program '.repeat(1_000), isDeflated: true },
  ]);

  it('gives stored and deflated files as they were', () => {
    assert.equal(readZipEntry(archive, 'helm/LICENSE').toString(), 'free');
    assert.equal(readZipEntry(archive, 'helm/helm').toString(), 'a program '.repeat(1_000));
  });

  it('says which file it does not hold', () => {
    assert.throws(() => readZipEntry(archive, 'helm/hel'), /holds no helm\/hel/);
  });

  it('is told from something else', () => {
    assert.throws(() => readZipEntry(Buffer.from('<html>'), 'helm/helm'), /not a zip archive/);
  });
});
