import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { firstFrameWithinMs, reconnectDelayMs } from './reconnect-delay.ts';

describe('the wait before the next attempt', () => {
  it('is drawn from all of a span that doubles up to half a minute', () => {
    const spans = [1, 2, 3, 6, 7, 100].map((failures) => reconnectDelayMs(failures, 1));

    assert.deepEqual(spans, [500, 1_000, 2_000, 16_000, 30_000, 30_000]);
    assert.equal(reconnectDelayMs(7, 0), 0);
    assert.equal(reconnectDelayMs(7, 0.5), 15_000);
  });
});

describe('the wait for the first frame', () => {
  it('is three seconds at first, and longer with every failure; who has rules waits in line', () => {
    assert.deepEqual(
      [0, 1, 2, 3, 100].map((failures) => firstFrameWithinMs(failures, false)),
      [3_000, 6_000, 12_000, 15_000, 15_000],
    );
    assert.equal(firstFrameWithinMs(0, true), 15_000);
  });
});
