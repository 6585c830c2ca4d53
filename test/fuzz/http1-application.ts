// The strict application of HTTP/1.1 behind the fuzzed sidecar: takes its bytes apart by itself, keeps what it saw, and answers what
// the round under way says. Afterwards llhttp has to agree with it about every connection.
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { readMessages } from '../conformance/http/message.ts';
import type { Message } from '../conformance/http/message.ts';
import { seenByLlhttp } from '../support/llhttp.ts';
import { closed, listenOnLoopback, portOf } from '../support/loopback.ts';
import { MARK } from './dialect.ts';
import type { Answering, FuzzedApplication } from './dialect.ts';
import { plainForLlhttp } from './http1-reading.ts';

export class Http1Application implements FuzzedApplication {
  /** Heads of requests that came, whole or not. */
  heads = 0;
  /** What two strict readers saw differently, or nobody could read. */
  readonly findings: string[] = [];
  answering: Answering | undefined = undefined;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor() {
    this.#server = createServer({ noDelay: true }, (socket) => {
      this.#sockets.add(socket);
      new Conversation(socket, this);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  static async open(): Promise<Http1Application> {
    const application = new Http1Application();
    await listenOnLoopback(application.#server);
    return application;
  }

  get port(): number {
    return portOf(this.#server);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await closed(this.#server);
  }
}

/** One connection: bytes in, whole requests seen, answers out. */
class Conversation {
  readonly #socket: Socket;
  readonly #application: Http1Application;
  /** What has not been read as a whole request. */
  #rest = '';
  #headCounted = false;

  constructor(socket: Socket, application: Http1Application) {
    this.#socket = socket;
    this.#application = application;
    socket.on('error', () => undefined);
    socket.on('data', (bytes: Buffer) => {
      this.#take(bytes.toString('latin1'));
    });
  }

  #take(text: string): void {
    this.#rest += text;
    try {
      this.#read();
    } catch (error) {
      this.#find(`unreadable (${String(error)})`, this.#rest);
      this.#socket.destroy();
    }
  }

  #read(): void {
    const messages = readMessages(this.#rest, { kind: 'request', tunnels: false, ended: false });
    for (const message of messages) {
      if (!this.#headCounted) this.#application.heads += 1;
      this.#headCounted = !message.isComplete;
      if (message.isComplete) this.#answer(message);
    }
  }

  #answer(message: Message): void {
    const length = message.prefix.length + message.headLength + message.body.length;
    this.#judge(this.#rest.slice(0, length), message);
    this.#rest = this.#rest.slice(length);
    const known = this.#application.answering?.(message);
    if (known === undefined) return;
    const { answer, mark } = known;
    this.#socket.write(answer.bytes.replaceAll(MARK, mark), 'latin1');
    if (answer.then === 'close') this.#socket.end();
    if (answer.then === 'reset') this.#socket.resetAndDestroy();
  }

  // The sidecar passes what it read; here two others read the same.
  #judge(text: string, message: Message): void {
    const { messages, error } = seenByLlhttp('request', plainForLlhttp(text));
    const [first] = messages;
    if (error !== undefined || messages.length !== 1 || first?.complete !== true) {
      this.#find(`llhttp says ${error ?? `${String(messages.length)} messages`}`, text);
    }
    if (message.prefix !== '') this.#find('an empty line before the request', text);
  }

  #find(what: string, text: string): void {
    this.#application.findings.push(
      `the application: ${what}: ${JSON.stringify(text.slice(0, 2_000))}`,
    );
  }
}
