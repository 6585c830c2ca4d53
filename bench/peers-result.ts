// What one run of bench:peers found, as it is kept in bench/results.
import type { AccuracyCell } from './accuracy.ts';
import type { ContenderName } from './contender.ts';
import type { Http2LoadResult } from './http2-load.ts';
import type { MachineFacts } from './machine.ts';
import type { Cost } from './meter.ts';
import type { OpenLoopResult } from './open-loop.ts';
import type { LoadResult } from './wrk.ts';

/** Of allowed requests one key is hot, or 2 000 take turns; refused requests have one key. */
export type Scenario = 'hot' | 'many' | 'refused';

export interface Cell extends LoadResult, Cost {
  readonly contender: ContenderName;
  readonly scenario: Scenario;
  readonly round: number;
}

/** HTTP/2 without TLS to the contender and from it to the upstream; one hot key, allowed. */
export interface Http2Cell extends Http2LoadResult, Cost {
  readonly contender: ContenderName;
  readonly round: number;
}

export interface PacedCell extends OpenLoopResult {
  readonly contender: ContenderName;
  readonly round: number;
  readonly perSecond: number;
}

export interface SidecarFacts {
  /** Process start to listening, one per start. */
  readonly readyMs: readonly number[];
  readonly idleMb: number;
  /** The most that was seen after a load. */
  readonly loadMb: number;
  /** One bucket, 64 connections: what it held, what was admitted, script calls per request. */
  readonly oneBucket: {
    readonly capacity: number;
    readonly admitted: number;
    readonly redisCalls: number;
  };
}

export interface PeersResult {
  readonly format: 1;
  /** ISO 8601 */
  readonly at: string;
  readonly machine: MachineFacts;
  /** Share of processor time that somebody else used just before. */
  readonly busyShare: number;
  readonly isQuiet: boolean;
  readonly rounds: number;
  readonly seconds: number;
  readonly cells: readonly Cell[];
  readonly paced: readonly PacedCell[];
  readonly sidecar: SidecarFacts;
  /** Absent in results that are older than this measurement, like `http2` and `versions`. */
  readonly accuracy?: readonly AccuracyCell[];
  readonly http2?: readonly Http2Cell[];
  readonly versions?: Readonly<Partial<Record<ContenderName, string>>>;
  readonly absent: readonly string[];
}

export function cpuUs(cell: Pick<Cost, 'proxyUs' | 'redisUs'>): number {
  return cell.proxyUs + cell.redisUs;
}

/** The middle value; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const low = sorted[Math.ceil(middle) - 1] ?? NaN;
  const high = sorted[Math.floor(middle)] ?? NaN;
  return (low + high) / 2;
}

export function cellsOf(
  result: PeersResult,
  contender: ContenderName,
  scenario: Scenario,
): readonly Cell[] {
  return result.cells.filter((one) => one.contender === contender && one.scenario === scenario);
}

export function pacedOf(
  result: PeersResult,
  contender: ContenderName,
  perSecond: number,
): readonly PacedCell[] {
  return result.paced.filter((one) => one.contender === contender && one.perSecond === perSecond);
}
