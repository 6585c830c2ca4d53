// One end of an HTTP/2 connection as tests see it: what it was told, in order, and what it has to say.
import {
  Endpoint,
  type EndpointOptions,
  type EndpointOwner,
} from '../../sidecar/http2/endpoint.ts';
import { type ErrorCode } from '../../sidecar/http2/error-code.ts';
import { Field } from '../../sidecar/http2/field.ts';
import type { FieldBlock } from '../../sidecar/http2/hpack-decoder.ts';
import type { Stream, StreamOwner } from '../../sidecar/http2/stream.ts';
import { PREFACE_BYTES } from './http2-frames.ts';

/** Those of the tests where nothing else is said. */
const OPTIONS: Omit<EndpointOptions, 'role'> = {
  maxConcurrentStreams: 3,
  maxHeaderListBytes: 1_000,
  maxHeaderLines: 10,
  initialWindow: 100,
  connectionWindow: 65_735,
  creditsAtOnce: false,
};

/** Fields from lines of `name: value`. */
export function fieldsOf(...lines: readonly string[]): Field[] {
  return lines.map((line) => {
    const at = line.indexOf(': ');
    return new Field(line.slice(0, at), line.slice(at + 2), 'plain');
  });
}

export class Side implements EndpointOwner, StreamOwner {
  readonly endpoint: Endpoint;
  /** The streams that were opened, by id. */
  readonly streams: Map<number, Stream> = new Map<number, Stream>();
  #told: string[] = [];

  constructor(role: 'client' | 'server', options: Partial<EndpointOptions> = {}) {
    this.endpoint = new Endpoint({ ...OPTIONS, ...options, role }, this);
  }

  /** The stream of that id. */
  stream(id: number): Stream {
    const stream = this.streams.get(id);
    if (stream === undefined) throw new Error(`no stream ${id}`);
    return stream;
  }

  /** Opens a stream (of a client). */
  open(endsStream: boolean, ...lines: readonly string[]): Stream {
    const stream = this.endpoint.request(fieldsOf(...lines), endsStream, this);
    this.streams.set(stream.id, stream);
    return stream;
  }

  /** Gives it the bytes, one behind the other. */
  receive(...parts: readonly Buffer[]): void {
    for (const part of parts) this.endpoint.receive(part);
  }

  /** What was told since the last call. */
  told(): string[] {
    return this.#told.splice(0);
  }

  /** What is to be sent since the last call. */
  sent(): Buffer {
    const { output } = this.endpoint.sender;
    const bytes = Buffer.from(output.written);
    output.clear(true);
    return bytes;
  }

  /** What is to be sent, without the preface that a client begins with. */
  sentFrames(): Buffer {
    const bytes = this.sent();
    const { length } = PREFACE_BYTES;
    return bytes.subarray(0, length).equals(PREFACE_BYTES) ? bytes.subarray(length) : bytes;
  }

  onRequest(stream: Stream, block: FieldBlock, endsStream: boolean): void {
    stream.owner = this;
    this.streams.set(stream.id, stream);
    this.#note('request', stream, blockText(block), endsStream);
  }

  onFields(stream: Stream, block: FieldBlock, endsStream: boolean): void {
    this.#note('fields', stream, blockText(block), endsStream);
  }

  onData(stream: Stream, bytes: Buffer, endsStream: boolean): void {
    this.#note('data', stream, bytes.toString('latin1'), endsStream);
  }

  onSent(stream: Stream, bytes: number): void {
    this.#note('sent', stream, String(bytes), false);
  }

  onReset(stream: Stream, code: ErrorCode): void {
    this.#note('reset', stream, String(code), false);
  }

  onOver(stream: Stream): void {
    this.#note('over', stream, '', false);
  }

  onGoAway(code: ErrorCode): void {
    this.#told.push(`goaway ${code}`);
  }

  #note(what: string, { id }: Stream, text: string, endsStream: boolean): void {
    this.#told.push(`${what} ${id} ${text}${endsStream ? ' END' : ''}`.trimEnd());
  }
}

function blockText({ fields, isTooLarge }: FieldBlock): string {
  return isTooLarge ? 'too large' : fields.map(({ name, value }) => `${name}=${value}`).join(' ');
}
