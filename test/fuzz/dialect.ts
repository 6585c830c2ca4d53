// What the fuzzer has to know of a protocol that clients speak: how to make bytes of it that are mostly right and often a
// little wrong, and which requests such bytes contain for a strict reader. Connections, application, oracle and campaign
// are the same for every dialect.

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

/** A request as the application must see it, if it sees it. */
export interface StrictRequest {
  readonly startLine: string;
  /** As it is passed on, with its framing. */
  readonly body: string;
  readonly isIdempotent: boolean;
}

export interface StrictReading {
  readonly requests: readonly StrictRequest[];
  /** Whether the sidecar has to end the connection by itself after these bytes. */
  readonly ends: boolean;
  /** Whether the bytes go over to another protocol: what is said then is nothing of this dialect. */
  readonly goesOver: boolean;
  /** Where two strict readers disagree about what Weir takes for valid: a finding by itself. */
  readonly disagreements: readonly string[];
}

export interface Dialect {
  readonly name: string;
  /** The bytes of one connection in the pieces in which they are sent, Latin-1. */
  connection(random: () => number): string[];
  /** What the application says to a request, Latin-1, and what it does then. */
  answer(random: () => number): Answer;
  read(bytes: string): StrictReading;
}

export interface Answer {
  readonly bytes: string;
  readonly then: 'close' | 'keep' | 'reset';
  /** Whether it is valid, and one answer only. */
  readonly isSound: boolean;
}

/** What happens at once: several connections, and answers to their requests in the order in which these come. */
export interface Round {
  /** Pieces by connection. */
  readonly connections: readonly (readonly string[])[];
  readonly answers: readonly Answer[];
}
