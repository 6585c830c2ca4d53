// One round of the fuzzer against a running sidecar, and the judgement on it.
import { RawSocket } from '../support/raw-socket.ts';
import { MARK, markOf, marksIn } from './dialect.ts';
import { seenByLlhttp } from '../support/llhttp.ts';
import type { Answer, Dialect, Round, StrictReading, StrictRequest } from './dialect.ts';
import type { SeenRequest } from './fuzzed-upstream.ts';

/** Every timeout of the sidecar is set to a second; a busy machine may take some more. */
const MOST_WAIT_MS = 30_000;

const echo: Answer = {
  bytes: `HTTP/1.1 200 OK\r\nX-Echo: ${MARK}\r\nContent-Length: 2\r\n\r\nok`,
  then: 'keep',
  isSound: true,
};

interface FuzzedConnection {
  readonly mark: string;
  readonly pieces: readonly string[];
  readonly reading: StrictReading;
}

/** A round under way. */
export class FuzzedRound {
  readonly connections: readonly FuzzedConnection[];
  readonly #answers: readonly Answer[];
  readonly #seen: SeenRequest[] = [];
  readonly #findings: string[] = [];
  /** Marks of connections to whose requests something invalid was said. */
  readonly #misled = new Set<string>();
  #answered = 0;
  #isOver = false;

  /** `id` is nobody else's. */
  constructor(dialect: Dialect, { connections, answers }: Round, id: number) {
    this.#answers = answers;
    this.connections = connections.map((pieces, i) => {
      const mark = markOf(id, i);
      const marked = withMark(pieces, mark);
      return { mark, pieces: marked, reading: dialect.read(marked.join('')) };
    });
    for (const { reading } of this.connections) this.#findings.push(...reading.disagreements);
  }

  /** Told about a request that nobody sent and that came after `play`. */
  onLateFinding: (request: SeenRequest) => void = () => undefined;

  /** The answer to a request that carries one of the marks. */
  onRequest(request: SeenRequest, mark: string): Answer {
    this.#seen.push(request);
    if (this.#isOver && !this.#sent().some((one) => isSame(one, request)))
      this.onLateFinding(request);
    const answer = this.#answers[this.#answered] ?? echo;
    this.#answered += 1;
    if (!answer.isSound) this.#misled.add(mark);
    return answer;
  }

  /** Sends everything, waits until every connection has ended, and says what was wrong. */
  async play(port: number): Promise<string[]> {
    await Promise.all(this.connections.map((one) => this.#playOne(port, one)));
    this.#judgeSeen();
    this.#isOver = true;
    return this.#findings;
  }

  #sent(): StrictRequest[] {
    return this.connections.flatMap(({ reading }) => reading.requests);
  }

  async #playOne(port: number, connection: FuzzedConnection): Promise<void> {
    const { mark, pieces, reading } = connection;
    await using client = await RawSocket.connect(port);
    client.patienceMs = MOST_WAIT_MS;
    for (const piece of pieces) {
      if (client.closed || client.socket.destroyed) break;
      client.send(piece);
      await new Promise(setImmediate);
    }
    // Unless the sidecar has to end it, the client does: what it sent does not end, or waits for more.
    if (!reading.ends) await leave(client, reading.requests.length);
    await client.gone().catch((error: unknown) => {
      this.#findings.push(`${mark} hangs: ${String(error)}`);
    });
    this.#judgeAnswers(connection, client.received);
  }

  /** No byte of another connection, and nothing that is not of this protocol. */
  #judgeAnswers({ mark, reading }: FuzzedConnection, received: string): void {
    const shown = JSON.stringify(received.slice(0, 2_000));
    for (const other of marksIn(received)) {
      if (other !== mark) this.#findings.push(`${mark} got an answer to ${other}: ${shown}`);
    }
    if (reading.goesOver) return;
    if (received !== '' && !received.startsWith('HTTP/1.1 ')) {
      this.#findings.push(`${mark} got no HTTP: ${shown}`);
    }
    if (this.#misled.has(mark) || reading.requests.some(({ startLine }) => isHead(startLine)))
      return;
    const { error } = seenByLlhttp('response', received);
    if (error !== undefined)
      this.#findings.push(`${mark} got what llhttp calls ${error}: ${shown}`);
  }

  /** Every request that the application saw whole is one that a client sent whole, and not more often. */
  #judgeSeen(): void {
    const sent = this.#sent();
    const left = [...sent];
    for (const request of this.#seen) {
      const at = left.findIndex((one) => isSame(one, request));
      const [found] = at < 0 ? [] : left.splice(at, 1);
      // A request on a stale connection may come twice.
      if (found === undefined && !sent.some((one) => one.isIdempotent && isSame(one, request))) {
        this.#findings.push(`smuggled: ${JSON.stringify(request)}`);
      }
    }
  }
}

// Whether anything is answered before the client goes is up to the answers: it waits for a first one, or for the end.
async function leave(client: RawSocket, requests: number): Promise<void> {
  const begun = (): boolean => client.bytesReceived > 0 || client.ended || client.closed;
  if (requests > 0) await client.waitFor(begun, 'anything').catch(() => undefined);
  client.end();
}

/** The mark may be cut in two by the pieces: it is put into the whole, which is cut again where it was. */
function withMark(pieces: readonly string[], mark: string): string[] {
  const whole = pieces.join('').replaceAll(MARK, mark);
  let from = 0;
  return pieces.map((piece) => {
    from += piece.length;
    return whole.slice(from - piece.length, from);
  });
}

function isHead(startLine: string): boolean {
  return startLine.startsWith('HEAD ');
}

function isSame(one: StrictRequest, { startLine, body }: SeenRequest): boolean {
  return one.startLine === startLine && one.body === body;
}
