// What holds of a frame by itself, whatever stands before it: its length, and whether it belongs to a stream
// (RFC 9113 §6).
import { ConnectionError, FRAME_SIZE_ERROR, PROTOCOL_ERROR } from './error-code.ts';
import {
  CONTINUATION,
  DATA,
  GOAWAY,
  HEADERS,
  PADDED,
  PING,
  PRIORITY,
  PUSH_PROMISE,
  readUint31,
  RST_STREAM,
  SETTINGS,
  WINDOW_UPDATE,
  type FrameReader,
} from './frame.ts';

const PRIORITIZED = 0x20;
/** The dependency and the weight that a HEADERS frame may begin with. */
const PRIORITY_BYTES = 5;

interface Shape {
  readonly name: string;
  /** Undefined = both. */
  readonly onStream?: boolean;
  /** Exact, in bytes. */
  readonly length?: number;
  readonly minLength?: number;
}

const SHAPES: readonly (Shape | undefined)[] = shapes([
  [DATA, { name: 'DATA', onStream: true }],
  [HEADERS, { name: 'HEADERS', onStream: true }],
  [PRIORITY, { name: 'PRIORITY', onStream: true, length: PRIORITY_BYTES }],
  [RST_STREAM, { name: 'RST_STREAM', onStream: true, length: 4 }],
  [SETTINGS, { name: 'SETTINGS', onStream: false }],
  // Never allowed by us, so its inside is not looked at.
  [PUSH_PROMISE, { name: 'PUSH_PROMISE' }],
  [PING, { name: 'PING', onStream: false, length: 8 }],
  [GOAWAY, { name: 'GOAWAY', onStream: false, minLength: 8 }],
  [WINDOW_UPDATE, { name: 'WINDOW_UPDATE', length: 4 }],
  [CONTINUATION, { name: 'CONTINUATION', onStream: true }],
]);

function shapes(entries: readonly (readonly [type: number, shape: Shape])[]): Shape[] {
  const list: Shape[] = [];
  for (const [type, shape] of entries) list[type] = shape;
  return list;
}

/** Throws ConnectionError when the frame cannot be right. Frames of an unknown type pass: they are ignored. */
export function checkShape({ type, streamId, payload }: FrameReader): void {
  const shape = SHAPES[type];
  if (shape === undefined) return;
  const { name, onStream, length, minLength } = shape;
  if (onStream !== undefined && onStream !== streamId > 0) {
    throw new ConnectionError(PROTOCOL_ERROR, `${name} on ${onStream ? 'no' : 'a'} stream`);
  }
  const isWrong =
    length === undefined ? payload.length < (minLength ?? 0) : payload.length !== length;
  if (isWrong) {
    throw new ConnectionError(FRAME_SIZE_ERROR, `${name} of ${payload.length} bytes`);
  }
}

/** The payload of DATA or HEADERS without its padding, which says its length first. */
export function unpadded({ flags, payload }: FrameReader): Buffer {
  if ((flags & PADDED) === 0) return payload;
  const padding = payload[0];
  if (padding === undefined || padding >= payload.length) {
    throw new ConnectionError(PROTOCOL_ERROR, 'more padding than frame');
  }
  return payload.subarray(1, payload.length - padding);
}

/** The part of a field block in a HEADERS frame. Priorities are read, and not gone by (RFC 9113 §5.3). */
export function blockOf(frame: FrameReader): Buffer {
  const part = unpadded(frame);
  if ((frame.flags & PRIORITIZED) === 0) return part;
  if (part.length < PRIORITY_BYTES) {
    throw new ConnectionError(FRAME_SIZE_ERROR, 'HEADERS without their priority');
  }
  checkDependency(frame.streamId, part);
  return part.subarray(PRIORITY_BYTES);
}

/** `priority` begins with the stream that `streamId` depends on. */
export function checkDependency(streamId: number, priority: Buffer): void {
  if (readUint31(priority, 0) === streamId) {
    throw new ConnectionError(PROTOCOL_ERROR, `stream ${streamId} depends on itself`);
  }
}
