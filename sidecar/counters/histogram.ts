// A histogram that costs the hot path a short walk and one addition. prom-client sees it only at scrape.

export interface HistogramBucket {
  /** Seconds, inclusive. */
  readonly upTo: number;
  /** Values above the bucket before and up to `upTo`: not cumulative. */
  count: number;
}

export class Histogram {
  /** By bound, ascending; the last is for everything above. */
  readonly buckets: readonly HistogramBucket[];
  sumSeconds = 0;

  /** `boundsSeconds` ascending. */
  constructor(boundsSeconds: readonly number[]) {
    this.buckets = [...boundsSeconds, Infinity].map((upTo) => ({ upTo, count: 0 }));
  }

  observe(seconds: number): void {
    this.sumSeconds += seconds;
    for (const bucket of this.buckets) {
      if (seconds <= bucket.upTo) {
        bucket.count += 1;
        return;
      }
    }
  }
}
