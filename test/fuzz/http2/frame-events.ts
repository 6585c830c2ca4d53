// The bytes of one direction of an HTTP/2 connection as what they say (RFC 9113 §4, §6), for the oracle: strict, and
// written apart from the sidecar's. Field blocks come whole.
import { Http2Fault } from './fault.ts';

/** What one frame says, or a field block of several. */
export type FrameEvent =
  | {
      readonly kind: 'fields';
      readonly streamId: number;
      readonly endsStream: boolean;
      readonly block: Buffer;
      readonly frames: number;
      /** Whether the stream is said to depend on itself. */
      readonly isDoubtful: boolean;
    }
  | {
      readonly kind: 'data';
      readonly streamId: number;
      readonly endsStream: boolean;
      readonly data: string;
      /** With the padding: what counts against windows. */
      readonly length: number;
    }
  | { readonly kind: 'reset'; readonly streamId: number; readonly code: number }
  | { readonly kind: 'settings'; readonly entries: readonly Setting[] | undefined }
  | { readonly kind: 'ping'; readonly isAck: boolean; readonly data: string }
  | { readonly kind: 'goaway'; readonly lastId: number; readonly code: number }
  | { readonly kind: 'window'; readonly streamId: number; readonly by: number }
  /** Some end the connection for it, some only the stream, some do nothing. */
  | { readonly kind: 'doubtful'; readonly what: string };

type Setting = readonly [id: number, value: number];

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

const HEAD_BYTES = 9;
const MAX_FRAME_BYTES = 16_384;
const NAMES = [
  ...['DATA', 'HEADERS', 'PRIORITY', 'RST_STREAM', 'SETTINGS', 'PUSH_PROMISE', 'PING', 'GOAWAY'],
  ...['WINDOW_UPDATE', 'CONTINUATION'],
] as const;
type FrameName = (typeof NAMES)[number];
const END_STREAM = 0x1;
const ACK = 0x1;
const END_HEADERS = 0x4;
const PADDED = 0x8;
const PRIORITY = 0x20;
const ON_STREAM: ReadonlySet<FrameName> = new Set([
  ...(['DATA', 'HEADERS', 'PRIORITY', 'RST_STREAM', 'CONTINUATION'] as const),
]);
const ON_CONNECTION: ReadonlySet<FrameName> = new Set(['SETTINGS', 'PING', 'GOAWAY'] as const);

interface OpenBlock {
  readonly streamId: number;
  readonly endsStream: boolean;
  readonly isDoubtful: boolean;
  readonly parts: Buffer[];
}

/** Bytes in, events out; a connection error is thrown behind the events before it. */
export class FrameEvents {
  #rest: Buffer = Buffer.alloc(0);
  #block: OpenBlock | undefined;
  #isFirst = true;

  /** Whether a frame or a field block has begun and not ended. */
  get isWithin(): boolean {
    return this.#rest.length > 0 || this.#block !== undefined;
  }

  *read(bytes: Buffer): Generator<FrameEvent> {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    for (let frame = this.#next(); frame !== undefined; frame = this.#next()) {
      const event = this.#eventOf(frame);
      if (event !== undefined) yield event;
    }
  }

  #next(): Frame | undefined {
    const bytes = this.#rest;
    if (bytes.length < HEAD_BYTES) return undefined;
    const length = bytes.readUIntBE(0, 3);
    if (length > MAX_FRAME_BYTES) throw new Http2Fault(`a frame of ${length} bytes`);
    const end = HEAD_BYTES + length;
    if (bytes.length < end) return undefined;
    this.#rest = bytes.subarray(end);
    return {
      type: bytes.readUInt8(3),
      flags: bytes.readUInt8(4),
      streamId: bytes.readUInt32BE(5) & 0x7f_ff_ff_ff,
      payload: bytes.subarray(HEAD_BYTES, end),
    };
  }

  #eventOf(frame: Frame): FrameEvent | undefined {
    const name = NAMES[frame.type];
    if (this.#block !== undefined && name !== 'CONTINUATION') {
      throw new Http2Fault('a field block that breaks off');
    }
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    // Ignored, but no preface (RFC 9113 §3.4).
    if (name === undefined) return isFirst ? { kind: 'doubtful', what: 'unknown' } : undefined;
    checkStream(name, frame.streamId);
    return name === 'HEADERS' || name === 'CONTINUATION' || name === 'DATA'
      ? this.#messageEvent(name, frame)
      : controlEvent(name, frame);
  }

  #messageEvent(name: 'HEADERS' | 'CONTINUATION' | 'DATA', frame: Frame): FrameEvent | undefined {
    const { streamId, payload } = frame;
    if (name === 'DATA') {
      const data = unpadded(frame).toString('latin1');
      return {
        kind: 'data',
        streamId,
        endsStream: has(frame, END_STREAM),
        data,
        length: payload.length,
      };
    }
    if (name === 'HEADERS') {
      this.#block = openedBlock(frame);
    } else if (this.#block?.streamId === streamId) this.#block.parts.push(payload);
    else throw new Http2Fault('CONTINUATION of nothing');
    return has(frame, END_HEADERS) ? this.#wholeBlock() : undefined;
  }

  #wholeBlock(): FrameEvent | undefined {
    const block = this.#block;
    this.#block = undefined;
    if (block === undefined) return undefined;
    const { parts, ...rest } = block;
    return { kind: 'fields', ...rest, block: Buffer.concat(parts), frames: parts.length };
  }
}

