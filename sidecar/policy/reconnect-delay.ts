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

const FIRST_FRAME_MS = 3_000;
const FIRST_FRAME_LONGEST_MS = 15_000;

/**
 * How long the first frame may take. A sidecar without rules soon asks another replica; one that has some waits in line:
 * in a storm an attempt that is given up is a handshake for nothing, and makes the storm last.
 */
export function firstFrameWithinMs(failures: number, hasRules: boolean): number {
  if (hasRules) return FIRST_FRAME_LONGEST_MS;
  return Math.min(FIRST_FRAME_LONGEST_MS, FIRST_FRAME_MS * 2 ** Math.min(failures, 8));
}
