// Hot path. Frames on their way out, one behind the other in one buffer: many streams share a write.
import type { ErrorCode } from './error-code.ts';
import {
  ACK,
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  FRAME_HEAD_BYTES,
  GOAWAY,
  HEADERS,
  MAX_FRAME_BYTES,
  PING,
  RST_STREAM,
  SETTINGS,
  WINDOW_UPDATE,
  writeFrameHead,
  writeUint32,
} from './frame.ts';

/** Most turns of the event loop write less; what is larger makes a larger buffer. */
const BUFFER_BYTES = 16_384;
/** Larger ones are not kept: they were for somebody who sends much at once. */
const MAX_KEPT_BYTES = 4 * BUFFER_BYTES;
const MAX_SPARE = 16;

/** Buffers of outputs that have nothing to say: a connection at rest keeps none. */
const spare: Buffer[] = [];
const NOTHING = Buffer.alloc(0);

export class Output {
  #buffer: Buffer = NOTHING;
  #length = 0;

  /** Bytes that wait to be taken. */
  get length(): number {
    return this.#length;
  }

  /** What has been written since the last `clear`. */
  get written(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  /** What was written is on its way; `isFree` = nobody reads its bytes any more. */
  clear(isFree: boolean): void {
    const { length } = this.#buffer;
    // The one of an output that had nothing to say is empty: whoever got it would write into nothing.
    const isKept = length >= BUFFER_BYTES && length <= MAX_KEPT_BYTES;
    if (isFree && isKept && spare.length < MAX_SPARE) spare.push(this.#buffer);
    this.#buffer = NOTHING;
    this.#length = 0;
  }

  bytes(bytes: Buffer): void {
    this.#reserve(bytes.length);
    bytes.copy(this.#buffer, this.#length);
    this.#length += bytes.length;
  }

  /** A field block, in as many frames as it needs. */
  fields(streamId: number, block: Buffer, endsStream: boolean): void {
    let type = HEADERS;
    let flags = endsStream ? END_STREAM : 0;
    let from = 0;
    do {
      const to = Math.min(from + MAX_FRAME_BYTES, block.length);
      if (to === block.length) flags |= END_HEADERS;
      this.#head(type, flags, streamId, to - from);
      block.copy(this.#buffer, this.#length, from, to);
      this.#length += to - from;
      type = CONTINUATION;
      flags = 0;
      from = to;
    } while (from < block.length);
  }

  /** At most MAX_FRAME_BYTES of `bytes` from `from` on. */
  data(streamId: number, bytes: Buffer, range: DataRange): void {
    const length = range.to - range.from;
    this.#head(DATA, range.endsStream ? END_STREAM : 0, streamId, length);
    bytes.copy(this.#buffer, this.#length, range.from, range.to);
    this.#length += length;
  }

  reset(streamId: number, code: ErrorCode): void {
    this.#head(RST_STREAM, 0, streamId, 4);
    this.#uint32(code);
  }

  windowUpdate(streamId: number, bytes: number): void {
    this.#head(WINDOW_UPDATE, 0, streamId, 4);
    this.#uint32(bytes);
  }

  settings(payload: Buffer): void {
    this.#head(SETTINGS, 0, 0, payload.length);
    this.bytes(payload);
  }

  settingsAck(): void {
    this.#head(SETTINGS, ACK, 0, 0);
  }

  pingAck(payload: Buffer): void {
    this.#head(PING, ACK, 0, payload.length);
    this.bytes(payload);
  }

  goAway(lastStreamId: number, code: ErrorCode, debug: string): void {
    const text = Buffer.from(debug, 'latin1');
    this.#head(GOAWAY, 0, 0, 8 + text.length);
    this.#uint32(lastStreamId);
    this.#uint32(code);
    this.bytes(text);
  }

  #head(type: number, flags: number, streamId: number, length: number): void {
    this.#reserve(FRAME_HEAD_BYTES + length);
    writeFrameHead(this.#buffer, this.#length, { type, flags, streamId }, length);
    this.#length += FRAME_HEAD_BYTES;
  }

  #uint32(value: number): void {
    writeUint32(this.#buffer, this.#length, value);
    this.#length += 4;
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#buffer.length) return;
    const larger =
      needed <= BUFFER_BYTES
        ? (spare.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES))
        : Buffer.allocUnsafeSlow(2 * needed);
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }
}

export interface DataRange {
  readonly from: number;
  readonly to: number;
  readonly endsStream: boolean;
}
