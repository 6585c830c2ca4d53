// Reads files out of a zip archive (APPNOTE.TXT 4.3): Node inflates, but knows no archives, and not every machine
// has an unzip. Only what the one archive we read needs: no encryption, no zip64, stored or deflated.
import { inflateRawSync } from 'node:zlib';

const END_SIGNATURE = 0x06_05_4b_50;
const ENTRY_SIGNATURE = 0x02_01_4b_50;
/** Without its comment; the comment may have 65 535 bytes. */
const END_SIZE = 22;
const ENTRY_SIZE = 46;
const LOCAL_SIZE = 30;
const STORED = 0;
const DEFLATED = 8;

/** The contents of the file `name`. Throws when there is none or its method is unknown. */
export function readZipEntry(archive: Buffer, name: string): Buffer {
  const end = archive.lastIndexOf(littleEndian(END_SIGNATURE));
  if (end < 0 || end + END_SIZE > archive.length) throw new Error('not a zip archive');
  const count = archive.readUInt16LE(end + 10);
  let offset = archive.readUInt32LE(end + 16);
  for (let i = 0; i < count; i += 1) {
    if (archive.readUInt32LE(offset) !== ENTRY_SIGNATURE) throw new Error('broken zip directory');
    const nameLength = archive.readUInt16LE(offset + 28);
    const found = archive.toString('utf8', offset + ENTRY_SIZE, offset + ENTRY_SIZE + nameLength);
    if (found === name) return contentsOf(archive, offset);
    const extra = archive.readUInt16LE(offset + 30) + archive.readUInt16LE(offset + 32);
    offset += ENTRY_SIZE + nameLength + extra;
  }
  throw new Error(`the archive holds no ${name}`);
}

/** Sizes come from the directory: in the local header they may be 0 until a descriptor that follows the data. */
function contentsOf(archive: Buffer, entry: number): Buffer {
  const method = archive.readUInt16LE(entry + 10);
  const size = archive.readUInt32LE(entry + 20);
  const local = archive.readUInt32LE(entry + 42);
  const names = archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
  const start = local + LOCAL_SIZE + names;
  const data = archive.subarray(start, start + size);
  if (method === STORED) return data;
  if (method === DEFLATED) return inflateRawSync(data);
  throw new Error(`unknown zip method ${method}`);
}

function littleEndian(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
