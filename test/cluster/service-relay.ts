// What a Service does, where there is none: connections to one port go to whichever of several servers takes them.
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { listenOnLoopback, portOf } from '../support/loopback.ts';

export class ServiceRelay implements AsyncDisposable {
  readonly port: number;
  readonly #server: Server;
  readonly #targets: readonly number[];
  readonly #sockets = new Set<Socket>();
  #turn = 0;

  private constructor(server: Server, targets: readonly number[]) {
    this.#server = server;
    this.#targets = targets;
    this.port = portOf(server);
    server.on('connection', (client) => {
      this.#turn += 1;
      this.#track(client);
      this.#tryNext(client, this.#turn, targets.length);
    });
  }

  /** On a free loopback port, in front of loopback ports. */
  static async open(targets: readonly number[]): Promise<ServiceRelay> {
    const server = createServer({ noDelay: true, pauseOnConnect: true });
    await listenOnLoopback(server);
    return new ServiceRelay(server, targets);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server, 'close');
  }

  /** A server that is away refuses at once, and the next one is asked. */
  #tryNext(client: Socket, turn: number, left: number): void {
    const port = this.#targets[turn % this.#targets.length];
    if (port === undefined || left === 0) {
      client.destroy();
      return;
    }
    const server = connect({ port, host: '127.0.0.1', noDelay: true });
    const onRefused = (): void => {
      this.#tryNext(client, turn + 1, left - 1);
    };
    server.once('error', onRefused);
    server.once('connect', () => {
      server.off('error', onRefused);
      this.#join(client, server);
    });
  }

  #join(client: Socket, server: Socket): void {
    this.#track(server);
    client.pipe(server);
    server.pipe(client);
    client.on('close', () => server.destroy());
    server.on('close', () => client.destroy());
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
  }
}
