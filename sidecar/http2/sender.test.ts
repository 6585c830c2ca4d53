import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { shown } from '../../test/support/http2-frames.ts';
import { fieldsOf } from '../../test/support/http2-side.ts';
import { Backlog } from './backlog.ts';
import { MAX_FRAME_BYTES } from './frame.ts';
import { Sender } from './sender.ts';
import { NOBODY, Stream, type StreamOwner } from './stream.ts';

interface Setting {
  readonly sender: Sender;
  readonly told: string[];
  readonly open: (id: number, window: number) => Stream;
  /** The frames since the last call. */
  readonly frames: () => string[];
}

function setting(): Setting {
  const told: string[] = [];
  const sender = new Sender(({ id }) => told.push(`over ${id}`));
  const owner: StreamOwner = {
    ...NOBODY,
    onSent: ({ id }, bytes) => told.push(`sent ${id} ${bytes}`),
  };
  return {
    sender,
    told,
    open: (id, window) => new Stream(id, owner, { send: window, receive: 0 }),
    frames: () => {
      const frames = shown(sender.output.written);
      sender.output.clear(false);
      return frames;
    },
  };
}

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');
const trailers = fieldsOf('a: b');

describe('data to send', () => {
  it('goes out at once, the end with its last byte', () => {
    const { sender, told, open, frames } = setting();
    const stream = open(1, 100);
    sender.fields(stream, trailers, false);
    sender.data(stream, bytes('abc'), false);
    assert(!stream.localEnding);
    sender.data(stream, bytes('def'), true);
    assert.deepEqual(frames(), ['HEADERS 1', 'DATA 1 abc', 'DATA 1 def END']);
    assert.deepEqual(told, ['sent 1 3', 'sent 1 3']);
    assert(stream.localEnded);
    assert.equal(stream.sendWindow, 94);
    assert.equal(sender.window, 65_535 - 6);
  });

  it('goes out in frames that everybody takes', () => {
    const { sender, open, frames } = setting();
    const stream = open(1, 100_000);
    sender.data(stream, Buffer.alloc(2 * MAX_FRAME_BYTES + 1), true);
    assert.deepEqual(
      frames().map((frame) => [frame.length - 'DATA 1 '.length, frame.endsWith(' END')]),
      [
        [MAX_FRAME_BYTES, false],
        [MAX_FRAME_BYTES, false],
        [1 + ' END'.length, true],
      ],
    );
  });

  it('is copied when it has to wait for the window of its stream', () => {
    const { sender, told, open, frames } = setting();
    const stream = open(1, 2);
    const body = bytes('abcdef');
    sender.data(stream, body, true);
    body.fill('x');
    assert.deepEqual(frames(), ['DATA 1 ab']);
    assert.equal(stream.queuedBytes, 4);
    assert(stream.localEnding && !stream.localEnded);
    stream.sendWindow += 3;
    sender.pump();
    assert.deepEqual(frames(), ['DATA 1 cde']);
    stream.sendWindow += 3;
    sender.pump();
    assert.deepEqual(frames(), ['DATA 1 f END']);
    assert.equal(stream.queuedBytes, 0);
    assert.equal(stream.sendWindow, 2);
    assert.deepEqual(told, ['sent 1 2', 'sent 1 3', 'sent 1 1']);
  });

  it('waits for the window of the connection', () => {
    const { sender, open, frames } = setting();
    sender.window = 2;
    const stream = open(1, 100);
    sender.data(stream, bytes('abc'), false);
    sender.pump();
    assert.deepEqual(frames(), ['DATA 1 ab']);
    sender.window = 5;
    sender.pump();
    assert.deepEqual(frames(), ['DATA 1 c']);
    assert.equal(sender.window, 4);
  });

  it('waits while a window is below zero', () => {
    const { sender, open, frames } = setting();
    const stream = open(1, -5);
    sender.data(stream, bytes('abc'), false);
    stream.sendWindow += 5;
    sender.pump();
    assert.deepEqual(frames(), []);
    stream.sendWindow += 3;
    sender.pump();
    assert.deepEqual(frames(), ['DATA 1 abc']);
  });

  it('waits while the socket is blocked', () => {
    const { sender, open, frames } = setting();
    sender.isBlocked = true;
    const stream = open(1, 100);
    sender.fields(stream, trailers, false);
    sender.data(stream, bytes('abc'), false);
    sender.pump();
    assert.deepEqual(frames(), ['HEADERS 1'], 'all but data goes out');
    sender.isBlocked = false;
    sender.pump();
    assert.deepEqual(frames(), ['DATA 1 abc']);
  });

  it('stays in order behind data that waits', () => {
    const { sender, open, frames } = setting();
    const stream = open(1, 1);
    sender.data(stream, bytes('ab'), false);
    stream.sendWindow = 100;
    sender.data(stream, bytes('cd'), false);
    sender.data(stream, bytes('ef'), true);
    assert.deepEqual(frames(), ['DATA 1 a']);
    sender.pump();
    assert.deepEqual(frames(), ['DATA 1 b', 'DATA 1 cd', 'DATA 1 ef END']);
  });

  it('may be nothing', () => {
    const { sender, told, open, frames } = setting();
    const stream = open(1, 0);
    sender.data(stream, bytes(''), false);
    assert.deepEqual(frames(), []);
    sender.data(stream, bytes(''), true);
    assert.deepEqual(frames(), ['DATA 1  END'], 'an end takes no window');
    assert.deepEqual(told, []);
  });

  it('is dropped behind the end', () => {
    const { sender, open, frames } = setting();
    const stream = open(1, 100);
    sender.end(stream, undefined);
    sender.data(stream, bytes('abc'), true);
    sender.end(stream, trailers);
    assert.deepEqual(frames(), ['DATA 1  END']);
  });
});

