import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FLAG, framesIn, shown } from '../../test/support/http2-frames.ts';
import { Output } from './output.ts';

function data(output: Output, streamId: number, text: string): void {
  output.data(streamId, Buffer.from(text), { from: 0, to: text.length, endsStream: false });
}

describe('an output', () => {
  it('gathers frames of all kinds one behind the other', () => {
    const output = new Output();
    output.settings(Buffer.from('000400000001', 'hex'));
    output.settingsAck();
    output.pingAck(Buffer.from('abcdefgh'));
    output.fields(1, Buffer.from('block'), false);
    output.data(1, Buffer.from('abcdef'), { from: 1, to: 4, endsStream: false });
    output.data(1, Buffer.alloc(0), { from: 0, to: 0, endsStream: true });
    output.fields(3, Buffer.alloc(0), true);
    output.windowUpdate(0, 2 ** 31 - 1);
    output.reset(3, 8);
    output.goAway(5, 0xff_ff_ff_ff, 'why');
    assert.equal(output.length, output.written.length);
    assert.deepEqual(shown(output.written), [
      'SETTINGS 0 000400000001',
      'SETTINGS 0 ACK ',
      'PING 0 ACK 6162636465666768',
      'HEADERS 1',
      'DATA 1 bcd',
      'DATA 1  END',
      'HEADERS 3 END',
      'WINDOW_UPDATE 0 +2147483647',
      'RST_STREAM 3 by 8',
      'GOAWAY 0 after 5 by 4294967295 why',
    ]);
  });

  it('splits a field block into frames that everybody takes', () => {
    for (const length of [0, 1, 16_384, 16_385, 40_000]) {
      const output = new Output();
      const block = Buffer.alloc(length, 'abc');
      output.fields(1, block, true);
      const frames = framesIn(output.written);
      assert.deepEqual(Buffer.concat(frames.map(({ payload }) => payload)), block);
      assert.equal(frames.length, Math.max(1, Math.ceil(length / 16_384)));
      for (const [at, { name, flags, streamId }] of frames.entries()) {
        const end = at === frames.length - 1 ? FLAG.endHeaders : 0;
        assert.equal(name, at === 0 ? 'HEADERS' : 'CONTINUATION');
        assert.equal(flags, at === 0 ? end | FLAG.endStream : end);
        assert.equal(streamId, 1);
      }
    }
  });

  it('keeps what it has when it grows', () => {
    const output = new Output();
    const expected: string[] = [];
    for (let at = 0; at < 30; at += 1) {
      data(output, 1, String(at).repeat(1_000));
      expected.push(`DATA 1 ${String(at).repeat(1_000)}`);
    }
    assert.deepEqual(shown(output.written), expected);
  });

  it('begins anew when it is cleared', () => {
    for (const isFree of [true, false]) {
      const output = new Output();
      data(output, 1, 'before');
      output.clear(isFree);
      assert.equal(output.length, 0);
      data(output, 1, 'after');
      assert.deepEqual(shown(output.written), ['DATA 1 after']);
    }
  });

  it('does not touch bytes that are still read', () => {
    const [output, other] = [new Output(), new Output()];
    data(output, 1, 'before');
    const { written } = output;
    output.clear(false);
    data(output, 1, 'after!');
    data(other, 1, 'others');
    assert.deepEqual(shown(written), ['DATA 1 before']);
  });

  it('lends buffers that are free to others', () => {
    const [output, other] = [new Output(), new Output()];
    data(output, 1, 'before');
    const { buffer } = output.written;
    output.clear(true);
    data(other, 1, 'after!');
    assert.equal(other.written.buffer, buffer);
  });

  it('keeps no buffer that somebody needed for much at once, and no more than some', () => {
    const output = new Output();
    data(output, 1, 'x'.repeat(40_000));
    const { buffer } = output.written;
    output.clear(true);
    const many = Array.from({ length: 20 }, () => new Output());
    for (const one of many) data(one, 1, 'x');
    assert(!many.some(({ written }) => written.buffer === buffer));
    for (const one of many) one.clear(true);
    for (const one of many) data(one, 1, 'y');
    for (const one of many) assert.deepEqual(shown(one.written), ['DATA 1 y']);
    assert.equal(new Set(many.map(({ written }) => written.buffer)).size, 20);
  });

  it('may be cleared when there is nothing in it', () => {
    new Output().clear(true);
    const output = new Output();
    output.clear(true);
    data(output, 1, 'all of it');
    assert.deepEqual(shown(output.written), ['DATA 1 all of it']);
  });
});
