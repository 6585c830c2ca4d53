// What bench:faults found, as it is kept in bench/results.
import type { MachineFacts } from './machine.ts';

export interface FaultCheck {
  readonly what: string;
  /** With its unit, as the report shows it. */
  readonly measured: string;
  readonly bound: string;
  readonly isMet: boolean;
}

export interface FaultsResult {
  readonly at: string;
  readonly machine: MachineFacts;
  /** Whether nobody else was at work just before. */
  readonly isQuiet: boolean;
  readonly deadlineMs: number;
  readonly checks: readonly FaultCheck[];
}
