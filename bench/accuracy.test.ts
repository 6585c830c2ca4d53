import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ALGORITHMS, beyondBound, exactBound } from './accuracy.ts';
import type { AccuracyCell } from './accuracy.ts';

describe('the exact bound', () => {
  it('is the capacity and the whole tokens that came between the first and the last decision', () => {
    assert.deepEqual(exactBound(cellOf({ lastMs: 19_995 })), { least: 1_049, most: 1_049 });
  });

  it('counts a token that is whole at the last decision', () => {
    assert.deepEqual(exactBound(cellOf({ lastMs: 20_000 })), { least: 1_050, most: 1_050 });
  });

  it('has two ends where a token may have come before a decision or after it', () => {
    const bound = exactBound(cellOf({ lastMs: 19_999, answerMs: 2 }));

    assert.deepEqual(bound, { least: 1_049, most: 1_050 });
  });
});

describe('admissions', () => {
  const bound = { lastMs: 19_999, answerMs: 2 };
  const claims: Readonly<Record<string, readonly [admitted: number, beyond: number]>> = {
    'at the lower end are exact': [1_049, 0],
    'at the upper end are exact': [1_050, 0],
    'past the upper end are beyond': [1_051, 1],
    'below the lower end are short': [1_047, -2],
  };
  for (const [claim, [admitted, beyond]] of Object.entries(claims)) {
    it(claim, () => {
      assert.equal(beyondBound(cellOf({ ...bound, admitted })), beyond);
    });
  }
});

describe('the promise', () => {
  const promised = (name: keyof typeof ALGORITHMS, cell: AccuracyCell): number | undefined =>
    ALGORITHMS[name]?.promised(cell);

  it('of a shared bucket is the exact bound', () => {
    assert.equal(promised('weir', cellOf({ lastMs: 19_995 })), 1_049);
  });

  it('of a bucket that lends half a token is the bound of a bucket that is half a token larger', () => {
    assert.equal(promised('traefik', cellOf({ lastMs: 19_995 })), 1_050);
  });

  it('of a counter for each second is a full count for every second that was touched', () => {
    const cell = cellOf({ firstMs: 10_900, lastMs: 30_895 });

    assert.equal(promised('envoy-ratelimit', cell), 21 * 50);
  });

  it('of instances that share nothing is a bucket for each', () => {
    assert.equal(promised('envoy-local', cellOf({ lastMs: 19_995 })), 2 * 1_049);
  });
});

function cellOf({
  admitted = 0,
  firstMs = 0,
  lastMs,
  answerMs = 0,
}: {
  readonly admitted?: number;
  readonly firstMs?: number;
  readonly lastMs: number;
  readonly answerMs?: number;
}): AccuracyCell {
  return {
    contender: 'weir',
    limit: { capacity: 50, perSecond: 50 },
    ...{ sent: 4_000, admitted, refused: 4_000 - admitted, failed: 0 },
    ...{ firstSentMs: firstMs, firstAnsweredMs: firstMs + answerMs },
    ...{ lastSentMs: lastMs, lastAnsweredMs: lastMs + answerMs },
  };
}