function has({ flags }: Frame, flag: number): boolean {
  return (flags & flag) !== 0;
}

function checkStream(name: FrameName, streamId: number): void {
  if (ON_STREAM.has(name) && streamId === 0) throw new Http2Fault(`${name} on no stream`);
  if (ON_CONNECTION.has(name) && streamId !== 0) throw new Http2Fault(`${name} on a stream`);
}

function unpadded(frame: Frame): Buffer {
  const { payload } = frame;
  if (!has(frame, PADDED)) return payload;
  const padding = payload[0];
  if (padding === undefined || padding >= payload.length) throw new Http2Fault('too much padding');
  return payload.subarray(1, payload.length - padding);
}

function openedBlock(frame: Frame): OpenBlock {
  const { streamId } = frame;
  const part = unpadded(frame);
  const endsStream = has(frame, END_STREAM);
  if (!has(frame, PRIORITY)) return { streamId, endsStream, isDoubtful: false, parts: [part] };
  if (part.length < 5) throw new Http2Fault('HEADERS without their priority');
  return {
    streamId,
    endsStream,
    isDoubtful: isOnItself(streamId, part),
    parts: [part.subarray(5)],
  };
}

// An error once (RFC 7540 §5.3.1); what a dependency says is not gone by any more (RFC 9113 §5.3.2).
function isOnItself(streamId: number, priority: Buffer): boolean {
  return (priority.readUInt32BE(0) & 0x7f_ff_ff_ff) === streamId;
}

function controlEvent(
  name: Exclude<FrameName, 'HEADERS' | 'CONTINUATION' | 'DATA'>,
  frame: Frame,
): FrameEvent | undefined {
  const { streamId, payload } = frame;
  switch (name) {
    case 'PRIORITY':
      return priorityEvent(frame);
    case 'RST_STREAM':
      checkLength(name, payload, 4);
      return { kind: 'reset', streamId, code: payload.readUInt32BE(0) };
    case 'SETTINGS':
      return settingsEvent(frame);
    case 'PUSH_PROMISE':
      throw new Http2Fault('PUSH_PROMISE');
    case 'PING':
      checkLength(name, payload, 8);
      return { kind: 'ping', isAck: has(frame, ACK), data: payload.toString('latin1') };
    case 'GOAWAY':
      if (payload.length < 8) throw new Http2Fault('GOAWAY without a code');
      return {
        kind: 'goaway',
        lastId: payload.readUInt32BE(0) & 0x7f_ff_ff_ff,
        code: payload.readUInt32BE(4),
      };
    case 'WINDOW_UPDATE':
      checkLength(name, payload, 4);
      return { kind: 'window', streamId, by: payload.readUInt32BE(0) & 0x7f_ff_ff_ff };
  }
}

// A wrong length is an error of the stream (RFC 9113 §6.3), and any may be taken for one of the connection (§5.4.1).
function priorityEvent({ streamId, payload }: Frame): FrameEvent | undefined {
  if (payload.length !== 5)
    return { kind: 'doubtful', what: `PRIORITY of ${payload.length} bytes` };
  if (!isOnItself(streamId, payload)) return undefined;
  return { kind: 'doubtful', what: 'a stream that depends on itself' };
}

function settingsEvent(frame: Frame): FrameEvent {
  const { payload } = frame;
  if (has(frame, ACK)) {
    checkLength('SETTINGS with ACK', payload, 0);
    return { kind: 'settings', entries: undefined };
  }
  if (payload.length % 6 !== 0) throw new Http2Fault(`SETTINGS of ${payload.length} bytes`);
  const entries = Array.from({ length: payload.length / 6 }, (_, i): Setting => {
    return [payload.readUInt16BE(6 * i), payload.readUInt32BE(6 * i + 2)];
  });
  return { kind: 'settings', entries };
}

function checkLength(name: string, payload: Buffer, length: number): void {
  if (payload.length !== length) throw new Http2Fault(`${name} of ${payload.length} bytes`);
}
