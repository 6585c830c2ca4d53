// A histogram that costs the hot path two array writes. prom-client sees it only at scrape.

/** Upper bounds in seconds, ascending; the last bucket is +Inf and has no bound. */
export class Histogram {
  readonly boundsSeconds: readonly number[];
  /** One count per bound plus the +Inf bucket, not cumulative. */
  readonly counts: Float64Array;
  sumSeconds = 0;

  constructor(boundsSeconds: readonly number[]) {
    this.boundsSeconds = boundsSeconds;
    this.counts = new Float64Array(boundsSeconds.length + 1);
  }

  observe(seconds: number): void {
    const bounds = this.boundsSeconds;
    let i = 0;
    while (i < bounds.length && seconds > (bounds[i] ?? Infinity)) i += 1;
    this.counts[i] = (this.counts[i] ?? 0) + 1;
    this.sumSeconds += seconds;
  }
}
