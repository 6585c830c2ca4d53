// Hot path. What goes out on one connection: frames in order, data as far as the windows of the peer allow (RFC 9113 §5.2),
// streams in turns.
import { Backlog } from './backlog.ts';
import type { ErrorCode } from './error-code.ts';
import type { Field } from './field.ts';
import { MAX_FRAME_BYTES } from './frame.ts';
import { HpackEncoder } from './hpack-encoder.ts';
import { Output } from './output.ts';
import { DEFAULT_WINDOW } from './settings.ts';
import type { Stream } from './stream.ts';

export class Sender {
  readonly output: Output = new Output();
  readonly encoder: HpackEncoder = new HpackEncoder();
  /** Data waits while the socket has not taken what was written before. */
  isBlocked = false;
  /** Bytes of data that the peer still takes on all streams together. */
  window: number = DEFAULT_WINDOW;
  /** What waits here counts there, with what waits on other connections. */
  backlog: Backlog = new Backlog(Infinity);
  /** Bytes of data that wait. */
  #waitingBytes = 0;
  /** Streams with data that waits, or with an end behind it. */
  readonly #waiting = new Set<Stream>();
  readonly #onOver: (stream: Stream) => void;

  /** `onOver` is told of each stream whose both sides have ended. */
  constructor(onOver: (stream: Stream) => void) {
    this.#onOver = onOver;
  }

  /** Whether more waits, with others, than there is room for. */
  get isOverfull(): boolean {
    return this.backlog.isTooMuch(this.#waitingBytes);
  }

  /** A message's fields, or those of an interim response. */
  fields(stream: Stream, fields: readonly Field[], endsStream: boolean): void {
    this.output.fields(stream.id, this.encoder.encode(fields), endsStream);
    if (endsStream) this.#ended(stream);
  }

  /** Sends `bytes`; what has to wait is copied. */
  data(stream: Stream, bytes: Buffer, endsStream: boolean): void {
    if (stream.localEnding) return;
    stream.localEnding = endsStream;
    const sent = stream.queue.length > 0 ? 0 : this.#sendNow(stream, bytes);
    if (sent < bytes.length) this.#enqueue(stream, Buffer.from(bytes.subarray(sent)));
    else this.#endIfDone(stream);
    if (sent > 0) stream.owner.onSent(stream, sent);
  }

  /** Ends the message, with trailers or without. */
  end(stream: Stream, trailers: readonly Field[] | undefined): void {
    if (stream.localEnding) return;
    stream.localEnding = true;
    stream.trailers = trailers;
    this.#endIfDone(stream);
  }

  reset(stream: Stream, code: ErrorCode): void {
    this.output.reset(stream.id, code);
    this.forget(stream);
  }

  /** Nothing more is sent on the stream. */
  forget(stream: Stream): void {
    this.#waiting.delete(stream);
    stream.localEnding = true;
    stream.localEnded = true;
    stream.queue.length = 0;
    this.#count(stream, -stream.queuedBytes);
  }

  /** Sends what waits, as far as it may go: a frame of each stream in turn. */
  pump(): void {
    let isMoving = this.#waiting.size > 0;
    while (isMoving && !this.isBlocked && this.window > 0) {
      isMoving = false;
      for (const stream of this.#waiting) {
        const [first = NOTHING] = stream.queue;
        const sent = this.#sendFrame(stream, first, 0);
        if (sent === 0) continue;
        isMoving = true;
        this.#take(stream, first, sent);
      }
    }
  }

  #take(stream: Stream, first: Buffer, sent: number): void {
    this.#count(stream, -sent);
    if (sent === first.length) stream.queue.shift();
    else stream.queue[0] = first.subarray(sent);
    if (stream.queue.length === 0) this.#waiting.delete(stream);
    this.#endIfDone(stream);
    stream.owner.onSent(stream, sent);
  }

  #enqueue(stream: Stream, bytes: Buffer): void {
    stream.queue.push(bytes);
    this.#count(stream, bytes.length);
    this.#waiting.add(stream);
  }

  #count(stream: Stream, bytes: number): void {
    stream.queuedBytes += bytes;
    this.#waitingBytes += bytes;
    this.backlog.bytes += bytes;
  }

  #sendNow(stream: Stream, bytes: Buffer): number {
    let sent = 0;
    while (sent < bytes.length) {
      const length = this.#sendFrame(stream, bytes, sent);
      if (length === 0) break;
      sent += length;
    }
    return sent;
  }

  /** One frame of `bytes` from `from` on; 0 when nothing may be sent. The end goes with the last byte. */
  #sendFrame(stream: Stream, bytes: Buffer, from: number): number {
    if (this.isBlocked) return 0;
    const most = Math.min(this.window, stream.sendWindow, MAX_FRAME_BYTES);
    const length = Math.min(most, bytes.length - from);
    if (length <= 0) return 0;
    const to = from + length;
    const isLast = to === bytes.length && stream.queue.length <= 1;
    const endsStream = isLast && stream.localEnding && stream.trailers === undefined;
    this.output.data(stream.id, bytes, { from, to, endsStream });
    this.window -= length;
    stream.sendWindow -= length;
    if (endsStream) stream.endSent = true;
    return length;
  }

  #endIfDone(stream: Stream): void {
    if (!stream.localEnding || stream.localEnded || stream.queue.length > 0) return;
    if (!stream.endSent) this.#sendEnd(stream);
    this.#ended(stream);
  }

  #sendEnd({ id, trailers }: Stream): void {
    if (trailers === undefined) this.output.data(id, NOTHING, ONLY_END);
    else this.output.fields(id, this.encoder.encode(trailers), true);
  }

  #ended(stream: Stream): void {
    stream.localEnding = true;
    stream.localEnded = true;
    if (stream.remoteEnded) this.#onOver(stream);
  }
}

const NOTHING = Buffer.alloc(0);
const ONLY_END = { from: 0, to: 0, endsStream: true } as const;
