// Frames of HTTP/2 as tests write and read them, without the code under test.

const NAMES = [
  'DATA',
  'HEADERS',
  'PRIORITY',
  'RST_STREAM',
  'SETTINGS',
  'PUSH_PROMISE',
  'PING',
  'GOAWAY',
  'WINDOW_UPDATE',
  'CONTINUATION',
] as const;
const HEAD_BYTES = 9;

export type FrameName = (typeof NAMES)[number];

/** The flags of frames; some share a bit. */
export const FLAG = { ack: 1, endStream: 1, endHeaders: 4, padded: 8, priority: 32 } as const;

export const PREFACE_BYTES: Buffer = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

export interface SeenFrame {
  readonly name: FrameName;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** One frame; a text is Latin-1. */
export function frame(
  name: FrameName,
  streamId: number,
  payload: Buffer | string = '',
  flags = 0,
): Buffer {
  return rawFrame(NAMES.indexOf(name), streamId, payload, flags);
}

/** One frame of any type. */
export function rawFrame(
  type: number,
  streamId: number,
  payload: Buffer | string = '',
  flags = 0,
): Buffer {
  const bytes = typeof payload === 'string' ? Buffer.from(payload, 'latin1') : payload;
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(bytes.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, bytes]);
}

export function uint32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [at, value] of values.entries()) bytes.writeUInt32BE(value, 4 * at);
  return bytes;
}

/** The payload of a SETTINGS frame. */
export function settings(...entries: readonly (readonly [id: number, value: number])[]): Buffer {
  return Buffer.concat(
    entries.map(([id, value]) => {
      const bytes = Buffer.alloc(6);
      bytes.writeUInt16BE(id, 0);
      bytes.writeUInt32BE(value, 2);
      return bytes;
    }),
  );
}

/** The frames in `bytes`, which end with one. */
export function framesIn(bytes: Buffer): SeenFrame[] {
  const frames: SeenFrame[] = [];
  for (let at = 0; at < bytes.length;) {
    const length = bytes.readUIntBE(at, 3);
    const name = NAMES[bytes.readUInt8(at + 3)];
    const end = at + HEAD_BYTES + length;
    if (name === undefined || end > bytes.length) throw new Error('no frames');
    frames.push({
      name,
      flags: bytes.readUInt8(at + 4),
      streamId: bytes.readUInt32BE(at + 5),
      payload: bytes.subarray(at + HEAD_BYTES, end),
    });
    at = end;
  }
  return frames;
}

/** One line for each frame: its name, its stream, and what it says. */
export function shown(bytes: Buffer): string[] {
  return framesIn(bytes).map((one) => `${one.name} ${one.streamId}${said(one)}`);
}

function said({ name, flags, payload }: SeenFrame): string {
  const isAck = (flags & FLAG.ack) !== 0;
  const text = SAYS[name]?.(payload) ?? `${payload.length} bytes`;
  if (name === 'SETTINGS' || name === 'PING') return `${isAck ? ' ACK' : ''} ${text}`;
  const isEnd = (name === 'DATA' || name === 'HEADERS') && (flags & FLAG.endStream) !== 0;
  return `${name === 'HEADERS' ? '' : ` ${text}`}${isEnd ? ' END' : ''}`;
}

const SAYS: Readonly<Partial<Record<FrameName, (payload: Buffer) => string>>> = {
  DATA: (payload) => payload.toString('latin1'),
  RST_STREAM: (payload) => `by ${payload.readUInt32BE(0)}`,
  GOAWAY: (payload) =>
    `after ${payload.readUInt32BE(0)} by ${payload.readUInt32BE(4)} ${payload.toString('latin1', 8)}`,
  WINDOW_UPDATE: (payload) => `+${payload.readUInt32BE(0)}`,
  SETTINGS: (payload) => payload.toString('hex'),
  PING: (payload) => payload.toString('hex'),
};
