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
  /** The protocol that clients spoke. */
  readonly dialect: string;
  readonly minutes: number;
  readonly seed: number;
  readonly rounds: number;
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
