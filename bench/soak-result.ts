// What `npm run soak` found, as it is kept in bench/results.
import type { SoakCheck } from '../test/soak/account.ts';
import type { MachineFacts } from './machine.ts';

export interface SoakResult {
  readonly at: string;
  readonly machine: MachineFacts;
  readonly minutes: number;
  readonly seed: number;
  /** Sent whole by clients. */
  readonly requests: number;
  /** Of these, left by their client before an answer. */
  readonly abandoned: number;
  /** Counted by the sidecar: clients gone while a request was under way. */
  readonly clientAborts: number;
  readonly verdicts: Readonly<Record<string, number>>;
  /** Missing in Redis, by rule. */
  readonly tokens: Readonly<Record<string, number>>;
  readonly visits: Readonly<Record<string, number>>;
  readonly samples: readonly {
    readonly minute: number;
    readonly heapMb: number;
    readonly residentMb: number;
  }[];
  readonly checks: readonly SoakCheck[];
}
