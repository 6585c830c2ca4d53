// Paced traffic over keep-alive connections, with an account of every request.
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';

export interface Sent {
  /** `performance.now()` before the request was written and after its answer was whole. */
  readonly sentMs: number;
  readonly doneMs: number;
  readonly status: number;
}

export interface LoadOptions {
  readonly ports: readonly number[];
  readonly connectionsEach: number;
  /** Requests a second over all connections; what the other side does not keep up with is sent later, not dropped. */
  readonly rate: number;
  readonly key: string;
  /** Ends the load; requests under way are finished. */
  readonly signal: AbortSignal;
}

/** Drives until the signal and resolves with every request in the order of their answers. */
export async function driveLoad(options: LoadOptions): Promise<Sent[]> {
  const { ports, connectionsEach, rate, signal } = options;
  const total = ports.length * connectionsEach;
  const stepMs = (1_000 * total) / rate;
  const sent: Sent[] = [];
  const request = `GET /v1/items HTTP/1.1\r\nHost: load\r\nX-Api-Key: ${options.key}\r\n\r\n`;
  const runs = ports.flatMap((port, p) =>
    Array.from({ length: connectionsEach }, (_, c) => {
      const offsetMs = (stepMs * (p * connectionsEach + c)) / total;
      return driveConnection({ port, request, stepMs, offsetMs, signal, sent });
    }),
  );
  await Promise.all(runs);
  return sent;
}

interface Connection {
  readonly port: number;
  readonly request: string;
  readonly stepMs: number;
  readonly offsetMs: number;
  readonly signal: AbortSignal;
  readonly sent: Sent[];
}

async function driveConnection(connection: Connection): Promise<void> {
  const { request, stepMs, signal, sent } = connection;
  let answers: Answers | undefined;
  let dueMs = performance.now() + connection.offsetMs;
  while (!signal.aborted) {
    await pauseUntil(dueMs);
    dueMs = Math.max(dueMs + stepMs, performance.now() - stepMs);
    answers ??= await Answers.open(connection.port);
    const sentMs = performance.now();
    const { status, isLast } = await answers.ask(request);
    sent.push({ sentMs, doneMs: performance.now(), status });
    if (!isLast) continue;
    answers.close();
    answers = undefined;
  }
  answers?.close();
}

async function pauseUntil(dueMs: number): Promise<void> {
  const waitMs = dueMs - performance.now();
  if (waitMs <= 0) return;
  const { promise, resolve } = Promise.withResolvers<undefined>();
  setTimeout(resolve, waitMs);
  await promise;
}

class Answers {
  readonly #socket: Socket;
  #text = '';
  #waiting: PromiseWithResolvers<{ status: number; isLast: boolean }> | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (bytes: Buffer) => {
      this.#text += bytes.toString('latin1');
      this.#settle();
    });
    const fail = (): void => this.#waiting?.reject(new Error('the connection broke'));
    socket.on('error', fail);
    socket.on('close', fail);
  }

  static async open(port: number): Promise<Answers> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new Answers(socket);
  }

  async ask(request: string): Promise<{ status: number; isLast: boolean }> {
    this.#waiting = Promise.withResolvers();
    this.#socket.write(request, 'latin1');
    return this.#waiting.promise;
  }

  close(): void {
    this.#waiting = undefined;
    this.#socket.destroy();
  }

  #settle(): void {
    const end = this.#text.indexOf('\r\n\r\n');
    if (end < 0) return;
    const head = this.#text.slice(0, end);
    const length = Number(/\r\ncontent-length: *([0-9]+)/i.exec(head)?.[1] ?? 0);
    if (this.#text.length < end + 4 + length) return;
    this.#text = this.#text.slice(end + 4 + length);
    const isLast = /\r\nconnection: *close/i.test(head);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve({ status: Number(head.slice(9, 12)), isLast });
  }
}
