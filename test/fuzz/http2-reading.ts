// What one client of HTTP/2 says, and what it may get back, for the fuzzer's rounds.
import type { RawSocket } from '../support/raw-socket.ts';
import type { StrictReading, StrictRequest, Testimony } from './dialect.ts';
import { AnswerStreams } from './http2/answer-streams.ts';
import { ClientStreams } from './http2/client-streams.ts';
import type { ClientStream } from './http2/client-streams.ts';
import type { Line } from './http2/hpack-tables.ts';

/** Fields that the sidecar adds to, or makes longer. */
const ADDED: ReadonlySet<string> = new Set([
  ...['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'forwarded'],
]);
const IDEMPOTENT: ReadonlySet<string> = new Set([
  ...['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'],
]);
/** What the application calls a request that does not say what it calls itself. */
export const NO_TAG = 'none';
const NO_ERROR = 0;
const GATEWAY_TIMEOUT = 504;

export function readHttp2Strictly(bytes: string): StrictReading {
  return new Http2Reading(bytes);
}

/** A whole request with all that the application must see of it. */
export function asStrictRequest(stream: ClientStream): StrictRequest {
  const { lines, body, trailers, head } = stream;
  const fields = lines.filter(([name]) => !ADDED.has(name));
  const end = trailers === undefined ? '' : `\n${textOf(trailers)}`;
  return {
    startLine: textOf(fields),
    body: body + end,
    isIdempotent: head !== undefined && IDEMPOTENT.has(head.method),
  };
}

function textOf(lines: readonly Line[]): string {
  return lines.map(([name, value]) => `${name}: ${value}`).join('\n');
}

/** What tells a stream's request from all others: the mark of its connection and four characters of its own. */
export function tagsIn(text: string): string[] {
  return [...text.matchAll(/m\d{9}x\dz\/\w{4}/g)].map(([tag]) => tag);
}

class Http2Reading implements StrictReading {
  readonly requests: readonly StrictRequest[];
  readonly disagreements: readonly string[] = [];
  readonly #said = new ClientStreams();
  readonly #answers = new AnswerStreams(this.#said);
  readonly #bytes: number;
  #taken = 0;
  #hasLeft = false;

  constructor(bytes: string) {
    this.#bytes = bytes.length;
    this.#said.read(Buffer.from(bytes, 'latin1'));
    this.requests = [...this.#said.streams.values()]
      .filter(({ wasWhole }) => wasWhole)
      .map(asStrictRequest);
  }

  // A client that is cut leaves in the middle of it, half of them without a word; others wait for what is due to them.
  async listen(client: RawSocket): Promise<void> {
    const { fault, isCut } = this.#said;
    if (fault !== undefined) return;
    if (!isCut) {
      await client.waitFor(() => this.#isServed(client), `streams ${this.#missing().join(', ')}`);
    }
    this.#hasLeft = !client.ended && !client.closed;
    if (isCut && this.#bytes % 2 === 0) client.reset();
    else client.end();
  }

  #isServed(client: RawSocket): boolean {
    this.#take(client);
    return this.#answers.isBroken || client.ended || client.closed || this.#missing().length === 0;
  }

  #take({ received }: RawSocket): void {
    this.#answers.read(Buffer.from(received.slice(this.#taken), 'latin1'));
    this.#taken = received.length;
  }

  /** Streams that nobody has answered or reset, though the client did its part. */
  #missing(): number[] {
    const { streams, dueIds } = this.#said;
    return [...streams.values()]
      .filter(({ id, state }) => dueIds.has(id) && (state === 'whole' || state === 'flawed'))
      .map(({ id }) => id)
      .filter((id) => !this.#answers.isOver(id));
  }

  faultsIn(client: RawSocket, application: Testimony): readonly string[] {
    // Without its preface it is no HTTP/2, and the answer need not be either.
    if (this.#said.fault !== undefined && !this.#said.hasPreface) return [];
    this.#take(client);
    return [
      ...this.#answers.faults,
      ...this.#strayAnswers(),
      ...this.#vainWaits(application),
      ...this.#flawsOfTheEnd(client),
    ];
  }

  /** Whoever waits in vain for an answer must have asked: a request that the sidecar keeps ends in a timeout too. */
  #vainWaits(application: Testimony): string[] {
    const { doubt, streams, dueIds } = this.#said;
    if (doubt !== undefined) return [];
    return [...this.#answers.streams]
      .filter(([id, { head }]) => head?.status === GATEWAY_TIMEOUT && dueIds.has(id))
      .flatMap(([id]) => streams.get(id) ?? [])
      .filter((stream) => stream.wasWhole && tagsIn(textOf(stream.lines)).length > 0)
      .filter((stream) => !application.hasMet(asStrictRequest(stream)))
      .map(({ id }) => `stream ${id} waited in vain, and its request never came whole`);
  }

  /** Every answer says to which request it is one. */
  #strayAnswers(): string[] {
    const faults = new Set<string>();
    for (const [id, { text }] of this.#answers.streams) {
      const stream = this.#said.streams.get(id);
      const asked = stream === undefined ? { startLine: '', body: '' } : asStrictRequest(stream);
      const own = new Set(tagsIn(`${asked.startLine}\n${asked.body}`));
      for (const tag of tagsIn(text)) {
        const isOwn = own.has(tag) || (own.size === 0 && tag.endsWith(NO_TAG));
        if (!isOwn) faults.add(`stream ${id} got an answer to ${tag}`);
      }
    }
    return [...faults];
  }

  #flawsOfTheEnd(client: RawSocket): string[] {
    const { fault, doubt, isLeaving, isCut } = this.#said;
    const { goAways } = this.#answers;
    if (doubt !== undefined) return [];
    const errors = goAways.filter((code) => code !== NO_ERROR);
    if (fault !== undefined) {
      // Whoever is leaving, or was reset, may miss it.
      const isTold = isLeaving || client.wasReset || errors.length > 0;
      return isTold ? [] : [`was not told of its fault (${fault})`];
    }
    // What has only begun may be flawed already, by a frame's head or what a block begins with, or take too long.
    if (errors.length > 0 && !isCut) return [`was left for nothing (${errors.join()})`];
    return this.#leftBehind();
  }

  #leftBehind(): string[] {
    const missing = this.#hasLeft ? [] : this.#missing();
    return missing.length > 0 ? [`was left with streams ${missing.join()}`] : [];
  }
}
