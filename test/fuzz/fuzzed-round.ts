// One round of the fuzzer against a running sidecar, and the judgement on it.
import { setTimeout as delay } from 'node:timers/promises';
import { RawSocket } from '../support/raw-socket.ts';
import { MARK, markOf, marksIn } from './dialect.ts';
import type {
  Answer,
  Dialect,
  Round,
  SeenRequest,
  StrictReading,
  StrictRequest,
} from './dialect.ts';

/** Every timeout of the sidecar is set to a second; a busy machine may take some more. */
const MOST_WAIT_MS = 30_000;
/** In which the application may have answered what was sent before. */
const PAUSE_MS = 3;

interface FuzzedConnection {
  readonly mark: string;
  readonly pieces: readonly string[];
  readonly reading: StrictReading;
}

/** A round under way. */
export class FuzzedRound {
  readonly connections: readonly FuzzedConnection[];
  readonly #dialect: Dialect;
  readonly #answers: readonly Answer[];
  readonly #seen: SeenRequest[] = [];
  readonly #findings: string[] = [];
  /** Marks of connections to whose requests something invalid was said. */
  readonly #misled = new Set<string>();
  #answered = 0;
  #isOver = false;

  /** `id` is nobody else's. */
  constructor(dialect: Dialect, { connections, answers }: Round, id: number) {
    this.#dialect = dialect;
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

  /** See `FuzzedApplication`. */
  hasSpoilt: (request: SeenRequest) => boolean = () => false;

  /** The answer to a request that carries one of the marks. */
  onRequest(request: SeenRequest, mark: string): Answer {
    this.#seen.push(request);
    if (this.#isOver && !this.#sent().some((one) => isSame(one, request)))
      this.onLateFinding(request);
    const answer = this.#answers[this.#answered] ?? this.#dialect.echo;
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
      if (piece !== '') client.send(piece);
      await (piece === '' ? delay(PAUSE_MS) : new Promise(setImmediate));
    }
    try {
      await reading.listen(client);
      await client.gone();
    } catch (error) {
      this.#findings.push(`${mark} hangs: ${String(error)}`);
    }
    this.#judgeAnswers(connection, client);
  }

  /** No byte of another connection, and nothing that its reading calls wrong. */
  #judgeAnswers({ mark, reading }: FuzzedConnection, client: RawSocket): void {
    const shown = JSON.stringify(client.received.slice(0, 2_000));
    for (const other of marksIn(client.received)) {
      if (other !== mark) this.#findings.push(`${mark} got an answer to ${other}: ${shown}`);
    }
    const testimony = {
      isMisled: this.#misled.has(mark),
      hasMet: (request: SeenRequest): boolean =>
        this.#seen.some((one) => isSame(one, request)) || this.hasSpoilt(request),
    };
    for (const fault of reading.faultsIn(client, testimony)) {
      this.#findings.push(`${mark} ${fault}: ${shown}`);
    }
  }

  /** Every request that the application saw whole is one that a client sent whole, and not more often. */
  #judgeSeen(): void {
    const sent = this.#sent();
    const left = [...sent];
    for (const request of this.#seen) {
      const at = left.findIndex((one) => isSame(one, request));
      const [found] = at < 0 ? [] : left.splice(at, 1);
      if (found === undefined && !this.#mayRepeat(request)) {
        this.#findings.push(`smuggled: ${JSON.stringify(request)}`);
      }
    }
  }

  /** A request on a stale connection may come twice, and so may one that the application has refused unread. */
  #mayRepeat(request: SeenRequest): boolean {
    return this.#sent().some(
      (one) =>
        isSame(one, request) &&
        (one.isIdempotent || this.#seen.some((seen) => seen.isRefused && isSame(one, seen))),
    );
  }
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

function isSame(one: SeenRequest, { startLine, body }: SeenRequest): boolean {
  return one.startLine === startLine && one.body === body;
}
