// Hot path. One end of an HTTP/2 connection (RFC 9113) without a socket: bytes go in, calls come out, and what is to be
// sent gathers in `sender.output`. Strict where a peer could gain by laxness, bounded where it could make us work for nothing.
import { Chores, CHORES_OF_A_RESET } from './chores.ts';
import {
  ConnectionError,
  type ErrorCode,
  FLOW_CONTROL_ERROR,
  FRAME_SIZE_ERROR,
  NO_ERROR,
  PROTOCOL_ERROR,
  REFUSED_STREAM,
  STREAM_CLOSED,
} from './error-code.ts';
import type { Field } from './field.ts';
import {
  ACK,
  CONTINUATION,
  DATA,
  END_STREAM,
  FrameReader,
  GOAWAY,
  HEADERS,
  LAST_STREAM_ID,
  PING,
  PREFACE,
  PRIORITY,
  PUSH_PROMISE,
  readUint31,
  readUint32,
  RST_STREAM,
  SETTINGS,
  WINDOW_UPDATE,
} from './frame.ts';
import { checkDependency, checkShape, unpadded } from './frame-shape.ts';
import { FieldBlocks, type WholeBlock } from './field-blocks.ts';
import { type FieldBlock, HpackDecoder } from './hpack-decoder.ts';
import { Preface } from './preface.ts';
import { RecentIds } from './recent-ids.ts';
import { Sender } from './sender.ts';
import {
  DEFAULT_WINDOW,
  encodeSettings,
  MAX_WINDOW,
  type OwnSettings,
  PeerSettings,
} from './settings.ts';
import { NOBODY, Stream, type StreamOwner } from './stream.ts';

export interface EndpointOwner {
  /** A client opened a stream; gives it an owner (`stream.owner`). Only of a server. */
  onRequest(stream: Stream, block: FieldBlock, endsStream: boolean): void;
  /** The peer takes no more streams. */
  onGoAway(code: ErrorCode): void;
  /** A stream is over; another one may be opened in its place. */
  onOver(stream: Stream): void;
}

export interface EndpointOptions extends OwnSettings {
  readonly maxHeaderLines: number;
  /** Bytes of data on all streams together that may come before any of them has been passed on; more than 65 535. */
  readonly connectionWindow: number;
  /** Whether bytes on all streams are credited as they come, so that one that is read slowly does not hold up the others. */
  readonly creditsAtOnce: boolean;
}

export class Endpoint {
  readonly sender: Sender;
  readonly peer: PeerSettings = new PeerSettings();
  /** After a fault of the peer: GOAWAY has been written, and nothing more is read. */
  isBroken = false;
  /** The code of that fault. */
  fault: ErrorCode = NO_ERROR;
  /** GOAWAY has come or was sent: no new streams. */
  isGoingAway = false;
  /** Field blocks that have come whole. */
  headsRead = 0;
  /** Streams of the peer beyond `maxConcurrentStreams`. */
  streamsRefused = 0;
  readonly #options: EndpointOptions;
  readonly #preface: Preface;
  readonly #owner: EndpointOwner;
  readonly #reader = new FrameReader();
  readonly #decoder: HpackDecoder;
  readonly #blocks: FieldBlocks;
  readonly #chores = new Chores();
  readonly #streams = new Map<number, Stream>();
  readonly #resetIds = new RecentIds();
  #nextId = 1;
  /** The last stream that the peer opened. */
  #lastPeerId = 0;
  /** Streams above it are ignored: the peer has been told so. */
  #lastTakenId = LAST_STREAM_ID;
  #receiveWindow: number;
  #uncredited = 0;

