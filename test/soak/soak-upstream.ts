// The application of a soak: Node's own server, which does what the path asks of it, the bad things included. It tells
// when it has seen a request, so that a client can go at a moment it knows.
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { closed, listenOnLoopback, portOf } from '../support/loopback.ts';

type Conduct = (request: IncomingMessage, response: ServerResponse) => void;

/** By the last segment of the path. */
const conducts: Readonly<Record<string, Conduct>> = {
  ok: (_request, response) => {
    response.end('ok');
  },
  large: (_request, response) => {
    response.end(LARGE);
  },
  chunks: (_request, response) => {
    for (let i = 0; i < 8; i += 1) response.write(`piece ${String(i)}\n`);
    response.end();
  },
  /** Begins, and goes on until somebody gives up. */
  endless: (_request, response) => {
    response.write('first\n');
    const more = setInterval(() => response.write('more\n'), 20);
    response.on('close', () => {
      clearInterval(more);
    });
  },
  upload: (request, response) => {
    let length = 0;
    request.on('data', (bytes: Buffer) => (length += bytes.length));
    request.on('end', () => {
      response.end(String(length));
    });
  },
  early: (_request, response) => {
    response.writeHead(413, { 'Content-Length': 2 });
    response.end('no');
  },
  later: (_request, response) => {
    setTimeout(() => response.end('later'), 30);
  },
  hints: (_request, response) => {
    response.writeProcessing();
    response.writeEarlyHints({ link: '</a.css>; rel=preload' });
    response.end('hinted');
  },
  took: (request, response) => {
    response.setHeader('X-Took', request.headers['x-will-take'] ?? '0');
    response.end('took');
  },
  reset: (request) => {
    request.socket.resetAndDestroy();
  },
  cut: (request, response) => {
    response.writeHead(200, { 'Content-Length': 100 });
    response.write('half', () => {
      request.socket.destroy();
    });
  },
  bad: (request) => {
    request.socket.end('HTTP/1.1 2x0 Nonsense\r\n\r\n');
  },
  never: () => undefined,
};

const LARGE = 'x'.repeat(60_000);
const SWITCHING =
  'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n';

export class SoakUpstream implements AsyncDisposable {
  /** Requests and upgrades that came. */
  seen = 0;
  readonly #server: Server;
  readonly #waiting = new Map<string, () => void>();
  readonly #tunnels = new Set<Duplex>();

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#note(request);
      request.on('error', () => undefined);
      response.on('error', () => undefined);
      const name = (request.url ?? '').split('/').at(-1) ?? '';
      (conducts[name] ?? conducts['ok'])?.(request, response);
    });
    this.#server.on('upgrade', (request, socket: Duplex) => {
      this.#note(request);
      this.#tunnels.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => this.#tunnels.delete(socket));
      socket.write(SWITCHING);
      socket.pipe(socket);
    });
    this.#server.on('clientError', (_error, socket) => socket.destroy());
  }

  static async open(): Promise<SoakUpstream> {
    const upstream = new SoakUpstream();
    await listenOnLoopback(upstream.#server);
    return upstream;
  }

  get port(): number {
    return portOf(this.#server);
  }

  /** Resolves once the request with that `X-Id` has come; to be called before it is sent. */
  async sees(id: string): Promise<void> {
    await new Promise<void>((resolve) => this.#waiting.set(id, resolve));
  }

  #note(request: IncomingMessage): void {
    this.note(String(request.headers['x-id'] ?? ''));
  }

  /** A request with that `X-Id` has come. */
  note(id: string): void {
    this.seen += 1;
    this.#waiting.get(id)?.();
    this.#waiting.delete(id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#tunnels) socket.destroy();
    this.#server.closeAllConnections();
    await closed(this.#server);
  }
}
