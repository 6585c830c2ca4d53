// What comes back to a client of HTTP/2 on one connection, for a strict reader: all that the sidecar says has to be valid,
// whatever the application said to it.
import { Http2Fault } from './fault.ts';
import type { ClientStream, ClientStreams } from './client-streams.ts';
import { FrameEvents } from './frame-events.ts';
import type { FrameEvent } from './frame-events.ts';
import { HpackReader } from './hpack-reader.ts';
import type { Line } from './hpack-tables.ts';
import { flawOfTrailers, readResponseHead } from './message-rules.ts';
import type { ResponseHead } from './message-rules.ts';

/** What has come on one stream. */
export interface AnswerStream {
  head: ResponseHead | undefined;
  /** Of all field blocks and all data, for what may be found in them. */
  text: string;
  body: string;
  /** Value of `x-length`: how long the application meant the body to be. */
  meantLength: number | undefined;
  state: 'open' | 'ended' | 'reset';
  /** Bytes of data, with padding. */
  received: number;
}

/** The connection as a whole, among windows. */
const ALL = 0;
const CONNECTION_WINDOW = 65_535;
const DEFAULT_TABLE_BYTES = 4_096;

export class AnswerStreams {
  readonly streams: Map<number, AnswerStream> = new Map<number, AnswerStream>();
  /** Codes of GOAWAY frames. */
  readonly goAways: number[] = [];
  /** What was wrong. */
  readonly faults: string[] = [];
  readonly #client: ClientStreams;
  readonly #events = new FrameEvents();
  readonly #hpack = new HpackReader();
  #hasSettings = false;
  #settingsAcks = 0;
  #pingAcks = 0;
  #lastId = Infinity;
  #received = 0;

  /** `client` is what was sent on the connection. */
  constructor(client: ClientStreams) {
    this.#client = client;
  }

  /** Whether something is wrong, so that nobody need wait for more. */
  get isBroken(): boolean {
    return this.faults.length > 0;
  }

  read(bytes: Buffer): void {
    if (this.isBroken) return;
    try {
      for (const event of this.#events.read(bytes)) this.#take(event);
    } catch (error) {
      if (!(error instanceof Http2Fault)) throw error;
      this.faults.push(error.message);
    }
  }

  /** Whether the stream is over, as far as the sidecar is concerned. */
  isOver(id: number): boolean {
    const state = this.streams.get(id)?.state;
    return state === 'ended' || state === 'reset';
  }

  #take(event: FrameEvent): void {
    this.#checkFirst(event);
    switch (event.kind) {
      case 'fields':
        this.#onFields(event.streamId, this.#hpack.read(event.block), event.endsStream);
        return;
      case 'data':
        this.#onData(event);
        return;
      case 'reset':
        this.#onReset(event.streamId);
        return;
      case 'settings':
        if (event.entries === undefined) this.#onSettingsAck();
        return;
      case 'ping':
      case 'goaway':
      case 'window':
      case 'doubtful':
        this.#takeControl(event);
    }
  }

  #checkFirst(event: FrameEvent): void {
    const isFirst = event.kind === 'settings' && event.entries !== undefined;
    if (!this.#hasSettings && !isFirst) throw new Http2Fault('another frame before SETTINGS');
    this.#hasSettings = true;
  }

