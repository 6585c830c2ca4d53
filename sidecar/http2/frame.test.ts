import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { frame, rawFrame } from '../../test/support/http2-frames.ts';
import { partitions } from '../../test/support/splits.ts';
import { FRAME_SIZE_ERROR } from './error-code.ts';
import {
  FRAME_HEAD_BYTES,
  FrameReader,
  MAX_FRAME_BYTES,
  readUint31,
  readUint32,
  writeFrameHead,
  writeUint32,
} from './frame.ts';

/** The frames that are read from the parts; each part is overwritten when it has been read, as a socket's buffer is. */
function read(parts: readonly string[]): string[] {
  const reader = new FrameReader();
  const seen: string[] = [];
  for (const part of parts) {
    const bytes = Buffer.from(part, 'latin1');
    reader.push(bytes);
    while (reader.next()) {
      const { type, flags, streamId, payload } = reader;
      seen.push(`${type} ${flags} ${streamId} ${payload.toString('latin1')}`);
    }
    reader.keep();
    bytes.fill(0xff);
  }
  if (reader.pendingHeadBytes > 0) seen.push(`${reader.pendingHeadBytes} of a head`);
  return seen;
}

describe('a reader of frames', () => {
  it('reads the same however the bytes are cut', () => {
    const text = Buffer.concat([
      frame('DATA', 5, 'some data', 1),
      frame('SETTINGS', 0),
      frame('PING', 0, '12345678'),
      rawFrame(0xfe, 0x7f_ff_ff_ff, 'unknown', 0xff),
    ]).toString('latin1');
    for (const parts of partitions(text)) {
      assert.deepEqual(read(parts), [
        '0 1 5 some data',
        '4 0 0 ',
        '6 0 0 12345678',
        '254 255 2147483647 unknown',
      ]);
    }
  });

  it('does not read the reserved bit of a stream', () => {
    assert.deepEqual(read([frame('DATA', 0x80_00_00_05).toString('latin1')]), ['0 0 5 ']);
  });

  it('knows how much it keeps of a frame with fields that has not ended', () => {
    for (const name of ['HEADERS', 'CONTINUATION'] as const) {
      const text = frame(name, 1, 'abc').toString('latin1');
      for (let at = 1; at < text.length; at += 1) {
        // The type is the fourth byte.
        assert.deepEqual(read([text.slice(0, at)]), at < 4 ? [] : [`${at} of a head`]);
      }
      assert.deepEqual(read([text, text.slice(0, 5)]).slice(1), ['5 of a head']);
    }
    assert.deepEqual(read([frame('DATA', 1, 'abc').toString('latin1').slice(0, -1)]), []);
  });

  it('takes frames of 16 384 bytes and refuses larger ones by their head alone', () => {
    const largest = rawFrame(0, 1, 'x'.repeat(MAX_FRAME_BYTES)).toString('latin1');
    assert.equal(read([largest])[0]?.length, 'd d d '.length + MAX_FRAME_BYTES);
    const head = Buffer.alloc(FRAME_HEAD_BYTES);
    writeFrameHead(head, 0, { type: 0, flags: 0, streamId: 1 }, MAX_FRAME_BYTES + 1);
    const reader = new FrameReader();
    reader.push(head);
    assert.throws(() => reader.next(), {
      code: FRAME_SIZE_ERROR,
      message: 'a frame of 16385 bytes',
    });
  });
});

describe('the head of a frame', () => {
  it('is written as it is read', () => {
    const bytes = Buffer.alloc(FRAME_HEAD_BYTES + 2);
    const head = { type: 9, flags: 4, streamId: 0x12_34_56_78 };
    writeFrameHead(bytes, 2, head, 0x01_02_03);
    assert.equal(bytes.toString('hex'), '0000010203090412345678');
  });
});

describe('numbers of frames', () => {
  it('have 32 bits without a sign', () => {
    const bytes = Buffer.alloc(5);
    for (const value of [0, 1, 0x7f_ff_ff_ff, 0x80_00_00_00, 0xff_ff_ff_ff, 0x12_34_56_78]) {
      writeUint32(bytes, 1, value);
      assert.equal(bytes.readUInt32BE(1), value);
      assert.equal(readUint32(bytes, 1), value);
      assert.equal(readUint31(bytes, 1), value % 2 ** 31);
    }
  });
});
