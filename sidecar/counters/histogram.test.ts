import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Histogram } from './histogram.ts';

describe('a histogram', () => {
  it('counts a value in the first bucket whose bound it does not exceed', () => {
    const histogram = new Histogram([0.1, 1]);

    for (const seconds of [0, 0.1, 0.100001, 1, 1.5]) histogram.observe(seconds);

    assert.deepEqual(
      histogram.buckets.map(({ count }) => count),
      [2, 2, 1],
    );
    assert.equal(histogram.sumSeconds, 0 + 0.1 + 0.100001 + 1 + 1.5);
  });

  it('puts what is no number into no bucket', () => {
    const histogram = new Histogram([1]);

    histogram.observe(NaN);

    assert.deepEqual(
      histogram.buckets.map(({ count }) => count),
      [0, 0],
    );
  });
});
