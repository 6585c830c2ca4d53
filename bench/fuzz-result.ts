// What `npm run fuzz` found, as it is kept in bench/results.
import type { MachineFacts } from './machine.ts';

export interface FuzzCheck {
  readonly what: string;
  /** With its unit, as a report shows it. */
  readonly measured: string;
  readonly bound: string;
  readonly isMet: boolean;
}

export interface FuzzResult {
  readonly at: string;
  readonly machine: MachineFacts;
  readonly minutes: number;
  readonly seed: number;
  /** They ran beside each other, each with a sidecar of its own. */
  readonly dialects: readonly FuzzedDialect[];
}

export interface FuzzedDialect {
  /** The protocol that clients spoke. */
  readonly dialect: 'http1' | 'http2';
  readonly rounds: number;
  /** Of these, because the clients had been held up. */
  readonly playedAgain: number;
  readonly connections: number;
  /** Sent by clients. */
  readonly bytes: number;
  /** Requests that reached the application. */
  readonly seen: number;
  /** What the sidecar refused, by reason. */
  readonly refusals: Readonly<Record<string, number>>;
  /** The sidecar's memory through the run. */
  readonly residentMb: readonly number[];
  readonly checks: readonly FuzzCheck[];
}
