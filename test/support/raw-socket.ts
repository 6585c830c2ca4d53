// One end of a TCP connection under a test's control: sends exactly the bytes it is told, and waits for bytes with a
// deadline. Text is Latin-1 both ways. Serves as a client and as the application's side of a connection.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import type { Socket } from 'node:net';

/** Longer than any loaded machine needs; a wait that hits it is a failure with a message. */
const WAIT_MS = 5_000;

/** Waits for something that no socket of the test announces; looked at once per turn of the event loop. */
export async function eventually(condition: () => boolean, what: string): Promise<void> {
  const deadlineMs = performance.now() + WAIT_MS;
  while (!condition()) {
    assert(performance.now() < deadlineMs, `still waiting for ${what}`);
    await new Promise(setImmediate);
  }
}

/** Waits until a number has not changed for many turns of the event loop. */
export async function untilStill(read: () => number): Promise<void> {
  let last = -1;
  let still = 0;
  await eventually(() => {
    still = read() === last && last > 0 ? still + 1 : 0;
    last = read();
    return still > 2_000;
  }, 'stillness');
}

export interface RawResponse {
  readonly status: number;
  readonly startLine: string;
  /** Names in lower case, lines of one name joined by `, `. */
  readonly fields: ReadonlyMap<string, string>;
  /** Start line and fields as they came. */
  readonly head: string;
  /** Body with its framing as it came. */
  readonly body: string;
}

export class RawSocket implements AsyncDisposable {
  /** How long a wait may take. */
  patienceMs: number = WAIT_MS;
  readonly socket: Socket;
  /** What has come and has not been taken yet. */
  received = '';
  /** All bytes that ever came. */
  bytesReceived = 0;
  ended = false;
  closed = false;
  wasReset = false;
  #changed = Promise.withResolvers<undefined>();

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('connect', () => {
      this.#change();
    });
    socket.on('data', (bytes: Buffer) => {
      this.bytesReceived += bytes.length;
      this.received += bytes.toString('latin1');
      this.#change();
    });
    socket.on('end', () => {
      this.ended = true;
      this.#change();
    });
    socket.on('error', () => {
      this.wasReset = true;
      this.#change();
    });
    socket.on('close', () => {
      this.closed = true;
      this.#change();
    });
  }

  static async connect(port: number, host = '127.0.0.1'): Promise<RawSocket> {
    const socket = connect({ port, host, noDelay: true, allowHalfOpen: true });
    const raw = new RawSocket(socket);
    await raw.waitFor(() => !socket.connecting || raw.closed, 'the connection');
    return raw;
  }

  send(text: string): void {
    this.socket.write(text, 'latin1');
  }

  end(text = ''): void {
    this.socket.end(text, 'latin1');
  }

  /** Sends a reset instead of an orderly end. */
  reset(): void {
    this.socket.resetAndDestroy();
  }

  /** Resolves as soon as the condition holds; looked at whenever something happens on the socket. */
  async waitFor(condition: () => boolean, what: string): Promise<void> {
    const timer = setTimeout(() => {
      this.#changed.reject(
        new Error(`still waiting for ${what}; so far ${JSON.stringify(this.#summary())}`),
      );
    }, this.patienceMs);
    try {
      while (!condition()) await this.#changed.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Takes everything up to and including `mark`. */
  async until(mark: string): Promise<string> {
    await this.waitFor(() => this.received.includes(mark), JSON.stringify(mark));
    return this.#take(this.received.indexOf(mark) + mark.length);
  }

  async bytes(count: number): Promise<string> {
    await this.waitFor(() => this.received.length >= count, `${String(count)} bytes`);
    return this.#take(count);
  }

  /** Everything until the other side ends or resets. */
  async rest(): Promise<string> {
    await this.waitFor(() => this.ended || this.closed, 'end');
    return this.#take(this.received.length);
  }

  async gone(): Promise<void> {
    await this.waitFor(() => this.ended || this.closed, 'end of the connection');
  }

  /** Takes one response; `method` HEAD has no body. A body without length is read to the end. */
  async response(method = 'GET'): Promise<RawResponse> {
    const head = await this.until('\r\n\r\n');
    const [startLine = '', ...lines] = head.slice(0, -4).split('\r\n');
    const fields = new Map<string, string>();
    for (const line of lines) {
      const name = line.slice(0, line.indexOf(':')).toLowerCase();
      const value = line.slice(line.indexOf(':') + 1).trim();
      const before = fields.get(name);
      fields.set(name, before === undefined ? value : `${before}, ${value}`);
    }
    const status = Number(startLine.slice(9, 12));
    assert(status >= 100, `no status line: ${JSON.stringify(head)}`);
    return { status, startLine, fields, head, body: await this.#body(method, status, fields) };
  }

  async #body(
    method: string,
    status: number,
    fields: ReadonlyMap<string, string>,
  ): Promise<string> {
    if (method === 'HEAD' || status < 200 || status === 204 || status === 304) return '';
    if (fields.get('transfer-encoding') === 'chunked') return this.#chunks();
    const length = fields.get('content-length');
    return length === undefined ? this.rest() : this.bytes(Number(length));
  }

  async #chunks(): Promise<string> {
    let text = '';
    for (;;) {
      const line = await this.until('\r\n');
      const size = Number.parseInt(line, 16);
      text += line;
      if (size === 0) break;
      text += await this.bytes(size + 2);
    }
    if (this.received.startsWith('\r\n')) return text + this.#take(2);
    await this.waitFor(() => this.received.length >= 2, 'end of chunks');
    return text + (this.received.startsWith('\r\n') ? this.#take(2) : await this.until('\r\n\r\n'));
  }

  #take(count: number): string {
    const taken = this.received.slice(0, count);
    this.received = this.received.slice(count);
    return taken;
  }

  #change(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers<undefined>();
    // A wait that nobody is in must not count as an unhandled rejection.
    this.#changed.promise.catch(() => undefined);
    resolve(undefined);
  }

  #summary(): object {
    const { received, ended, closed, wasReset } = this;
    return { received: received.slice(0, 500), ended, closed, wasReset };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.closed) return;
    this.socket.destroy();
    await this.waitFor(() => this.closed, 'close');
  }
}
