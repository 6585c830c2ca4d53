import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FLAG, frame } from '../../test/support/http2-frames.ts';
import { ENHANCE_YOUR_CALM, PROTOCOL_ERROR } from './error-code.ts';
import { FieldBlocks, type WholeBlock } from './field-blocks.ts';
import { FrameReader } from './frame.ts';

const { endHeaders, endStream } = FLAG;

function reading(bytes: Buffer): FrameReader {
  const reader = new FrameReader();
  reader.push(bytes);
  assert(reader.next());
  return reader;
}

function begin(blocks: FieldBlocks, text: string, flags = 0): WholeBlock | undefined {
  const bytes = frame('HEADERS', 1, text, flags);
  const whole = blocks.begin(reading(bytes));
  if (whole === undefined) bytes.fill(0xff);
  return whole;
}

function proceed(blocks: FieldBlocks, text: string, flags = 0): WholeBlock | undefined {
  const bytes = frame('CONTINUATION', 1, text, flags);
  const whole = blocks.proceed(reading(bytes));
  bytes.fill(0xff);
  return whole;
}

describe('field blocks', () => {
  it('may be one frame', () => {
    const blocks = new FieldBlocks(100);
    const whole = begin(blocks, 'abc', endHeaders);
    assert.deepEqual(whole, { streamId: 1, endsStream: false, bytes: Buffer.from('abc') });
    assert(!blocks.isOpen);
    assert.equal(begin(blocks, '', endHeaders | endStream)?.endsStream, true);
  });

  it('are put together of all their frames, copied as they come', () => {
    const blocks = new FieldBlocks(100);
    assert.equal(begin(blocks, 'abc', endStream), undefined);
    assert(blocks.isOpen);
    assert.equal(proceed(blocks, 'def'), undefined);
    assert.equal(proceed(blocks, ''), undefined);
    const whole = proceed(blocks, 'ghi', endHeaders);
    assert.deepEqual(whole, { streamId: 1, endsStream: true, bytes: Buffer.from('abcdefghi') });
    assert(!blocks.isOpen);
  });

  it('may not be continued when none is open, or on another stream', () => {
    const blocks = new FieldBlocks(100);
    const fault = { code: PROTOCOL_ERROR, message: 'CONTINUATION of nothing' };
    assert.throws(() => proceed(blocks, 'abc', endHeaders), fault);
    begin(blocks, 'abc');
    const other = reading(frame('CONTINUATION', 3, 'def', endHeaders));
    assert.throws(() => blocks.proceed(other), fault);
  });

  it('have an end in bytes', () => {
    const blocks = new FieldBlocks(6);
    begin(blocks, 'abc');
    proceed(blocks, 'def');
    assert.throws(() => proceed(blocks, 'g', endHeaders), { code: ENHANCE_YOUR_CALM });
  });

  it('have an end in frames, be they empty', () => {
    const blocks = new FieldBlocks(100);
    begin(blocks, '');
    for (let frames = 2; frames <= 64; frames += 1) proceed(blocks, '');
    assert.throws(() => proceed(blocks, ''), { code: ENHANCE_YOUR_CALM });
  });
});
