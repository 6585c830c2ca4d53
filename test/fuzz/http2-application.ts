// The strict application of HTTP/2 behind the fuzzed sidecar, by prior knowledge: reads what the sidecar says as the oracle
// reads clients, takes nothing that is not quite right, and answers what the rounds under way say. Connections differ in
// what they allow the sidecar.
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { FLAG, frame, settings, uint32 } from '../support/http2-frames.ts';
import { closed, listenOnLoopback, portOf } from '../support/loopback.ts';
import { MARK } from './dialect.ts';
import type { Answer, Answering, FuzzedApplication, SeenRequest } from './dialect.ts';
import { ClientStreams } from './http2/client-streams.ts';
import type { ClientStream } from './http2/client-streams.ts';
import { literalBlock } from './http2/hpack-writer.ts';
import { STREAM_ID, TAG } from './http2/placeholders.ts';
import { asStrictRequest, NO_TAG, tagsIn } from './http2-reading.ts';

/** Requests to such a path are answered when their head has come, not when they are whole. */
const EARLY = '/early';

const [HEADER_TABLE_SIZE, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, CONNECT_PROTOCOL] = [
  1, 3, 4, 8,
];
const DEFAULT_WINDOW = 65_535;
/** Requests of a connection that may be under way when something is said that refuses them all. */
const MOST_NOTED = 300;
/** Requests over connections that are not sound any more which are remembered: more than those of all rounds under way. */
const MOST_SPOILT = 10_000;

interface Terms {
  readonly tableBytes?: number;
  readonly streams?: number;
  readonly window?: number;
  readonly takesProtocols?: boolean;
}

/** In turns by connection. */
const TERMS: readonly Terms[] = [
  { takesProtocols: true },
  { streams: 3 },
  { tableBytes: 0, takesProtocols: true },
  { window: 10, streams: 20 },
  { tableBytes: 100 },
  { window: 1_000_000, takesProtocols: true },
  { streams: 1, tableBytes: 8_192 },
];

export class Http2Application implements FuzzedApplication {
  heads = 0;
  readonly findings: string[] = [];
  answering: Answering | undefined = undefined;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** By their fields. */
  readonly #spoilt = new Set<string>();
  #connections = 0;

