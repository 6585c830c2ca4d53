// The two messages of grpc.health.v1.Health/Check in their gRPC frames. One field each way: a text that names the
// service, and a number that says how it is.
import { Buffer } from 'node:buffer';

/** A byte that says whether the message is compressed, and its length in four. */
const FRAME_HEAD_BYTES = 5;
/** Field 1, a text. */
const SERVICE_TAG = 0x0a;
/** Field 1, a number. */
const STATUS_TAG = 0x08;
/** Kinds of a field's value: the low three bits of its tag. */
const VARINT = 0;
const LENGTH_DELIMITED = 2;

/** `HealthCheckResponse.ServingStatus`. */
const STATUSES = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'] as const;
export type ServingStatus = (typeof STATUSES)[number];

/** A framed `HealthCheckRequest`. */
export function encodeHealthRequest(service: string): Uint8Array {
  const name = Buffer.from(service);
  const message =
    name.length === 0 ? name : Buffer.from([SERVICE_TAG, ...varint(name.length), ...name]);
  const frame = Buffer.alloc(FRAME_HEAD_BYTES + message.length);
  frame.writeUInt32BE(message.length, 1);
  message.copy(frame, FRAME_HEAD_BYTES);
  return frame;
}

/** Status of a framed `HealthCheckResponse`; undefined when the bytes are not one, or compressed. */
export function decodeHealthResponse(bytes: Uint8Array): ServingStatus | undefined {
  const frame = Buffer.from(bytes);
  if (frame.length < FRAME_HEAD_BYTES || frame[0] !== 0) return undefined;
  const end = FRAME_HEAD_BYTES + frame.readUInt32BE(1);
  if (frame.length < end) return undefined;
  // A field that has its default is not written.
  let status = 0;
  let at = FRAME_HEAD_BYTES;
  while (at < end) {
    const field = readField(frame, at, end);
    if (field === undefined) return undefined;
    if (field.tag === STATUS_TAG) status = field.value;
    at = field.next;
  }
  return STATUSES[status];
}

interface Field {
  readonly tag: number;
  /** Of a number; else its length. */
  readonly value: number;
  readonly next: number;
}

function readField(frame: Buffer, at: number, end: number): Field | undefined {
  const tag = readVarint(frame, at, end);
  if (tag === undefined) return undefined;
  const value = readVarint(frame, tag.next, end);
  if (value === undefined) return undefined;
  switch (tag.value & 7) {
    case VARINT:
      return { tag: tag.value, ...value };
    case LENGTH_DELIMITED: {
      const next = value.next + value.value;
      return next > end ? undefined : { tag: tag.value, value: value.value, next };
    }
    default:
      return undefined;
  }
}

/** Four bytes hold 2^28: more than any length or status of these messages. */
const VARINT_BYTES_MAX = 4;

function readVarint(
  frame: Buffer,
  at: number,
  end: number,
): { readonly value: number; readonly next: number } | undefined {
  let value = 0;
  for (let index = 0; index < VARINT_BYTES_MAX && at + index < end; index += 1) {
    const byte = frame[at + index] ?? 0;
    value |= (byte & 0x7f) << (7 * index);
    if (byte < 0x80) return { value, next: at + index + 1 };
  }
  return undefined;
}

function varint(value: number): readonly number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)];
}
