// When to try again. Full jitter: a thousand sidecars that lost one operator come back spread over the whole wait, not
// in waves.

const FIRST_MS = 500;
const LONGEST_MS = 30_000;
/** An operator that says when to come back is believed up to here. */
export const TOLD_LONGEST_MS = 60_000;

/** `failures` in a row, ≥ 1; `random` in [0, 1). In ms. */
export function reconnectDelayMs(failures: number, random: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 16)) * random;
}

/** How long the first frame may take: longer after failures, so that an operator in a storm is not asked twice. */
export function firstFrameWithinMs(failures: number): number {
  return Math.min(15_000, 3_000 * 2 ** Math.min(failures, 8));
}