  private constructor() {
    this.#server = createServer({ noDelay: true }, (socket) => {
      this.#sockets.add(socket);
      new Conversation(socket, this, TERMS[this.#connections % TERMS.length] ?? {});
      this.#connections += 1;
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  static async open(): Promise<Http2Application> {
    const application = new Http2Application();
    await listenOnLoopback(application.#server);
    return application;
  }

  get port(): number {
    return portOf(this.#server);
  }

  hasSpoilt({ startLine }: SeenRequest): boolean {
    return this.#spoilt.has(startLine);
  }

  /** Told of a request that is not whole on a connection that is not sound any more. */
  spoil({ startLine }: SeenRequest): void {
    this.#spoilt.add(startLine);
    if (this.#spoilt.size <= MOST_SPOILT) return;
    const [oldest = ''] = this.#spoilt;
    this.#spoilt.delete(oldest);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await closed(this.#server);
  }
}

/** A request as the rounds see it, which learn here that it may come again. */
interface Noted extends SeenRequest {
  isRefused: boolean;
}

/** One connection of the sidecar. */
class Conversation {
  readonly #socket: Socket;
  readonly #application: Http2Application;
  readonly #terms: Terms;
  readonly #said: ClientStreams;
  /** What may still come, by stream; 0: on all together. */
  readonly #windows = new Map<number, number>([[0, DEFAULT_WINDOW]]);
  readonly #noted: Noted[] = [];
  /** Until something invalid has been said: from then on the sidecar may think of windows what it likes. */
  #isSound = true;

  constructor(socket: Socket, application: Http2Application, terms: Terms) {
    this.#socket = socket;
    this.#application = application;
    this.#terms = terms;
    this.#said = new ClientStreams({
      onHead: (stream) => {
        this.#onHead(stream);
      },
      onData: (stream, data, length) => {
        this.#onData(stream, data, length);
      },
      onWhole: (stream) => {
        this.#onWhole(stream);
      },
      onSettingsAck: () => {
        const { tableBytes } = terms;
        if (tableBytes !== undefined) this.#said.hpack.limit(tableBytes);
      },
    });
    socket.on('error', () => undefined);
    socket.on('data', (bytes: Buffer) => {
      this.#take(bytes);
    });
    socket.write(frame('SETTINGS', 0, settings(...settingsOf(terms))));
  }

  #take(bytes: Buffer): void {
    const told = this.#said.tableSizes.length;
    this.#said.read(bytes);
    for (let acks = this.#said.tableSizes.length - told; acks > 0; acks -= 1) {
      this.#socket.write(frame('SETTINGS', 0, '', FLAG.ack));
    }
    const { fault, doubt, flaws } = this.#said;
    const wrong = fault ?? doubt ?? flaws[0];
    if (wrong === undefined || this.#socket.destroyed) return;
    this.#find(wrong);
    this.#socket.destroy();
  }

  #onHead(stream: ClientStream): void {
    this.#application.heads += 1;
    this.#windows.set(stream.id, this.#terms.window ?? DEFAULT_WINDOW);
    if (!this.#isSound) this.#application.spoil(asStrictRequest(stream));
    if (stream.head?.protocol !== undefined && this.#terms.takesProtocols !== true) {
      this.#find('a protocol that was never offered');
    }
    if (isTunnel(stream))
      this.#write(frame('HEADERS', stream.id, tunnelHead(stream), FLAG.endHeaders));
    else if (isEarly(stream)) this.#write(earlyAnswer(stream));
  }

  #onData(stream: ClientStream, data: string, length: number): void {
    this.#shrink(0, length);
    this.#shrink(stream.id, length);
    if (isTunnel(stream) && data.length > 0) this.#write(frame('DATA', stream.id, data));
    if (length === 0) return;
    // Credited at once, or else a window of ten bytes were no more than that.
    this.#write(frame('WINDOW_UPDATE', 0, uint32(length)));
    this.#windows.set(0, (this.#windows.get(0) ?? 0) + length);
    this.#write(frame('WINDOW_UPDATE', stream.id, uint32(length)));
    this.#windows.set(stream.id, (this.#windows.get(stream.id) ?? 0) + length);
  }

  #shrink(id: number, length: number): void {
    const left = (this.#windows.get(id) ?? 0) - length;
    this.#windows.set(id, left);
    if (left < 0 && this.#isSound) this.#find(`more than the window of stream ${id}`);
  }

  #onWhole(stream: ClientStream): void {
    const { startLine, body } = asStrictRequest(stream);
    // What came behind a refusal of all is refused too.
    const noted: Noted = { startLine, body, isRefused: !this.#isSound };
    this.#noted.push(noted);
    if (this.#noted.length > MOST_NOTED) this.#noted.shift();
    const known = this.#application.answering?.(noted);
    if (known === undefined) return;
    if (isTunnel(stream)) this.#write(frame('DATA', stream.id, '', FLAG.endStream));
    else if (!isEarly(stream)) this.#answer(stream, known.answer, known.mark);
  }

  #answer(stream: ClientStream, answer: Answer, mark: string): void {
    const tag = tagsIn(textOf(stream))[0]?.slice(-TAG.length) ?? NO_TAG;
    const id = uint32(stream.id).toString('latin1');
    const marked = answer.bytes.replaceAll(MARK, mark).replaceAll(TAG, tag);
    if (!answer.isSound) this.#spoil();
    this.#write(Buffer.from(marked.replaceAll(STREAM_ID, id), 'latin1'));
    if (answer.then === 'close') this.#socket.end();
    // Of a socket that is ending Node would keep the handle for ever.
    if (answer.then === 'reset' && this.#socket.writable) this.#socket.resetAndDestroy();
  }

  #spoil(): void {
    this.#isSound = false;
    // What is not sound may be a refusal, of this request or of all.
    for (const noted of this.#noted) noted.isRefused = true;
    for (const stream of this.#said.streams.values()) {
      if (stream.state === 'open') this.#application.spoil(asStrictRequest(stream));
    }
  }

  #write(bytes: Buffer): void {
    if (this.#socket.writable) this.#socket.write(bytes);
  }

  #find(what: string): void {
    const requests = [...this.#said.streams.values()].slice(-3).map(textOf);
    this.#application.findings.push(
      `the application: ${what}: ${JSON.stringify(requests).slice(-1_000)}`,
    );
  }
}

function settingsOf(terms: Terms): (readonly [id: number, value: number])[] {
  const entries: (readonly [id: number, value: number | undefined])[] = [
    [HEADER_TABLE_SIZE, terms.tableBytes],
    [MAX_CONCURRENT_STREAMS, terms.streams],
    [INITIAL_WINDOW_SIZE, terms.window],
    [CONNECT_PROTOCOL, terms.takesProtocols === true ? 1 : undefined],
  ];
  return entries.flatMap(([id, value]) => (value === undefined ? [] : [[id, value] as const]));
}

function textOf(stream: ClientStream): string {
  const { startLine, body } = asStrictRequest(stream);
  return `${startLine}\n\n${body}`;
}

function isTunnel({ head }: ClientStream): boolean {
  return head?.protocol !== undefined;
}

function isEarly({ head }: ClientStream): boolean {
  return head?.path.includes(EARLY) === true;
}

function tunnelHead(stream: ClientStream): Buffer {
  return literalBlock([
    [':status', '200'],
    ['x-echo', tagsIn(textOf(stream))[0] ?? NO_TAG],
  ]);
}

/** To a HEAD request that is all, to others there is a body. */
function earlyAnswer(stream: ClientStream): Buffer {
  const head = tunnelHead(stream);
  if (stream.head?.method === 'HEAD') {
    return frame('HEADERS', stream.id, head, FLAG.endHeaders | FLAG.endStream);
  }
  return Buffer.concat([
    frame('HEADERS', stream.id, head, FLAG.endHeaders),
    frame('DATA', stream.id, 'early', FLAG.endStream),
  ]);
}