  constructor(options: EndpointOptions, owner: EndpointOwner) {
    this.#options = options;
    this.#owner = owner;
    this.#decoder = new HpackDecoder({
      maxBytes: options.maxHeaderListBytes,
      maxLines: options.maxHeaderLines,
    });
    this.#blocks = new FieldBlocks(2 * options.maxHeaderListBytes);
    this.sender = new Sender((stream) => {
      this.#remove(stream);
    });
    this.#preface = new Preface(options.role);
    this.#receiveWindow = options.connectionWindow;
    if (options.role === 'client') this.sender.output.bytes(Buffer.from(PREFACE, 'latin1'));
    this.sender.output.settings(encodeSettings(options));
    this.sender.output.windowUpdate(0, options.connectionWindow - DEFAULT_WINDOW);
  }

  /** Streams that are not over. */
  get openStreams(): number {
    return this.#streams.size;
  }

  /** Whether the preface or a field block has begun and not ended. */
  get isWithinHead(): boolean {
    return this.#preface.isDue || this.#blocks.isOpen || this.pendingHeadBytes > 0;
  }

  /** Bytes that are kept of a field block that has begun and not ended. */
  get pendingHeadBytes(): number {
    return this.#blocks.pendingBytes + this.#reader.pendingHeadBytes;
  }

  /** Whether the peer takes another stream now. */
  get hasRoom(): boolean {
    return !this.isGoingAway && this.#streams.size < this.peer.maxConcurrentStreams;
  }

  /** Takes bytes that have come; valid during the call. After a fault of the peer `isBroken` is set. */
  receive(bytes: Buffer): void {
    if (this.isBroken) return;
    try {
      this.#reader.push(this.#preface.readFrom(bytes));
      while (this.#reader.next()) this.#onFrame();
      this.#reader.keep();
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      this.fault = error.code;
      this.close(error.code, error.message);
    }
  }

  /** Opens a stream for a request (only of a client). */
  request(fields: readonly Field[], endsStream: boolean, owner: StreamOwner): Stream {
    const stream = this.#open(this.#nextId, owner);
    this.#nextId += 2;
    this.isGoingAway ||= this.#nextId > LAST_STREAM_ID;
    this.sender.fields(stream, fields, endsStream);
    return stream;
  }

  /** Ends a stream at once; its owner is not told. */
  reset(stream: Stream, code: ErrorCode): void {
    if (this.#streams.get(stream.id) !== stream) return;
    this.sender.reset(stream, code);
    this.#resetIds.add(stream.id);
    this.#remove(stream);
  }

  /** `bytes` of what came on the stream have been passed on: the peer may send as many more. */
  credit(stream: Stream, bytes: number): void {
    const count = Math.min(bytes, stream.owed);
    stream.owed -= count;
    if (!this.#options.creditsAtOnce) this.#creditConnection(count);
    stream.uncredited += count;
    if (stream.remoteEnded || stream.uncredited < this.#options.initialWindow / 2) return;
    this.sender.output.windowUpdate(stream.id, stream.uncredited);
    stream.receiveWindow += stream.uncredited;
    stream.uncredited = 0;
  }

  /** Asks the peer to open its next streams elsewhere; those that it opens all the same are served. */
  askToLeave(): void {
    this.sender.output.goAway(this.#lastTakenId, NO_ERROR, '');
  }

  /** Takes no more streams; those that are open may end. */
  goAway(): void {
    // That the peer goes away too says nothing about the streams that it may still open.
    if (this.isBroken || this.#lastTakenId < LAST_STREAM_ID) return;
    this.isGoingAway = true;
    this.#lastTakenId = this.#lastPeerId;
    this.sender.output.goAway(this.#lastPeerId, NO_ERROR, '');
  }

  /** Ends everything. The owners of streams that are open are told. */
  close(code: ErrorCode, message: string): void {
    if (this.isBroken) return;
    // What was said once is never taken back (RFC 9113 §6.8).
    this.sender.output.goAway(Math.min(this.#lastPeerId, this.#lastTakenId), code, message);
    this.abandon(code);
  }

  /** Tells the owners of all streams that these are over: the connection is. */
  abandon(code: ErrorCode): void {
    this.#preface.drop();
    this.#reader.drop();
    this.#blocks.drop();
    this.isBroken = true;
    this.isGoingAway = true;
    for (const stream of [...this.#streams.values()]) this.#drop(stream, code);
  }

  /** The peer opened a stream for nothing. Throws ConnectionError when it has done so too often; only within `receive`. */
  blame(): void {
    this.#chores.add(CHORES_OF_A_RESET);
  }

  /** Time has passed: what the peer made us do for nothing is forgotten. */
  forgive(): void {
    this.#chores.forgive();
  }

  #onFrame(): void {
    const { type } = this.#reader;
    if (this.#blocks.isOpen && type !== CONTINUATION) throw fault('a field block breaks off');
    if (!this.peer.isTold && type !== SETTINGS) throw fault('the first frame is no SETTINGS');
    checkShape(this.#reader);
    switch (type) {
      case DATA:
        this.#onData();
        return;
      case HEADERS:
        this.#onBlock(this.#blocks.begin(this.#reader));
        return;
      case CONTINUATION:
        this.#onBlock(this.#blocks.proceed(this.#reader));
        return;
      case WINDOW_UPDATE:
        this.#onWindowUpdate();
        return;
      default:
        this.#chores.add(1);
        this.#onControl(type);
    }
  }

  #onControl(type: number): void {
    switch (type) {
      case PRIORITY:
        checkDependency(this.#reader.streamId, this.#reader.payload);
        return;
      case RST_STREAM:
        this.#onReset();
        return;
      case SETTINGS:
        this.#onSettings();
        return;
      case PING:
        if ((this.#reader.flags & ACK) === 0) this.sender.output.pingAck(this.#reader.payload);
        return;
      case GOAWAY:
        this.#onGoAway();
        return;
      case PUSH_PROMISE:
        throw fault('PUSH_PROMISE, which was never allowed');
    }
  }

  #onData(): void {
    const { streamId, flags, payload } = this.#reader;
    this.#receiveWindow -= payload.length;
    if (this.#receiveWindow < 0) {
      throw new ConnectionError(FLOW_CONTROL_ERROR, 'more data than the connection takes');
    }
    const stream = this.#streams.get(streamId);
    const data = unpadded(this.#reader);
    if (this.#options.creditsAtOnce || stream === undefined) {
      this.#creditConnection(payload.length);
    }
    if (stream === undefined) {
      this.#onStrayFrame(streamId);
      return;
    }
    if (data.length === 0) this.#chores.add(1);
    const endsStream = (flags & END_STREAM) !== 0;
    this.#takeData(stream, data, { length: payload.length, endsStream });
  }

  #takeData(stream: Stream, data: Buffer, frame: { length: number; endsStream: boolean }): void {
    stream.receiveWindow -= frame.length;
    stream.owed += frame.length;
    const flaw = stream.takeData(data.length, frame.endsStream);
    if (flaw !== NO_ERROR) {
      this.#fail(stream, flaw);
      return;
    }
    if (frame.length > data.length) this.credit(stream, frame.length - data.length);
    stream.owner.onData(stream, data, frame.endsStream);
    if (stream.isOver) this.#remove(stream);
  }

  /** Whether the peer may not have known yet that we take nothing on the stream. */
  #isExcused(streamId: number): boolean {
    return this.#resetIds.has(streamId) || streamId > this.#lastTakenId;
  }

  /** A frame for a stream that is over. What was under way when we said so is ignored. */
  #onStrayFrame(streamId: number): void {
    if (this.#isIdle(streamId)) throw fault(`a frame on stream ${streamId}, which is idle`);
    if (this.#isExcused(streamId)) return;
    this.#chores.add(1);
    this.sender.output.reset(streamId, STREAM_CLOSED);
  }

  #isIdle(streamId: number): boolean {
    const isOurs = (streamId & 1) === (this.#options.role === 'client' ? 1 : 0);
    return isOurs ? streamId >= this.#nextId : streamId > this.#lastPeerId;
  }

  // Read whatever becomes of it: the table of both sides has to stay the same.
  #onBlock(whole: WholeBlock | undefined): void {
    if (whole === undefined) return;
    this.headsRead += 1;
    const { streamId, endsStream } = whole;
    const block = this.#decoder.decode(whole.bytes);
    const stream = this.#streams.get(streamId);
    if (stream !== undefined) this.#onMoreFields(stream, block, endsStream);
    else if (this.#options.role === 'client') this.#onStrayFrame(streamId);
    else this.#onNewStream(streamId, block, endsStream);
  }

  /** Trailers; of a server also the response and what comes before it. */
  #onMoreFields(stream: Stream, block: FieldBlock, endsStream: boolean): void {
    const flaw = stream.takeFields(endsStream, this.#options.role);
    if (flaw !== NO_ERROR) {
      this.#fail(stream, flaw);
      return;
    }
    stream.owner.onFields(stream, block, endsStream);
    if (stream.isOver) this.#remove(stream);
  }

  #onNewStream(streamId: number, block: FieldBlock, endsStream: boolean): void {
    if ((streamId & 1) === 0) throw fault(`stream ${streamId} of a client`);
    if (streamId <= this.#lastPeerId) {
      if (this.#isExcused(streamId)) return;
      throw new ConnectionError(STREAM_CLOSED, `HEADERS on stream ${streamId}, which is over`);
    }
    this.#lastPeerId = streamId;
    if (streamId > this.#lastTakenId) return;
    if (this.#streams.size >= this.#options.maxConcurrentStreams) {
      this.streamsRefused += 1;
      this.#chores.add(CHORES_OF_A_RESET);
      this.sender.output.reset(streamId, REFUSED_STREAM);
      this.#resetIds.add(streamId);
      return;
    }
    const stream = this.#open(streamId, NOBODY);
    stream.remoteEnded = endsStream;
    stream.hasFields = true;
    this.#owner.onRequest(stream, block, endsStream);
  }

  #open(id: number, owner: StreamOwner): Stream {
    const stream = new Stream(id, owner, {
      send: this.peer.initialWindow,
      receive: this.#options.initialWindow,
    });
    this.#streams.set(id, stream);
    return stream;
  }

  #onReset(): void {
    const { streamId, payload } = this.#reader;
    if (this.#isIdle(streamId)) throw fault('RST_STREAM on an idle stream');
    // A server has no more to reset than we asked of it.
    if (this.#options.role === 'server') this.#chores.add(CHORES_OF_A_RESET);
    const stream = this.#streams.get(streamId);
    if (stream !== undefined) this.#drop(stream, readUint32(payload, 0));
  }

  #onSettings(): void {
    const { flags, payload } = this.#reader;
    if ((flags & ACK) !== 0) {
      if (payload.length > 0) throw new ConnectionError(FRAME_SIZE_ERROR, 'SETTINGS with ACK');
      return;
    }
    const before = this.peer.initialWindow;
    this.peer.apply(payload, this.#options.role === 'server' ? 'client' : 'server');
    this.sender.encoder.limitTable(this.peer.headerTableBytes);
    this.sender.output.settingsAck();
    if (this.peer.initialWindow !== before) this.#moveWindows(this.peer.initialWindow - before);
  }

  #moveWindows(by: number): void {
    for (const stream of this.#streams.values()) {
      stream.sendWindow += by;
      if (stream.sendWindow > MAX_WINDOW) {
        throw new ConnectionError(FLOW_CONTROL_ERROR, 'SETTINGS_INITIAL_WINDOW_SIZE');
      }
    }
    this.sender.pump();
  }

  #onGoAway(): void {
    const { payload } = this.#reader;
    this.isGoingAway = true;
    const last = readUint31(payload, 0);
    if (this.#options.role === 'client') {
      for (const stream of [...this.#streams.values()]) {
        if (stream.id > last) this.#drop(stream, REFUSED_STREAM);
      }
    }
    this.#owner.onGoAway(readUint32(payload, 4));
  }

  #onWindowUpdate(): void {
    const { streamId, payload } = this.#reader;
    const by = readUint31(payload, 0);
    if (streamId === 0) {
      if (by === 0) throw fault('WINDOW_UPDATE by 0');
      this.sender.window += by;
      if (this.sender.window > MAX_WINDOW) {
        throw new ConnectionError(FLOW_CONTROL_ERROR, 'WINDOW_UPDATE');
      }
    } else if (!this.#widen(streamId, by)) return;
    this.sender.pump();
  }

  #widen(streamId: number, by: number): boolean {
    const stream = this.#streams.get(streamId);
    if (stream === undefined) {
      if (this.#isIdle(streamId)) throw fault('WINDOW_UPDATE on an idle stream');
      return false;
    }
    stream.sendWindow += by;
    if (by > 0 && stream.sendWindow <= MAX_WINDOW) return true;
    this.#fail(stream, by === 0 ? PROTOCOL_ERROR : FLOW_CONTROL_ERROR);
    return false;
  }

  #creditConnection(bytes: number): void {
    this.#uncredited += bytes;
    if (this.#uncredited < this.#options.connectionWindow / 2) return;
    this.sender.output.windowUpdate(0, this.#uncredited);
    this.#receiveWindow += this.#uncredited;
    this.#uncredited = 0;
  }

  /** The peer broke the protocol on one stream. */
  #fail(stream: Stream, code: ErrorCode): void {
    this.#chores.add(CHORES_OF_A_RESET);
    this.sender.reset(stream, code);
    this.#resetIds.add(stream.id);
    this.#drop(stream, code);
  }

  // Its owner is told first: only it knows what else has to end with the stream.
  #drop(stream: Stream, code: ErrorCode): void {
    if (!this.#release(stream)) return;
    this.sender.forget(stream);
    stream.remoteEnded = true;
    stream.owner.onReset(stream, code);
    this.#owner.onOver(stream);
  }

  #remove(stream: Stream): void {
    if (this.#release(stream)) this.#owner.onOver(stream);
  }

  /** False when it was over before. */
  #release(stream: Stream): boolean {
    if (this.#streams.get(stream.id) !== stream) return false;
    this.#streams.delete(stream.id);
    if (!this.#options.creditsAtOnce && !this.isBroken) this.#creditConnection(stream.owed);
    stream.owed = 0;
    return true;
  }
}

function fault(message: string): ConnectionError {
  return new ConnectionError(PROTOCOL_ERROR, message);
}
