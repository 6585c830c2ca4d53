// Frames (RFC 9113 §4, §6): the nine bytes in front of each, and the splitting of a stream of bytes into them.
import { byteAt } from './byte-at.ts';
import { ConnectionError, FRAME_SIZE_ERROR } from './error-code.ts';

export const DATA = 0x0;
export const HEADERS = 0x1;
export const PRIORITY = 0x2;
export const RST_STREAM = 0x3;
export const SETTINGS = 0x4;
export const PUSH_PROMISE = 0x5;
export const PING = 0x6;
export const GOAWAY = 0x7;
export const WINDOW_UPDATE = 0x8;
export const CONTINUATION = 0x9;

export const END_STREAM = 0x1;
export const ACK = 0x1;
export const END_HEADERS = 0x4;
export const PADDED = 0x8;

export const FRAME_HEAD_BYTES = 9;
/** What everybody may send (SETTINGS_MAX_FRAME_SIZE); more is neither offered nor used. */
export const MAX_FRAME_BYTES = 16_384;

/** In a GOAWAY: no stream is refused yet, but the next ones had better go elsewhere (RFC 9113 §6.8). */
export const LAST_STREAM_ID = 0x7f_ff_ff_ff;

/** What a client sends first (RFC 9113 §3.4). */
export const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

export interface FrameHead {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
}

/** Writes the nine bytes at `at`. */
export function writeFrameHead(to: Buffer, at: number, head: FrameHead, length: number): void {
  to[at] = length >>> 16;
  to[at + 1] = (length >>> 8) & 0xff;
  to[at + 2] = length & 0xff;
  to[at + 3] = head.type;
  to[at + 4] = head.flags;
  writeUint32(to, at + 5, head.streamId);
}

export function writeUint32(to: Buffer, at: number, value: number): void {
  to[at] = value >>> 24;
  to[at + 1] = (value >>> 16) & 0xff;
  to[at + 2] = (value >>> 8) & 0xff;
  to[at + 3] = value & 0xff;
}

/** The number without its first bit, which is reserved everywhere it stands. */
export function readUint31(from: Buffer, at: number): number {
  return readUint32(from, at) & 0x7f_ff_ff_ff;
}

export function readUint32(from: Buffer, at: number): number {
  return (
    (byteAt(from, at) * 0x1_00_00_00 +
      ((byteAt(from, at + 1) << 16) | (byteAt(from, at + 2) << 8) | byteAt(from, at + 3))) >>>
    0
  );
}

/** One frame at a time; the fields stand until the next `next`. */
export class FrameReader implements FrameHead {
  type = 0;
  flags = 0;
  streamId = 0;
  /** Valid until the bytes given to `push` are overwritten. */
  payload: Buffer = NOTHING;
  #bytes: Buffer = NOTHING;
  #at = 0;

  /** Bytes of a frame with fields that has begun and not ended. */
  get pendingHeadBytes(): number {
    const type = this.#bytes[3];
    return type === HEADERS || type === CONTINUATION ? this.#bytes.length : 0;
  }

  /** Takes bytes that have come. What does not make a frame yet is copied by `keep`. */
  push(bytes: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? bytes : Buffer.concat([this.#bytes, bytes]);
    this.#at = 0;
  }

  /** Whether there was another whole frame. Throws ConnectionError when one is too large. */
  next(): boolean {
    const bytes = this.#bytes;
    const at = this.#at;
    if (bytes.length - at < FRAME_HEAD_BYTES) return false;
    const length = (byteAt(bytes, at) << 16) | (byteAt(bytes, at + 1) << 8) | byteAt(bytes, at + 2);
    if (length > MAX_FRAME_BYTES) {
      throw new ConnectionError(FRAME_SIZE_ERROR, `a frame of ${length} bytes`);
    }
    const end = at + FRAME_HEAD_BYTES + length;
    if (bytes.length < end) return false;
    this.type = byteAt(bytes, at + 3);
    this.flags = byteAt(bytes, at + 4);
    this.streamId = readUint31(bytes, at + 5);
    this.payload = length === 0 ? NOTHING : bytes.subarray(at + FRAME_HEAD_BYTES, end);
    this.#at = end;
    return true;
  }

  /** Forgets what is left. */
  drop(): void {
    this.#bytes = NOTHING;
    this.#at = 0;
  }

  /** Copies what is left: the next read of anybody overwrites the bytes. */
  keep(): void {
    this.#bytes =
      this.#at === this.#bytes.length ? NOTHING : Buffer.from(this.#bytes.subarray(this.#at));
    this.#at = 0;
  }
}

const NOTHING = Buffer.alloc(0);
