import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FLAG, frame, type FrameName, rawFrame, uint32 } from '../../test/support/http2-frames.ts';
import { FRAME_SIZE_ERROR, PROTOCOL_ERROR } from './error-code.ts';
import { blockOf, checkDependency, checkShape, unpadded } from './frame-shape.ts';
import { FrameReader } from './frame.ts';

function reading(bytes: Buffer): FrameReader {
  const reader = new FrameReader();
  reader.push(bytes);
  assert(reader.next());
  return reader;
}

function check(name: FrameName, streamId: number, length: number): () => void {
  return () => {
    checkShape(reading(frame(name, streamId, Buffer.alloc(length))));
  };
}

/** The lengths that are right and those that are wrong, and the streams. */
const SHAPES: Readonly<
  Record<FrameName, readonly [right: number[], wrong: number[], streams: 'both' | 'none' | 'one']>
> = {
  DATA: [[0, 1, 16_384], [], 'one'],
  HEADERS: [[0, 1, 16_384], [], 'one'],
  PRIORITY: [[5], [0, 4, 6], 'one'],
  RST_STREAM: [[4], [0, 3, 5], 'one'],
  SETTINGS: [[0, 6, 12], [], 'none'],
  PUSH_PROMISE: [[0, 4], [], 'both'],
  PING: [[8], [0, 7, 9], 'none'],
  GOAWAY: [[8, 9, 100], [0, 7], 'none'],
  WINDOW_UPDATE: [[4], [0, 3, 5], 'both'],
  CONTINUATION: [[0, 1, 16_384], [], 'one'],
};

describe('the shape of a frame', () => {
  for (const [name, [right, wrong, streams]] of Object.entries(SHAPES) as [
    FrameName,
    (typeof SHAPES)[FrameName],
  ][]) {
    const streamId = streams === 'none' ? 0 : 1;

    it(`is right for ${name} of ${right.join(', ')} bytes`, () => {
      for (const length of right) check(name, streamId, length)();
    });

    it(`is wrong for ${name} of another length`, () => {
      for (const length of wrong) {
        assert.throws(check(name, streamId, length), {
          code: FRAME_SIZE_ERROR,
          message: `${name} of ${length} bytes`,
        });
      }
    });

    it(`lets ${name} stand on ${streams === 'both' ? 'any stream' : `${streams} only`}`, () => {
      const other = check(name, 1 - streamId, right[0] ?? 0);
      if (streams === 'both') other();
      else assert.throws(other, { code: PROTOCOL_ERROR, message: new RegExp(`^${name} on `) });
    });
  }

  it('is right for frames of unknown types', () => {
    for (const streamId of [0, 1]) checkShape(reading(rawFrame(10, streamId, 'whatever', 0xff)));
  });
});

describe('padding', () => {
  it('is taken off, with its length', () => {
    const { padded } = FLAG;
    assert.equal(unpadded(reading(frame('DATA', 1, 'abc'))).toString(), 'abc');
    assert.equal(unpadded(reading(frame('DATA', 1, '\x02abc\0\0', padded))).toString(), 'abc');
    assert.equal(unpadded(reading(frame('DATA', 1, '\0abc', padded))).toString(), 'abc');
    assert.equal(unpadded(reading(frame('DATA', 1, '\x02\0\0', padded))).length, 0);
    assert.equal(unpadded(reading(frame('DATA', 1, '\0', padded))).length, 0);
  });

  it('is a fault when there is more of it than of the frame', () => {
    for (const payload of ['', '\x01', '\x03\0\0', '\xff']) {
      assert.throws(() => unpadded(reading(frame('DATA', 1, payload, FLAG.padded))), {
        code: PROTOCOL_ERROR,
      });
    }
  });
});

describe('the field block in HEADERS', () => {
  const { padded, priority } = FLAG;
  const onThree = Buffer.concat([uint32(0x80_00_00_03), Buffer.from([200])]);

  it('stands behind the priority and before the padding', () => {
    const plain = frame('HEADERS', 1, 'block');
    const withPriority = frame(
      'HEADERS',
      1,
      Buffer.concat([onThree, Buffer.from('block')]),
      priority,
    );
    const withBoth = frame(
      'HEADERS',
      1,
      Buffer.concat([Buffer.from([1]), onThree, Buffer.from('block\0')]),
      priority | padded,
    );
    for (const one of [plain, withPriority, withBoth]) {
      assert.equal(blockOf(reading(one)).toString(), 'block');
    }
    assert.equal(blockOf(reading(frame('HEADERS', 1, onThree, priority))).length, 0);
  });

  it('is a fault when the priority breaks off', () => {
    assert.throws(() => blockOf(reading(frame('HEADERS', 1, 'abcd', priority))), {
      code: FRAME_SIZE_ERROR,
    });
    const cut = Buffer.concat([Buffer.from([1]), onThree]);
    assert.throws(() => blockOf(reading(frame('HEADERS', 1, cut, priority | padded))), {
      code: FRAME_SIZE_ERROR,
    });
  });

  it('is a fault when the stream depends on itself', () => {
    assert.throws(() => blockOf(reading(frame('HEADERS', 3, onThree, priority))), {
      code: PROTOCOL_ERROR,
      message: 'stream 3 depends on itself',
    });
    checkDependency(1, onThree);
    assert.throws(
      () => {
        checkDependency(3, onThree);
      },
      { code: PROTOCOL_ERROR },
    );
  });
});
