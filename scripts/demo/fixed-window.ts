// What the usual counter would have done with the same requests: `limit` a window, windows aligned to the clock.

export interface Counted {
  readonly atMs: number;
  readonly isAdmitted: boolean;
}

/** `sentMs` ascending. The window of `windowMs` starts at every multiple of it. */
export function countInFixedWindows(
  sentMs: readonly number[],
  { limit, windowMs }: { readonly limit: number; readonly windowMs: number },
): Counted[] {
  let window = -1;
  let used = 0;
  return sentMs.map((atMs) => {
    const current = Math.floor(atMs / windowMs);
    if (current !== window) {
      window = current;
      used = 0;
    }
    used += 1;
    return { atMs, isAdmitted: used <= limit };
  });
}

/** The most admissions in any stretch of `lengthMs`: what the protected application feels. */
export function busiestStretch(counted: readonly Counted[], lengthMs: number): number {
  const admitted = counted.filter((one) => one.isAdmitted).map((one) => one.atMs);
  let most = 0;
  let from = 0;
  for (const [to, atMs] of admitted.entries()) {
    while (atMs - (admitted[from] ?? 0) > lengthMs) from += 1;
    most = Math.max(most, to - from + 1);
  }
  return most;
}
