// How exactly two instances keep one limit together: what was admitted, against what a token bucket admits, and against
// what each limiter promises by its own algorithm.
import type { ContenderName, Limit } from './contender.ts';

/** Times are milliseconds since the epoch. */
export interface AccuracyCounts {
  readonly sent: number;
  readonly admitted: number;
  readonly refused: number;
  /** Any other answer, and none. */
  readonly failed: number;
  readonly firstSentMs: number;
  readonly firstAnsweredMs: number;
  readonly lastSentMs: number;
  readonly lastAnsweredMs: number;
}

export interface AccuracyCell extends AccuracyCounts {
  readonly contender: ContenderName;
  /** Of the one key. */
  readonly limit: Limit;
}

/** A number of admissions; both ends are fine. */
export interface Bound {
  readonly least: number;
  readonly most: number;
}

/**
 * What one bucket admits that is full at the first request and never full again: the capacity and the refill between the
 * first and the last decision, in whole tokens. Each decision fell between its request and its answer, so that the two
 * ends differ by the refill of some milliseconds, which is mostly nothing.
 */
export function exactBound({ limit, ...counts }: AccuracyCell): Bound {
  const { capacity, perSecond } = limit;
  const within = (ms: number): number => Math.floor(capacity + (perSecond * ms) / 1_000);
  return {
    least: within(counts.lastSentMs - counts.firstAnsweredMs),
    most: within(counts.lastAnsweredMs - counts.firstSentMs),
  };
}

/** Admissions beyond the bound, or short of it as a negative number; 0 within. */
export function beyondBound(cell: AccuracyCell): number {
  const { least, most } = exactBound(cell);
  return Math.max(0, cell.admitted - most) - Math.max(0, least - cell.admitted);
}

export interface Algorithm {
  readonly words: string;
  /** The most that it may admit by its own rules. */
  readonly promised: (cell: AccuracyCell) => number;
}

/** Of the limiters whose accuracy is measured, in the order of the report. */
export const ALGORITHMS: Readonly<Partial<Record<ContenderName, Algorithm>>> = {
  weir: {
    words: 'token bucket in Redis, whole numbers',
    promised: (cell) => exactBound(cell).most,
  },
  'nginx-lua': {
    words: 'token bucket in Redis, floating point',
    promised: (cell) => exactBound(cell).most,
  },
  traefik: {
    words:
      "token bucket in Redis by the proxies' clocks, which lends half a token and delays for it",
    promised: (cell) => exactBound({ ...cell, limit: lending(cell.limit) }).most,
  },
  'envoy-ratelimit': {
    words: 'a counter in Redis for each second of the clock',
    promised: ({ limit, firstSentMs, lastAnsweredMs }) =>
      limit.perSecond * (Math.floor(lastAnsweredMs / 1_000) - Math.floor(firstSentMs / 1_000) + 1),
  },
  'envoy-local': {
    words: 'a token bucket in each instance, nothing shared',
    promised: (cell) => INSTANCES * exactBound(cell).most,
  },
};

/** That have the limit together. */
export const INSTANCES = 2;

function lending(limit: Limit): Limit {
  return { ...limit, capacity: limit.capacity + 0.5 };
}
