// Plays a case of the corpus: a client of its own against an application that gives the recorded bytes, with or without a
// sidecar between. Each side waits for what the other has to have sent by then, never for time.
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { RawSocket } from '../../support/raw-socket.ts';
import type { CorpusCase } from './case-file.ts';
import { hasReached, isAnswer, progressOf, readMessages } from './message.ts';
import type { Message, Progress, ReadingOptions } from './message.ts';

/** What both ends saw. */
export interface Played {
  readonly requests: readonly Message[];
  readonly responses: readonly Message[];
}

/** The application of all cases: it says what the case under way tells it to say. */
export class ReplayUpstream implements AsyncDisposable {
  /** Connections that brought bytes since the case began, in that order. */
  active: RawSocket[] = [];
  readonly #server: Server;
  readonly #open = new Set<RawSocket>();
  readonly #leaving: RawSocket[] = [];
  #changed = Promise.withResolvers<undefined>();

  private constructor() {
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      const connection = new RawSocket(socket);
      this.#open.add(connection);
      socket.on('data', () => {
        if (!this.active.includes(connection)) this.active.push(connection);
        this.#change();
      });
      socket.on('end', () => socket.end());
      socket.on('close', () => this.#open.delete(connection));
    });
  }

  static async open(): Promise<ReplayUpstream> {
    const upstream = new ReplayUpstream();
    await new Promise<void>((resolve) => {
      upstream.#server.listen({ host: '127.0.0.1', port: 0 }, resolve);
    });
    return upstream;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port; // a TCP server has no other address
  }

  /** Forgets the case before. */
  begin(): void {
    for (const connection of this.active) connection.received = '';
    this.active = [];
  }

  /** All bytes of the case so far. */
  get received(): string {
    return this.active.map(({ received }) => received).join('');
  }

  async until(condition: () => boolean): Promise<void> {
    const timer = setTimeout(() => {
      this.#changed.reject(new Error(`the application still waits; it has ${this.received}`));
    }, WAIT_MS);
    try {
      while (!condition()) await this.#changed.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Says the bytes on the connection that asked last. */
  say(bytes: string): void {
    this.active.at(-1)?.send(bytes);
  }

  /** Ends the connection that asked last. */
  hangUp(): void {
    const connection = this.active.at(-1);
    if (connection === undefined) return;
    connection.end();
    this.#leaving.push(connection);
  }

  /** Resolves once nobody can take a connection that was hung up for one in use. */
  async settled(): Promise<void> {
    for (const connection of this.#leaving.splice(0)) await connection.gone();
  }

  #change(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers<undefined>();
    this.#changed.promise.catch(() => undefined);
    resolve(undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#open) await connection[Symbol.asyncDispose]();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

const WAIT_MS = 5_000;

/** Plays a case with the client at `port`: the upstream's own, or a sidecar's in front of it. */
export async function play(
  exchange: CorpusCase,
  upstream: ReplayUpstream,
  port: number,
): Promise<Played> {
  upstream.begin();
  const client = await RawSocket.connect(port);
  const played = await playWith(exchange, upstream, client);
  await client[Symbol.asyncDispose]();
  await upstream.settled();
  return played;
}

async function playWith(
  { steps }: CorpusCase,
  upstream: ReplayUpstream,
  client: RawSocket,
): Promise<Played> {
  const script = new Script(steps.some((step) => 'bytes' in step && step.bytes.startsWith(SWITCH)));
  for (const step of steps) {
    if (step.kind === 'client') {
      await client.waitFor(() => script.hasHeard(client), 'the answer so far');
      script.sent += step.bytes;
      client.send(step.bytes);
    } else if (step.kind === 'application') {
      await upstream.until(() => script.hasAsked(upstream.received));
      script.said += step.bytes;
      upstream.say(step.bytes);
    } else {
      script.closes = true;
      upstream.hangUp();
    }
  }
  await client.waitFor(() => script.hasHeard(client), 'the whole answer');
  return {
    requests: script.requests(upstream.received),
    responses: script.responses(client.received, client.ended),
  };
}

/** The start line of Weir's own answer: to what a case sends, or for what its application says to that. */
export async function refusalOf(
  { steps }: CorpusCase,
  upstream: ReplayUpstream,
  port: number,
): Promise<string> {
  upstream.begin();
  await using client = await RawSocket.connect(port);
  for (const step of steps) {
    if (step.kind === 'client') client.send(step.bytes);
    if (step.kind !== 'application') continue;
    await upstream.until(() => upstream.received.includes('\r\n\r\n'));
    upstream.say(step.bytes);
  }
  return (await client.response()).startLine;
}

const SWITCH = 'HTTP/1.1 101 ';

/** What has been said so far, and what that means for whoever waits. */
class Script {
  sent = '';
  said = '';
  closes = false;
  readonly #tunnels: boolean;

  constructor(tunnels: boolean) {
    this.#tunnels = tunnels;
  }

  requests(text: string): Message[] {
    return readMessages(text, this.#reading('request', false));
  }

  responses(text: string, ended: boolean): Message[] {
    const methods = this.requests(this.sent).map(({ startLine }) => startLine.split(' ')[0] ?? '');
    return readMessages(text, { ...this.#reading('response', ended), methods });
  }

  /** Whether the application has what it answers now: the next unanswered request, as far as it was sent. */
  hasAsked(received: string): boolean {
    const sent = this.requests(this.sent);
    const answered = this.responses(this.said, false).filter(isFinal).length;
    const due: Progress =
      sent[answered]?.isComplete === true
        ? { complete: answered + 1, heads: answered + 1, content: 0 }
        : progressOf(sent);
    return hasReached(progressOf(this.requests(received)), due);
  }

  /** Whether the client has all that the application said. */
  hasHeard(client: RawSocket): boolean {
    const due = this.responses(this.said, this.closes);
    const heard = this.responses(client.received, client.ended);
    if (this.#isOld()) return heard.filter(isFinal).length >= due.filter(isFinal).length;
    return hasReached(progressOf(heard), progressOf(due));
  }

  /** HTTP/1.0 has no interim responses: the client waits for the final one only. */
  #isOld(): boolean {
    return this.requests(this.sent)[0]?.startLine.endsWith('HTTP/1.0') === true;
  }

  #reading(kind: 'request' | 'response', ended: boolean): ReadingOptions {
    return { kind, ended, tunnels: this.#tunnels };
  }
}

/** Whether it is the whole answer to a request. */
export function isFinal(message: Message): boolean {
  return message.isComplete && isAnswer(message);
}
