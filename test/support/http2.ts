// Node's own HTTP/2 (nghttp2) on both sides of a proxy: who else should say whether ours is right.
import { once } from 'node:events';
import {
  connect,
  createServer,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type Http2Server,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type Settings,
} from 'node:http2';
import { buffer } from 'node:stream/consumers';
import { closed, listenOnLoopback, portOf } from './loopback.ts';

type OnStream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

/** An application that speaks h2c. */
export class Http2Upstream implements AsyncDisposable {
  readonly port: number;
  /** Fields of every request so far. */
  readonly seen: IncomingHttpHeaders[] = [];
  /** Reset codes of streams that have closed. */
  readonly closed: number[] = [];
  readonly sessions: Set<ServerHttp2Session> = new Set<ServerHttp2Session>();
  readonly #server: Http2Server;

  private constructor(server: Http2Server) {
    this.#server = server;
    this.port = portOf(server);
  }

  static async open(onStream: OnStream, settings: Settings = {}): Promise<Http2Upstream> {
    // Of Node's own: megabytes of answers that nobody reads would end the session.
    const server = createServer({ settings, maxSessionMemory: 1_000 });
    await listenOnLoopback(server);
    const upstream = new Http2Upstream(server);
    server.on('session', (session) => {
      upstream.sessions.add(session);
      session.on('error', () => undefined);
      session.on('close', () => upstream.sessions.delete(session));
    });
    server.on('stream', (stream: ServerHttp2Stream, headers) => {
      upstream.seen.push(headers);
      stream.on('error', () => undefined);
      stream.on('close', () => upstream.closed.push(stream.rstCode));
      onStream(stream, headers);
    });
    return upstream;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const session of this.sessions) session.destroy();
    await closed(this.#server);
  }
}

export interface Http2Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly trailers: IncomingHttpHeaders;
  /** Statuses of interim responses, in order. */
  readonly interims: readonly number[];
}

/** A client connection by prior knowledge. */
export class Http2Client implements AsyncDisposable {
  readonly session: ClientHttp2Session;
  /** Set once GOAWAY has come: its last stream. */
  goaway: number | undefined;
  readonly closed: Promise<unknown>;

  constructor(authority: string, options: Parameters<typeof connect>[1] = {}) {
    this.session = connect(authority, options);
    this.session.on('error', () => undefined);
    this.session.on('goaway', (_code: number, last?: number) => {
      this.goaway = last;
    });
    this.closed = once(this.session, 'close');
  }

  static to(port: number): Http2Client {
    return new Http2Client(`http://127.0.0.1:${port}`);
  }

  stream(headers: OutgoingHttpHeaders, endStream = true): ClientHttp2Stream {
    const stream = this.session.request(headers, { endStream });
    stream.on('error', () => undefined);
    return stream;
  }

  /** One request, to its end. Rejects when it is reset. */
  async ask(headers: OutgoingHttpHeaders, body?: Buffer | string): Promise<Http2Answer> {
    const stream = this.stream(headers, body === undefined);
    if (body !== undefined) stream.end(body);
    return answerTo(stream);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.session.destroy();
    await this.closed;
  }
}

/** Resolves when a stream has closed, with or without an error. */
export function closeOf(stream: ClientHttp2Stream): Promise<void> {
  return new Promise((resolve) => {
    stream.on('close', resolve);
  });
}

/** What comes back on a stream. Rejects when it is reset. */
export async function answerTo(stream: ClientHttp2Stream): Promise<Http2Answer> {
  const interims: number[] = [];
  let trailers: IncomingHttpHeaders = {};
  stream.on('headers', (headers) => interims.push(headers[':status'] ?? 0));
  stream.on('trailers', (headers) => (trailers = headers));
  const closed = closeOf(stream);
  const response = Promise.withResolvers<IncomingHttpHeaders & IncomingHttpStatusHeader>();
  stream.on('response', (headers) => {
    response.resolve(headers);
  });
  void closed.then(() => {
    response.reject(new Error(`reset with ${String(stream.rstCode)} before a response`));
  });
  const headers = await response.promise;
  const body = await buffer(stream).catch(() => Buffer.alloc(0));
  await closed;
  if (stream.rstCode !== 0) throw new Error(`reset with ${String(stream.rstCode)}`);
  return { status: headers[':status'] ?? 0, headers, body, trailers, interims };
}