describe('the end of a message', () => {
  it('is its only frame of fields', () => {
    const { sender, told, open, frames } = setting();
    const stream = open(1, 100);
    stream.remoteEnded = true;
    sender.fields(stream, trailers, true);
    assert.deepEqual(frames(), ['HEADERS 1 END']);
    assert(stream.localEnding && stream.localEnded);
    assert.deepEqual(told, ['over 1']);
  });

  it('goes with the last byte that waits', () => {
    const { sender, told, open, frames } = setting();
    const stream = open(1, 1);
    stream.remoteEnded = true;
    sender.data(stream, bytes('abc'), false);
    sender.end(stream, undefined);
    assert.deepEqual(frames(), ['DATA 1 a']);
    stream.sendWindow = 2;
    sender.pump();
    assert.deepEqual(frames(), ['DATA 1 bc END']);
    assert.deepEqual(told, ['sent 1 1', 'over 1', 'sent 1 2']);
  });

  it('is trailers behind the last byte that waits', () => {
    const { sender, open, frames } = setting();
    const stream = open(1, 1);
    sender.data(stream, bytes('abc'), false);
    sender.end(stream, trailers);
    assert.deepEqual(frames(), ['DATA 1 a']);
    stream.sendWindow = 2;
    sender.pump();
    assert.deepEqual(frames(), ['DATA 1 bc', 'HEADERS 1 END']);
    assert(stream.localEnded);
  });

  it('is trailers at once when nothing waits', () => {
    const { sender, open, frames } = setting();
    const stream = open(1, 0);
    sender.end(stream, trailers);
    assert.deepEqual(frames(), ['HEADERS 1 END']);
  });

  it('is no end of the stream while the other side goes on', () => {
    const { sender, told, open } = setting();
    sender.end(open(1, 0), undefined);
    assert.deepEqual(told, []);
  });
});

describe('streams that wait', () => {
  it('get a frame each in turn', () => {
    const { sender, open, frames } = setting();
    sender.window = 0;
    const [one, two] = [open(1, 100_000), open(3, 100_000)];
    sender.data(one, Buffer.alloc(2 * MAX_FRAME_BYTES, 'a'), true);
    sender.data(two, Buffer.alloc(MAX_FRAME_BYTES + 1, 'b'), true);
    sender.window = 100_000;
    sender.pump();
    assert.deepEqual(
      frames().map((frame) => [frame.slice(0, 8), frame.length]),
      [
        ['DATA 1 a', MAX_FRAME_BYTES + 7],
        ['DATA 3 b', MAX_FRAME_BYTES + 7],
        ['DATA 1 a', MAX_FRAME_BYTES + 11],
        ['DATA 3 b', 12],
      ],
    );
  });

  it('do not hold up others by a window of their own', () => {
    const { sender, open, frames } = setting();
    sender.isBlocked = true;
    const [one, two] = [open(1, 0), open(3, 10)];
    sender.data(one, bytes('abc'), false);
    sender.data(two, bytes('def'), false);
    sender.isBlocked = false;
    sender.pump();
    assert.deepEqual(frames(), ['DATA 3 def']);
  });

  it('stop when the window of the connection is used up', () => {
    const { sender, open, frames } = setting();
    sender.window = 0;
    const [one, two] = [open(1, 10), open(3, 10)];
    sender.data(one, bytes('abc'), false);
    sender.data(two, bytes('def'), false);
    sender.window = 4;
    sender.pump();
    assert.deepEqual(frames(), ['DATA 1 abc', 'DATA 3 d']);
  });

  it('may be given more while they are served', () => {
    const { sender, frames } = setting();
    let left = 3;
    const owner: StreamOwner = {
      ...NOBODY,
      onSent: (stream) => {
        left -= 1;
        if (left > 0) sender.data(stream, bytes(`part ${left}`), left === 1);
      },
    };
    sender.isBlocked = true;
    sender.data(new Stream(1, owner, { send: 100, receive: 0 }), bytes('first'), false);
    sender.isBlocked = false;
    sender.pump();
    assert.deepEqual(frames(), ['DATA 1 first', 'DATA 1 part 2', 'DATA 1 part 1 END']);
  });
});

describe('what waits on several connections', () => {
  it('counts together until it is sent, or its stream is over', () => {
    const backlog = new Backlog(5);
    const [first, second] = [setting(), setting()];
    first.sender.backlog = backlog;
    second.sender.backlog = backlog;
    const [one, two] = [first.open(1, 0), second.open(1, 0)];
    first.sender.data(one, bytes('abc'), false);
    const areOverfull = (): boolean[] => [first.sender.isOverfull, second.sender.isOverfull];
    assert.deepEqual(areOverfull(), [false, false]);
    second.sender.data(two, bytes('defg'), false);
    assert.deepEqual(areOverfull(), [true, true]);
    assert.equal(backlog.bytes, 7);
    one.sendWindow = 2;
    first.sender.pump();
    assert.equal(backlog.bytes, 5);
    second.sender.reset(two, 8);
    assert.equal(backlog.bytes, 1);
    assert.deepEqual(areOverfull(), [false, false]);
  });
});

describe('a stream that is reset', () => {
  it('sends nothing more, not even what waits', () => {
    const { sender, told, open, frames } = setting();
    const stream = open(1, 1);
    sender.data(stream, bytes('abc'), false);
    sender.reset(stream, 8);
    stream.sendWindow = 100;
    sender.pump();
    sender.data(stream, bytes('def'), true);
    sender.end(stream, trailers);
    assert.deepEqual(frames(), ['DATA 1 a', 'RST_STREAM 1 by 8']);
    assert.deepEqual(told, ['sent 1 1']);
    assert.equal(stream.queuedBytes, 0);
  });
});
