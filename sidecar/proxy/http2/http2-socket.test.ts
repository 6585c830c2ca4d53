import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { describe, it } from 'node:test';
import {
  FLAG,
  frame,
  PREFACE_BYTES,
  settings,
  uint32,
} from '../../../test/support/http2-frames.ts';
import { Endpoint } from '../../http2/endpoint.ts';
import type { Stream } from '../../http2/stream.ts';
import { Http2Socket } from './http2-socket.ts';

/** A socket whose kernel takes one write at a time, when the test says so. */
class SlowSocket extends Socket {
  #takeOne: (() => void) | undefined;

  override _write(_bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#takeOne = done;
  }

  override _writev(_bytes: unknown, done: () => void): void {
    this.#takeOne = done;
  }

  /** What was written while it was busy is one write more. */
  async passOn(): Promise<void> {
    this.#takeOne?.();
    await new Promise(setImmediate);
  }
}

describe('the socket of an HTTP/2 connection', () => {
  it('that has taken a part, and answers a PING meanwhile, still sends what waits when it has taken all', async () => {
    const streams: Stream[] = [];
    const endpoint = new Endpoint(
      {
        ...{ role: 'server', maxConcurrentStreams: 1, maxHeaderListBytes: 1_000 },
        ...{ maxHeaderLines: 10, initialWindow: 65_535, connectionWindow: 100_000 },
        creditsAtOnce: false,
      },
      {
        onRequest: (stream) => streams.push(stream),
        onGoAway: () => undefined,
        onOver: () => undefined,
      },
    );
    const socket = new SlowSocket();
    const wire = new Http2Socket(socket, endpoint, () => undefined);
    socket.on('drain', () => {
      wire.onDrain();
    });
    endpoint.receive(
      Buffer.concat([
        ...[PREFACE_BYTES, frame('SETTINGS', 0, settings([4, 1_000_000]))],
        frame('WINDOW_UPDATE', 0, uint32(1_000_000)),
        frame('HEADERS', 1, '\x82\x84\x86\x01\x01a', FLAG.endHeaders | FLAG.endStream),
      ]),
    );
    const [stream] = streams;
    assert(stream !== undefined);
    for (const length of [200_000, 100_000]) {
      endpoint.sender.data(stream, Buffer.alloc(length), false);
      wire.flush();
    }
    endpoint.sender.data(stream, Buffer.alloc(1_000), true);
    assert.equal(stream.queuedBytes, 1_000);

    await socket.passOn();
    endpoint.receive(frame('PING', 0, '12345678'));
    wire.flush();
    await socket.passOn();
    await socket.passOn();

    assert.equal(stream.queuedBytes, 0);
  });
});
