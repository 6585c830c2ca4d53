// What a client of HTTP/2 says on one connection, for a strict reader: its requests, and where RFC 9113 lets the other side
// end a stream or the connection, or has it do so. The application reads the sidecar by it, the oracle the fuzzed clients.
import { Http2Fault } from './fault.ts';
import { FrameEvents } from './frame-events.ts';
import type { FrameEvent } from './frame-events.ts';
import { HpackReader } from './hpack-reader.ts';
import type { Line } from './hpack-tables.ts';
import { flawOfTrailers, readRequestHead } from './message-rules.ts';
import type { RequestHead } from './message-rules.ts';
import { PREFACE_BYTES } from '../../support/http2-frames.ts';

/** A stream that the client has opened. */
export interface ClientStream {
  readonly id: number;
  /** Undefined when the fields are no request. */
  readonly head: RequestHead | undefined;
  readonly lines: readonly Line[];
  body: string;
  trailers: readonly Line[] | undefined;
  /** `open` until the client has sent its last frame; `flawed` when it has to be reset for what the client did. */
  state: 'open' | 'whole' | 'flawed' | 'left';
  /** Whether the client has sent the request whole, whatever came of the stream afterwards. */
  wasWhole: boolean;
  /** Bytes of data, with padding. */
  received: number;
}

/** The other side's windows where nobody is told otherwise: what a client may send without looking. */
const STREAM_WINDOW = 65_535;
const CONNECTION_WINDOW = 1_048_576;
/** Where Weir calls a field block endless. */
const MOST_BLOCK_FRAMES = 64;
const MOST_BLOCK_BYTES = 131_072;
const MAX_WINDOW = 2 ** 31 - 1;
/** More than is ever sent on a connection of the fuzzer: only windows that pass this overflow for certain. */
const SURE_OVERFLOW = MAX_WINDOW + 2 ** 24;
const [HEADER_TABLE_SIZE, ENABLE_PUSH, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE] = [1, 2, 4, 5];
const ENABLE_CONNECT_PROTOCOL = 8;

/** What is told as it comes. */
export interface ClientListener {
  onHead?(stream: ClientStream): void;
  onData?(stream: ClientStream, data: string, length: number): void;
  onWhole?(stream: ClientStream): void;
  onSettingsAck?(): void;
}

export class ClientStreams {
  readonly streams: Map<number, ClientStream> = new Map<number, ClientStream>();
  /** Why the connection has to end; undefined when it does not. */
  fault: string | undefined = undefined;
  /** From where on it may end, or not. */
  doubt: string | undefined = undefined;
  /** What was wrong with single streams. */
  readonly flaws: string[] = [];
  /** The client takes no more: what it asks for later need not be answered. */
  isLeaving = false;
  /** Streams that were opened before. */
  readonly dueIds: Set<number> = new Set<number>();
  /** By SETTINGS frame: the table that answers may use from its acknowledgment on, if it says so. */
  readonly tableSizes: (number | undefined)[] = [];
  readonly pings: string[] = [];
  /** The most that may ever be sent on a stream that was not widened, and by how much streams (0: all) were. */
  mostWindow: number = STREAM_WINDOW;
  readonly widened: Map<number, number> = new Map<number, number>();
  readonly hpack: HpackReader = new HpackReader();
  readonly #listener: ClientListener;
  readonly #events = new FrameEvents();
  #window = STREAM_WINDOW;
  #preface: Buffer = Buffer.alloc(0);
  #hasSettings = false;
  /** The last stream that was opened; those before it that were not are over (RFC 9113 §5.1.1). */
  lastId = 0;
  #received = 0;

  constructor(listener: ClientListener = {}) {
    this.#listener = listener;
  }

  /** Whether the bytes end within a frame. */
  get isCut(): boolean {
    return !this.hasPreface || this.#events.isWithin;
  }

  get hasPreface(): boolean {
    return this.#preface.length === PREFACE_BYTES.length;
  }

