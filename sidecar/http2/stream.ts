// One stream as one end of a connection sees it: what may still be sent, what waits, and whom to tell.
import {
  type ErrorCode,
  FLOW_CONTROL_ERROR,
  NO_ERROR,
  PROTOCOL_ERROR,
  STREAM_CLOSED,
} from './error-code.ts';
import type { Field } from './field.ts';
import type { FieldBlock } from './hpack-decoder.ts';

/** Whoever a stream belongs to. Called while bytes are read; an exception strikes the whole connection. */
export interface StreamOwner {
  /** Response, interim response or trailers: everything but the fields of a new request. */
  onFields(stream: Stream, block: FieldBlock, endsStream: boolean): void;
  /** `bytes` are valid during the call. They count against the window until they are credited. */
  onData(stream: Stream, bytes: Buffer, endsStream: boolean): void;
  /** `bytes` of what was to be sent have gone out. */
  onSent(stream: Stream, bytes: number): void;
  /** The stream is over: the peer reset it, broke the protocol on it, or its connection has gone. */
  onReset(stream: Stream, code: ErrorCode): void;
}

export class Stream {
  readonly id: number;
  owner: StreamOwner;
  /** Bytes that the peer still takes; below zero after it has lowered its window. */
  sendWindow: number;
  /** Bytes that the peer may still send. */
  receiveWindow: number;
  /** Bytes that came and have not been passed on. */
  owed = 0;
  /** Bytes that were passed on and that the peer has not been told of. */
  uncredited = 0;
  /** The peer has sent its last frame. */
  remoteEnded = false;
  /** Our last frame has been written, or waits behind what is queued. */
  localEnding = false;
  localEnded = false;
  /** The last data frame has said that it is the last. */
  endSent = false;
  /** Body bytes that the message said it has, less those that came; −1 when it did not say. */
  bytesDue = -1;
  /** Whether the fields of the message (not interim ones) have come. */
  hasFields = false;
  /** Data that waits for the window. */
  readonly queue: Buffer[] = [];
  queuedBytes = 0;
  trailers: readonly Field[] | undefined = undefined;

  constructor(id: number, owner: StreamOwner, windows: { send: number; receive: number }) {
    this.id = id;
    this.owner = owner;
    this.sendWindow = windows.send;
    this.receiveWindow = windows.receive;
  }

  get isOver(): boolean {
    return this.remoteEnded && this.localEnded;
  }

  /** Notes that `length` bytes of data have come; what is wrong with them, or NO_ERROR. */
  takeData(length: number, endsStream: boolean): ErrorCode {
    if (this.remoteEnded) return STREAM_CLOSED;
    if (this.receiveWindow < 0) return FLOW_CONTROL_ERROR;
    if (!this.hasFields) return PROTOCOL_ERROR;
    this.remoteEnded = endsStream;
    if (this.bytesDue < 0) return NO_ERROR;
    this.bytesDue -= length;
    const isWrong = this.bytesDue < 0 || (endsStream && this.bytesDue > 0);
    return isWrong ? PROTOCOL_ERROR : NO_ERROR;
  }

  /** Notes that fields have come after those that opened the stream; what is wrong with them, or NO_ERROR. */
  takeFields(endsStream: boolean, role: 'client' | 'server'): ErrorCode {
    if (this.remoteEnded) return STREAM_CLOSED;
    this.remoteEnded = endsStream;
    // Behind the fields of the message they are trailers: they end it, and no byte of its body may be missing.
    const isTrailers = role === 'server' || this.hasFields;
    return isTrailers && (!endsStream || this.bytesDue > 0) ? PROTOCOL_ERROR : NO_ERROR;
  }
}

/** Of streams that nobody has taken on yet. */
export const NOBODY: StreamOwner = {
  onFields: ignore,
  onData: ignore,
  onSent: ignore,
  onReset: ignore,
};

function ignore(): void {
  // nobody to tell
}
