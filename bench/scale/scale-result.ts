// What bench:scale found, as it is kept in bench/results.
import type { MachineFacts } from '../machine.ts';
import type { Cost } from '../meter.ts';
import type { OpenLoopResult } from '../open-loop.ts';
import type { LoadResult } from '../wrk.ts';

/** Sidecars on one Redis, each with the same rate. */
export interface SidecarsCell extends OpenLoopResult, Cost {
  readonly sidecars: number;
  readonly round: number;
}

/** Rules of which one applies to the request. */
export interface RulesCell extends LoadResult, Cost {
  readonly rules: number;
  readonly round: number;
}

/** Distinct keys in turns; fewer requests than keys tell that the machine was too slow to use each. */
export interface KeysCell extends LoadResult, Cost {
  readonly keys: number;
}

/** Connections that all ask with one key. */
export interface HotKeyCell extends LoadResult, Cost {
  readonly connections: number;
}

/** Connections that were used once and then keep silent, and what a load beside them meets. */
export interface CrowdFacts {
  readonly connections: number;
  /** Resident memory before they came, and while they are there, in MB (10^6 bytes). */
  readonly beforeMb: number;
  readonly crowdedMb: number;
  readonly alone: LoadResult & Cost;
  readonly beside: LoadResult & Cost;
}

/** One body that passes the sidecar. */
export interface BodyFacts {
  readonly direction: 'up' | 'down';
  readonly bytes: number;
  readonly seconds: number;
  /** Milliseconds on a processor of the sidecar. */
  readonly processorMs: number;
  /** Resident memory before, and the most meanwhile, in MB (10^6 bytes). */
  readonly beforeMb: number;
  readonly highWaterMb: number;
}

/** Clients that take or give their bodies slowly, and what an open loop beside them meets. */
export interface SlowFacts {
  readonly who: 'readers' | 'writers';
  readonly clients: number;
  /** Of each body, and how fast it goes. */
  readonly bytes: number;
  readonly bytesPerSecond: number;
  readonly beforeMb: number;
  readonly highWaterMb: number;
  readonly alone: OpenLoopResult;
  readonly beside: OpenLoopResult;
}

export interface ScaleResult {
  /** ISO 8601 */
  readonly at: string;
  readonly machine: MachineFacts;
  /** Share of processor time that somebody else used just before. */
  readonly busyShare: number;
  readonly isQuiet: boolean;
  readonly rounds: number;
  /** Of each of the sidecars of `sidecars`. */
  readonly perSecondEach: number;
  /** Requests of them that arrive together. */
  readonly burst: number;
  readonly sidecars: readonly SidecarsCell[];
  readonly rules: readonly RulesCell[];
  readonly keys: readonly KeysCell[];
  readonly hotKey: readonly HotKeyCell[];
  /** None where only a part was measured. */
  readonly crowd: readonly CrowdFacts[];
  readonly bodies: readonly BodyFacts[];
  readonly slow: readonly SlowFacts[];
}

/** The x of a growth curve with its cells, in the order of x. */
export function byX<Cell>(
  cells: readonly Cell[],
  xOf: (cell: Cell) => number,
): readonly (readonly [x: number, cells: readonly Cell[]])[] {
  return [...Map.groupBy(cells, xOf)].sort(([a], [b]) => a - b);
}