  read(bytes: Buffer): void {
    if (this.fault !== undefined) return;
    try {
      for (const event of this.#events.read(this.#behindPreface(bytes))) this.#take(event);
    } catch (error) {
      if (!(error instanceof Http2Fault)) throw error;
      this.fault = error.message;
    }
  }

  #behindPreface(bytes: Buffer): Buffer {
    const missing = PREFACE_BYTES.length - this.#preface.length;
    const preface = Buffer.concat([this.#preface, bytes.subarray(0, missing)]);
    if (!preface.equals(PREFACE_BYTES.subarray(0, preface.length))) {
      throw new Http2Fault('no preface');
    }
    this.#preface = preface;
    return bytes.subarray(missing);
  }

  #take(event: FrameEvent): void {
    if (!this.#hasSettings) this.#checkFirst(event);
    switch (event.kind) {
      case 'fields':
        this.#onFields(event);
        return;
      case 'data':
        this.#onData(event);
        return;
      case 'reset':
        this.#onReset(event.streamId);
        return;
      case 'settings':
        this.#onSettings(event.entries);
        return;
      case 'window':
        this.#onWindow(event.streamId, event.by);
        return;
      case 'ping':
      case 'goaway':
      case 'doubtful':
        this.#note(event);
    }
  }

  #note(event: FrameEvent & { readonly kind: 'ping' | 'goaway' | 'doubtful' }): void {
    switch (event.kind) {
      case 'ping':
        if (!event.isAck) this.pings.push(event.data);
        return;
      case 'goaway':
        this.isLeaving = true;
        return;
      case 'doubtful':
        this.#doubt(event.what);
    }
  }

  #checkFirst(event: FrameEvent): void {
    if (event.kind !== 'settings') throw new Http2Fault('another frame before SETTINGS');
    if (event.entries === undefined) this.#doubt('an acknowledgment before SETTINGS');
    else this.#hasSettings = true;
  }

