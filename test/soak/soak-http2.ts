// HTTP/2 in a soak: the application's second listener, and a client's session.
import { connect, constants, createServer } from 'node:http2';
import type {
  ClientHttp2Session,
  ClientHttp2Stream,
  Http2Server,
  Http2Session,
  IncomingHttpHeaders,
  ServerHttp2Stream,
} from 'node:http2';
import { once } from 'node:events';

/** Answers `ok`, unless the path says `never`; tells each request's `x-id`. */
export class SoakHttp2Upstream implements AsyncDisposable {
  readonly #server: Http2Server;
  readonly #sessions = new Set<Http2Session>();

  private constructor(onRequest: (id: string) => void) {
    this.#server = createServer();
    this.#server.on('session', (session) => {
      this.#sessions.add(session);
      session.on('close', () => this.#sessions.delete(session));
      session.on('error', () => undefined);
    });
    this.#server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      stream.on('error', () => undefined);
      onRequest(String(headers['x-id'] ?? ''));
      if (headers[':path']?.endsWith('/never') === true) return;
      stream.respond({ ':status': 200 });
      stream.end('ok');
    });
  }

  static async open(onRequest: (id: string) => void): Promise<SoakHttp2Upstream> {
    const upstream = new SoakHttp2Upstream(onRequest);
    upstream.#server.listen({ host: '127.0.0.1', port: 0 });
    await once(upstream.#server, 'listening');
    return upstream;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const session of this.#sessions) session.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** A client's session with the sidecar. */
export class SoakHttp2Client implements AsyncDisposable {
  readonly #session: ClientHttp2Session;

  constructor(port: number) {
    this.#session = connect(`http://127.0.0.1:${String(port)}`);
    this.#session.on('error', () => undefined);
  }

  /** The status of the answer, which is read to its end. */
  async get(path: string, headers: Readonly<Record<string, string>>): Promise<number> {
    const stream = this.begin(path, headers);
    const answered: Promise<unknown[]> = once(stream, 'response');
    stream.resume();
    const [[fields]] = await Promise.all([answered, once(stream, 'close')]);
    return Number((fields as Record<string, unknown>)[':status']);
  }

  /** A request nobody waits for. */
  begin(path: string, headers: Readonly<Record<string, string>>): ClientHttp2Stream {
    const stream = this.#session.request({ ':path': path, ...headers });
    stream.on('error', () => undefined);
    return stream;
  }

  cancel(stream: ClientHttp2Stream): void {
    stream.close(constants.NGHTTP2_CANCEL);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#session.closed && this.#session.destroyed) return;
    const closed = once(this.#session, 'close');
    this.#session.destroy();
    await closed;
  }
}
