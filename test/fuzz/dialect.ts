// What the fuzzer has to know of a protocol that clients speak: how to make bytes of it that are mostly right and often a
// little wrong, which requests such bytes contain for a strict reader, what a client may get back, and an application that
// speaks it. Rounds, oracle and campaign are the same for every dialect.
import type { RawSocket } from '../support/raw-socket.ts';

/** Stands in a client's bytes and in answers for what tells this connection from all others, and is as long as that. */
export const MARK = '@mark@mark@@@';

/** The mark of a connection of a round; `connection` has one digit. */
export function markOf(round: number, connection: number): string {
  return `m${String(round).padStart(9, '0')}x${String(connection)}z`;
}

/** All marks of a text. */
export function marksIn(text: string): string[] {
  return [...text.matchAll(/m\d{9}x\dz/g)].map(([mark]) => mark);
}

/** A whole request, as the application sees it. */
export interface SeenRequest {
  /** HTTP/1.1: the request line. HTTP/2: all fields but those that the sidecar adds, a line each. */
  readonly startLine: string;
  /** As it is passed on: with its framing in HTTP/1.1, with its trailers in HTTP/2. */
  readonly body: string;
  /** The application has said that it did not look at it: it may come again. */
  readonly isRefused?: boolean;
}

/** A request as the application must see it, if it sees it. */
export interface StrictRequest extends SeenRequest {
  readonly isIdempotent: boolean;
}

/** What one connection of a client says, for a strict reader, and what may come back on it. */
export interface StrictReading {
  readonly requests: readonly StrictRequest[];
  /** Where two strict readers disagree about what Weir takes for valid: a finding by itself. */
  readonly disagreements: readonly string[];
  /**
   * Called when everything has been sent: waits for what this client waits for, and leaves, unless it is the sidecar that
   * has to end the connection. Rejects when that does not come.
   */
  listen(client: RawSocket): Promise<void>;
  /** What is wrong with all that came. */
  faultsIn(client: RawSocket, application: Testimony): readonly string[];
}

/** What the application has to say about the requests of one connection. */
export interface Testimony {
  /** It has said something invalid to one of them. */
  readonly isMisled: boolean;
  /** Whether this request has come whole, or over a connection where the sidecar may have given up sending it. */
  hasMet(request: SeenRequest): boolean;
}

/** What the application says to a request, Latin-1, and what it does then. */
export interface Answer {
  readonly bytes: string;
  readonly then: 'close' | 'keep' | 'reset';
  /** Whether it is valid, and one answer only. */
  readonly isSound: boolean;
}

/** Whoever knows the answer to a request. */
export type Answering = (request: SeenRequest) => {
  readonly answer: Answer;
  readonly mark: string;
};

/** The strict application behind the fuzzed sidecar. */
export interface FuzzedApplication extends AsyncDisposable {
  readonly port: number;
  /** Heads of requests that came, whole or not. */
  readonly heads: number;
  /** What nobody could read, or two strict readers saw differently. */
  readonly findings: string[];
  answering: Answering | undefined;
  /** Whether a request came over a connection where something invalid was said: the rest of it need not have come. */
  hasSpoilt?(request: SeenRequest): boolean;
}

export interface Dialect {
  readonly name: 'http1' | 'http2';
  /** What is said when a round has no answer left. */
  readonly echo: Answer;
  /** What is said to a request that belongs to no round. */
  readonly unmarked: Answer;
  /** The bytes of one connection in the pieces in which they are sent, Latin-1; an empty one is a moment's pause. */
  connection(random: () => number): string[];
  answer(random: () => number): Answer;
  read(bytes: string): StrictReading;
  openApplication(): Promise<FuzzedApplication>;
}

/** What happens at once: several connections, and answers to their requests in the order in which these come. */
export interface Round {
  /** Pieces by connection. */
  readonly connections: readonly (readonly string[])[];
  readonly answers: readonly Answer[];
}