  #takeControl(
    event: FrameEvent & { readonly kind: 'ping' | 'goaway' | 'window' | 'doubtful' },
  ): void {
    switch (event.kind) {
      case 'ping':
        this.#onPing(event.isAck, event.data);
        return;
      case 'goaway':
        if (event.lastId > this.#lastId) throw new Http2Fault('GOAWAY that takes back');
        this.#lastId = event.lastId;
        this.goAways.push(event.code);
        return;
      case 'window':
        if (event.by === 0) throw new Http2Fault('a window that does not open');
        return;
      case 'doubtful':
        throw new Http2Fault(event.what);
    }
  }

  #onSettingsAck(): void {
    const sizes = this.#client.tableSizes;
    if (this.#settingsAcks >= sizes.length) throw new Http2Fault('an acknowledgment of nothing');
    const size = sizes[this.#settingsAcks];
    this.#settingsAcks += 1;
    if (size !== undefined) this.#hpack.limit(Math.min(size, DEFAULT_TABLE_BYTES));
  }

  #onPing(isAck: boolean, data: string): void {
    const due = this.#client.pings[this.#pingAcks];
    if (!isAck || data !== due) throw new Http2Fault('a PING, or an answer to none');
    this.#pingAcks += 1;
  }

  /** Throws for a stream that the client has not opened. */
  #stream(id: number): AnswerStream {
    const known = this.streams.get(id);
    if (known !== undefined) return known;
    if (!this.#client.streams.has(id))
      throw new Http2Fault(`a frame on stream ${id}, which is idle`);
    const stream: AnswerStream = {
      ...{ head: undefined, text: '', body: '', meantLength: undefined },
      ...{ state: 'open', received: 0 },
    };
    this.streams.set(id, stream);
    return stream;
  }

  /** A stream that was skipped is over without ever having been open. */
  #onReset(id: number): void {
    if (!this.#isSkipped(id)) this.#stream(id).state = 'reset';
  }

  #isSkipped(id: number): boolean {
    return id % 2 === 1 && id < this.#client.lastId && !this.#client.streams.has(id);
  }

  #openStream(id: number): AnswerStream {
    const stream = this.#stream(id);
    if (stream.state !== 'open') throw new Http2Fault(`stream ${id} goes on after its end`);
    return stream;
  }

  #onFields(id: number, lines: readonly Line[], endsStream: boolean): void {
    const stream = this.#openStream(id);
    stream.text += lines.map(([name, value]) => `${name}: ${value}\n`).join('');
    if (stream.head === undefined) this.#onHead(id, stream, { lines, endsStream });
    else {
      const flaw = endsStream ? flawOfTrailers(lines) : 'fields within a body';
      if (flaw !== undefined) throw new Http2Fault(`stream ${id}: ${flaw}`);
    }
    if (endsStream) this.#end(id, stream);
  }

  #onHead(
    id: number,
    stream: AnswerStream,
    { lines, endsStream }: { readonly lines: readonly Line[]; readonly endsStream: boolean },
  ): void {
    const head = readResponseHead(lines);
    if (typeof head === 'string') throw new Http2Fault(`stream ${id}: ${head}`);
    if (head.status < 200) {
      const isWrong = head.status === 101 || endsStream;
      if (isWrong) throw new Http2Fault(`stream ${id}: a ${head.status} that may not be`);
      return;
    }
    stream.head = head;
    const meant = lines.find(([name]) => name === 'x-length');
    if (meant !== undefined) stream.meantLength = Number(meant[1]);
  }

  #onData(event: FrameEvent & { readonly kind: 'data' }): void {
    const { streamId, data, length, endsStream } = event;
    const stream = this.#openStream(streamId);
    if (stream.head === undefined) throw new Http2Fault(`stream ${streamId}: data before a head`);
    stream.received += length;
    this.#received += length;
    const { mostWindow, widened } = this.#client;
    const isTooMuch =
      stream.received > mostWindow + (widened.get(streamId) ?? 0) ||
      this.#received > CONNECTION_WINDOW + (widened.get(ALL) ?? 0);
    if (isTooMuch) throw new Http2Fault(`stream ${streamId}: more than its window`);
    stream.body += data;
    stream.text += data;
    if (endsStream) this.#end(streamId, stream);
  }

  #end(id: number, stream: AnswerStream): void {
    stream.state = 'ended';
    const { head, meantLength, body } = stream;
    if (head === undefined) throw new Http2Fault(`stream ${id} ends without a head`);
    const request = this.#client.streams.get(id);
    const isBodyless = isWithoutBody(head.status, request);
    const due = isBodyless ? 0 : (head.contentLength ?? meantLength);
    if (due !== undefined && body.length !== due) {
      throw new Http2Fault(`stream ${id}: ${body.length} bytes of ${due}, shown as whole`);
    }
  }
}

function isWithoutBody(status: number, request: ClientStream | undefined): boolean {
  const method = request?.lines.find(([name]) => name === ':method')?.[1];
  return method === 'HEAD' || status === 204 || status === 304;
}
