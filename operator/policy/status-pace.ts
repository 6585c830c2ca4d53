// When a planned status is written. The first word about a generation goes out at once; what follows is gathered, so
// that a rollout of 1 000 pods is a few writes: each one wakes everybody who watches policies.

/** Counts change with every pod; a person reads them every few seconds at most. */
export const WRITE_INTERVAL_MS = 5_000;

export type Pace =
  | { readonly kind: 'skip' }
  | { readonly kind: 'write' }
  | { readonly kind: 'wait'; readonly forMs: number };

/** `lastWriteMs`: on the clock of `nowMs`; undefined = not since this process started. */
export function paceOf(
  change: 'none' | 'first' | 'update',
  lastWriteMs: number | undefined,
  nowMs: number,
): Pace {
  if (change === 'none') return { kind: 'skip' };
  if (change === 'first' || lastWriteMs === undefined) return { kind: 'write' };
  const forMs = lastWriteMs + WRITE_INTERVAL_MS - nowMs;
  return forMs <= 0 ? { kind: 'write' } : { kind: 'wait', forMs };
}