  #onFields(event: FrameEvent & { readonly kind: 'fields' }): void {
    const { streamId, endsStream, block, frames } = event;
    if (event.isDoubtful) this.#doubt('a stream that depends on itself');
    if (frames > MOST_BLOCK_FRAMES || block.length > MOST_BLOCK_BYTES) this.#doubt('a long block');
    const lines = this.hpack.read(block);
    const stream = this.streams.get(streamId);
    if (stream !== undefined) this.#onMoreFields(stream, lines, endsStream);
    else this.#open(streamId, lines, endsStream);
  }

  #open(id: number, lines: readonly Line[], endsStream: boolean): void {
    if (id % 2 === 0 || id < this.lastId) throw new Http2Fault(`a new stream ${id}`);
    this.lastId = id;
    const head = readRequestHead(lines);
    const stream: ClientStream = {
      ...{ id, lines, head: typeof head === 'string' ? undefined : head, body: '' },
      ...{ trailers: undefined, state: 'open', wasWhole: false, received: 0 },
    };
    this.streams.set(id, stream);
    if (!this.isLeaving && this.doubt === undefined) this.dueIds.add(id);
    if (typeof head === 'string') {
      this.#flaw(stream, head);
      return;
    }
    this.#listener.onHead?.(stream);
    if (endsStream) this.#end(stream);
  }

  #onMoreFields(stream: ClientStream, lines: readonly Line[], endsStream: boolean): void {
    if (stream.state !== 'open') {
      this.#doubt('fields on a stream that is over');
      return;
    }
    stream.trailers = lines;
    const flaw = endsStream ? flawOfTrailers(lines) : 'fields within a body';
    if (flaw === undefined) this.#end(stream);
    else this.#flaw(stream, flaw);
  }

  #onData(event: FrameEvent & { readonly kind: 'data' }): void {
    const { streamId, data, length, endsStream } = event;
    const stream = this.streams.get(streamId);
    this.#received += length;
    if (this.#received > CONNECTION_WINDOW) this.#doubt('more data than the connection takes');
    if (stream === undefined) {
      this.#checkNotIdle(streamId);
      return;
    }
    stream.received += length;
    if (stream.received > STREAM_WINDOW) this.#doubt('more data than the stream takes');
    // Whoever has reset the stream for a flaw must bear what was under way (RFC 9113 §5.1).
    if (stream.state !== 'open') {
      if (stream.state !== 'flawed') this.#doubt('data on a stream that is over');
      return;
    }
    stream.body += data;
    this.#listener.onData?.(stream, data, length);
    this.#endIfDue(stream, endsStream);
  }

  #endIfDue(stream: ClientStream, endsStream: boolean): void {
    const due = stream.head?.contentLength;
    if (due !== undefined && stream.body.length > due) this.#flaw(stream, 'more than announced');
    else if (endsStream) this.#end(stream);
  }

  #end(stream: ClientStream): void {
    const due = stream.head?.contentLength;
    if (due !== undefined && stream.body.length !== due) {
      this.#flaw(stream, 'less than announced');
      return;
    }
    stream.state = 'whole';
    stream.wasWhole = true;
    this.#listener.onWhole?.(stream);
  }

  #onReset(streamId: number): void {
    const stream = this.streams.get(streamId);
    if (stream === undefined) this.#checkNotIdle(streamId);
    else stream.state = 'left';
  }

  #onSettings(entries: readonly (readonly [id: number, value: number])[] | undefined): void {
    if (entries === undefined) {
      this.#listener.onSettingsAck?.();
      return;
    }
    let tableSize: number | undefined;
    for (const [id, value] of entries) {
      checkSetting(id, value);
      if (id === HEADER_TABLE_SIZE) tableSize = value;
      if (id === ENABLE_CONNECT_PROTOCOL && value === 0) this.#doubt('a protocol taken back');
      if (id === INITIAL_WINDOW_SIZE) this.#window = value;
    }
    this.tableSizes.push(tableSize);
    const before = this.tableSizes.length === 1 ? 0 : this.mostWindow;
    this.mostWindow = Math.max(before, this.#window);
    const widest = Math.max(0, ...this.#widenedStreams());
    if (this.#window + widest > MAX_WINDOW) this.#doubt('a window that may overflow');
  }

  #widenedStreams(): number[] {
    return [...this.widened].filter(([id]) => id > 0).map(([, by]) => by);
  }

  #onWindow(streamId: number, by: number): void {
    const stream = this.streams.get(streamId);
    if (streamId > 0 && stream === undefined) this.#checkNotIdle(streamId);
    if (streamId === 0 && by === 0) throw new Http2Fault('a window that does not open');
    const widened = (this.widened.get(streamId) ?? 0) + by;
    this.widened.set(streamId, widened);
    if (streamId === 0) this.#checkConnectionWindow(widened + STREAM_WINDOW);
    else this.#checkStreamWindow(stream, by, widened + this.#window);
  }

  #checkConnectionWindow(window: number): void {
    if (window > SURE_OVERFLOW) throw new Http2Fault('a window that overflows');
    if (window > MAX_WINDOW) this.#doubt('a window that may overflow');
  }

  #checkStreamWindow(stream: ClientStream | undefined, by: number, window: number): void {
    if (stream === undefined || stream.state === 'left') return;
    if (by === 0 || window > SURE_OVERFLOW) this.#flaw(stream, 'a window that is no window');
    else if (window > MAX_WINDOW) this.#doubt('a window that may overflow');
  }

  /** Throws for a stream that nobody has opened yet. */
  #checkNotIdle(streamId: number): void {
    if (streamId % 2 === 0 || streamId > this.lastId) {
      throw new Http2Fault(`a frame on stream ${streamId}, which is idle`);
    }
    this.#doubt('a frame on a stream that was skipped');
  }

  #flaw(stream: ClientStream, what: string): void {
    this.flaws.push(`stream ${stream.id}: ${what}`);
    stream.state = 'flawed';
  }

  #doubt(what: string): void {
    this.doubt ??= what;
  }
}

function checkSetting(id: number, value: number): void {
  const most: Readonly<Record<number, number>> = {
    [ENABLE_PUSH]: 1,
    [INITIAL_WINDOW_SIZE]: MAX_WINDOW,
    [MAX_FRAME_SIZE]: 2 ** 24 - 1,
    [ENABLE_CONNECT_PROTOCOL]: 1,
  };
  const isWrong = value > (most[id] ?? Infinity) || (id === MAX_FRAME_SIZE && value < 16_384);
  if (isWrong) throw new Http2Fault(`setting ${id} of ${value}`);
}
