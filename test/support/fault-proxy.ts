// A TCP proxy of the test's own that does to a connection what networks do: loses answers, delays, freezes, cuts.
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { listenOnLoopback, portOf } from './loopback.ts';

export class FaultProxy implements AsyncDisposable {
  /** Bytes from the server are thrown away while this is set; the connection stays. */
  losesReplies = false;
  /** Bytes from the client are thrown away while this is set. */
  losesRequests = false;
  /** How long bytes from the server are held back. */
  delayMs = 0;
  /** New connections are refused while this is set. */
  refuses = false;
  /** Connections ever accepted. */
  opened = 0;
  readonly #server: Server;
  readonly #targetPort: number;
  readonly #pairs = new Set<readonly [Socket, Socket]>();

  private constructor(server: Server, targetPort: number) {
    this.#server = server;
    this.#targetPort = targetPort;
    server.on('connection', (client) => {
      this.#join(client);
    });
  }

  /** Listens on a free port in front of a server on this host. */
  static async open(targetPort: number): Promise<FaultProxy> {
    const server = createServer();
    const proxy = new FaultProxy(server, targetPort);
    await listenOnLoopback(server);
    return proxy;
  }

  get port(): number {
    return portOf(this.#server);
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Connections that are open now. */
  get connections(): number {
    return this.#pairs.size;
  }

  /** Resets every connection. */
  cut(): void {
    for (const pair of [...this.#pairs]) {
      // Forgotten first: a destroy() on top of a reset that is under way leaves the descriptor open for ever.
      this.#pairs.delete(pair);
      for (const socket of pair) socket.resetAndDestroy();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    for (const pair of [...this.#pairs]) {
      this.#pairs.delete(pair);
      // Closed, not reset: a reset that meets the other side's leaves a handle that Node waits for at its end, for ever.
      for (const socket of pair) socket.destroy();
    }
    await once(this.#server, 'close');
  }

  #join(client: Socket): void {
    this.opened += 1;
    if (this.refuses) {
      client.resetAndDestroy();
      return;
    }
    const server = connect(this.#targetPort, '127.0.0.1');
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    client.setNoDelay(true);
    server.setNoDelay(true);
    client.on('data', (data) => {
      if (!this.losesRequests) server.write(data);
    });
    server.on('data', (data) => {
      if (this.losesReplies) return;
      if (this.delayMs === 0) client.write(data);
      else setTimeout(() => client.write(data), this.delayMs).unref();
    });
    for (const [one, other] of [pair, [server, client]] as const) {
      one.on('error', () => undefined);
      one.on('close', () => {
        if (this.#pairs.delete(pair)) other.destroy();
      });
    }
  }
}
