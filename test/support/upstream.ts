// Applications for tests: one whose every byte the test sends itself, and one that answers each request at once.
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { closed, listenOnLoopback, portOf } from './loopback.ts';
import { RawSocket } from './raw-socket.ts';

/** The test speaks for the application, connection by connection. */
export class ScriptedUpstream implements AsyncDisposable {
  readonly port: number;
  readonly connections: RawSocket[];
  readonly #server: Server;
  readonly #arrivals: Arrivals;
  #taken = 0;

  private constructor(server: Server, connections: RawSocket[], arrivals: Arrivals) {
    this.#server = server;
    this.port = portOf(server);
    this.connections = connections;
    this.#arrivals = arrivals;
  }

  static async open(): Promise<ScriptedUpstream> {
    const connections: RawSocket[] = [];
    const arrivals = new Arrivals();
    const server = await listening((socket) => {
      connections.push(new RawSocket(socket));
      arrivals.notify();
    });
    return new ScriptedUpstream(server, connections, arrivals);
  }

  /** The next connection that has not been handed out. */
  async accept(): Promise<RawSocket> {
    const at = this.#taken;
    this.#taken += 1;
    for (;;) {
      const connection = this.connections[at];
      if (connection !== undefined) return connection;
      await this.#arrivals.next();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.connections) await connection[Symbol.asyncDispose]();
    await closed(this.#server);
  }
}

/** Answers every request head it sees; bodies are not looked at, so requests must have none. */
export class AnsweringUpstream implements AsyncDisposable {
  readonly port: number;
  /** Heads in the order they came. */
  readonly heads: string[];
  readonly #server: Server;
  readonly #sockets: Set<Socket>;

  private constructor(server: Server, heads: string[], sockets: Set<Socket>) {
    this.#server = server;
    this.port = portOf(server);
    this.heads = heads;
    this.#sockets = sockets;
  }

  static async open(answer: string | ((head: string) => string)): Promise<AnsweringUpstream> {
    const heads: string[] = [];
    const sockets = new Set<Socket>();
    const server = await listening((socket) => {
      sockets.add(socket);
      let text = '';
      socket.on('error', () => undefined);
      socket.on('end', () => socket.end());
      socket.on('data', (bytes: Buffer) => {
        text += bytes.toString('latin1');
        for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
          const head = text.slice(0, end + 4);
          heads.push(head);
          text = text.slice(end + 4);
          socket.write(typeof answer === 'string' ? answer : answer(head), 'latin1');
        }
      });
    });
    return new AnsweringUpstream(server, heads, sockets);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await closed(this.#server);
  }
}

/** A port nothing listens on. */
export async function closedPort(): Promise<number> {
  const server = await listening(() => undefined);
  const port = portOf(server);
  await closed(server);
  return port;
}

class Arrivals {
  #next = Promise.withResolvers<undefined>();

  notify(): void {
    this.#next.resolve(undefined);
    this.#next = Promise.withResolvers<undefined>();
  }

  async next(): Promise<void> {
    const timer = setTimeout(() => {
      this.#next.reject(new Error('no connection came to the upstream'));
    }, 10_000);
    await this.#next.promise.finally(() => {
      clearTimeout(timer);
    });
  }
}

async function listening(onConnection: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, onConnection);
  await listenOnLoopback(server);
  return server;
}
