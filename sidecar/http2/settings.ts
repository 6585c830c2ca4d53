// What the two ends of a connection may ask of each other (RFC 9113 §6.5, RFC 8441 §3).
import { byteAt } from './byte-at.ts';
import {
  ConnectionError,
  type ErrorCode,
  FLOW_CONTROL_ERROR,
  FRAME_SIZE_ERROR,
  PROTOCOL_ERROR,
} from './error-code.ts';
import { MAX_FRAME_BYTES, readUint32, writeUint32 } from './frame.ts';

const HEADER_TABLE_SIZE = 0x1;
const ENABLE_PUSH = 0x2;
const MAX_CONCURRENT_STREAMS = 0x3;
const INITIAL_WINDOW_SIZE = 0x4;
const MAX_FRAME_SIZE = 0x5;
const MAX_HEADER_LIST_SIZE = 0x6;
const ENABLE_CONNECT_PROTOCOL = 0x8;

export const DEFAULT_WINDOW = 65_535;
export const MAX_WINDOW = 0x7f_ff_ff_ff;
const MAX_FRAME_SIZE_LIMIT = 0xff_ff_ff;
const ENTRY_BYTES = 6;
/** Before the peer has said how many streams it takes: what everybody is advised to take (RFC 9113 §6.5.2). */
const STREAMS_UNTIL_TOLD = 100;

/** What the peer asked for. */
export class PeerSettings {
  headerTableBytes = 4_096;
  maxConcurrentStreams: number = STREAMS_UNTIL_TOLD;
  initialWindow: number = DEFAULT_WINDOW;
  /** Whether CONNECT may name a protocol. */
  takesConnectProtocol = false;
  /** Whether SETTINGS has come at all. */
  isTold = false;

  /** Takes the payload of a SETTINGS frame. Throws ConnectionError. */
  apply(payload: Buffer, from: 'client' | 'server'): void {
    if (payload.length % ENTRY_BYTES !== 0) {
      throw new ConnectionError(FRAME_SIZE_ERROR, `SETTINGS of ${payload.length} bytes`);
    }
    // A peer that does not limit the streams means it.
    if (!this.isTold) this.maxConcurrentStreams = MAX_WINDOW;
    this.isTold = true;
    for (let at = 0; at < payload.length; at += ENTRY_BYTES) {
      const id = (byteAt(payload, at) << 8) | byteAt(payload, at + 1);
      this.#applyOne(id, readUint32(payload, at + 2), from);
    }
  }

  #applyOne(id: number, value: number, from: 'client' | 'server'): void {
    switch (id) {
      case HEADER_TABLE_SIZE:
        this.headerTableBytes = value;
        return;
      case ENABLE_PUSH:
        check('ENABLE_PUSH', value, [0, from === 'server' ? 0 : 1]);
        return;
      case MAX_CONCURRENT_STREAMS:
        this.maxConcurrentStreams = value;
        return;
      case INITIAL_WINDOW_SIZE:
        check('INITIAL_WINDOW_SIZE', value, [0, MAX_WINDOW], FLOW_CONTROL_ERROR);
        this.initialWindow = value;
        return;
      case MAX_FRAME_SIZE:
        check('MAX_FRAME_SIZE', value, [MAX_FRAME_BYTES, MAX_FRAME_SIZE_LIMIT]);
        return;
      case ENABLE_CONNECT_PROTOCOL:
        check('ENABLE_CONNECT_PROTOCOL', value, [0, 1]);
        this.takesConnectProtocol = value === 1;
    }
  }
}

function check(
  name: string,
  value: number,
  [least, most]: readonly [number, number],
  code: ErrorCode = PROTOCOL_ERROR,
): void {
  if (value >= least && value <= most) return;
  throw new ConnectionError(code, `SETTINGS_${name} of ${value}`);
}

export interface OwnSettings {
  readonly role: 'client' | 'server';
  /** Streams that a client may have open; not told by a client. */
  readonly maxConcurrentStreams: number;
  readonly maxHeaderListBytes: number;
  /** Bytes of a stream that may come before any of them has been passed on; from 65 535, by which peers go until told. */
  readonly initialWindow: number;
}

/** The payload of our SETTINGS frame. A client forbids pushes; a server takes CONNECT with a protocol. */
export function encodeSettings(own: OwnSettings): Buffer {
  const entries: (readonly [id: number, value: number])[] = [
    [INITIAL_WINDOW_SIZE, own.initialWindow],
    [MAX_HEADER_LIST_SIZE, own.maxHeaderListBytes],
  ];
  if (own.role === 'client') entries.push([ENABLE_PUSH, 0]);
  else {
    entries.push([MAX_CONCURRENT_STREAMS, own.maxConcurrentStreams], [ENABLE_CONNECT_PROTOCOL, 1]);
  }
  const payload = Buffer.alloc(entries.length * ENTRY_BYTES);
  for (const [at, [id, value]] of entries.entries()) {
    payload[at * ENTRY_BYTES + 1] = id;
    writeUint32(payload, at * ENTRY_BYTES + 2, value);
  }
  return payload;
}
