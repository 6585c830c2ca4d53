import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { growthOf, kilobytesEach, worstGrowth } from './scale-figures.ts';
import { niceCeiling } from './scale-picture.ts';

describe('growth', () => {
  it('is compared within a round, so that a slower moment of the machine is none', () => {
    const cells = [cell(1, 1, 20), cell(8, 1, 21), cell(1, 2, 40), cell(8, 2, 42)];

    assert.equal(worstGrowth(cells, xOf), 1.05);
  });

  it('is that of the worst point, not of the last', () => {
    const cells = [cell(1, 1, 20), cell(2, 1, 30), cell(8, 1, 10)];

    assert.equal(worstGrowth(cells, xOf), 1.5);
  });

  it('counts what Redis spends', () => {
    const cells = [cell(1, 1, 20, 20), cell(8, 1, 20, 40)];

    assert.equal(worstGrowth(cells, xOf), 1.5);
  });

  it('cannot be told from one point', () => {
    assert.equal(worstGrowth([cell(1, 1, 20)], xOf), NaN);
    assert.equal(worstGrowth([], xOf), NaN);
  });

  it('is drawn from the medians of the rounds, in the order of what grows', () => {
    const cells = [cell(8, 1, 30), cell(1, 1, 10), cell(1, 2, 30), cell(1, 3, 20)];

    assert.deepEqual(
      growthOf(cells, xOf).map(({ x, proxyUs }) => [x, proxyUs]),
      [
        [1, 20],
        [8, 30],
      ],
    );
  });
});

describe('an idle connection', () => {
  it('costs its share of what the memory grew by', () => {
    const load = { ...cost(1, 1), requests: 1, refused: 0, perSecond: 1, p50Ms: 1, p99Ms: 1 };
    const facts = { connections: 10_000, beforeMb: 80, crowdedMb: 180, alone: load, beside: load };

    assert.equal(kilobytesEach(facts), 10);
  });
});

describe('the axis of a curve', () => {
  it('ends at the next round number', () => {
    assert.deepEqual(
      [0.03, 0.7, 1, 1.1, 34, 123, 501].map(niceCeiling),
      [0.05, 1, 1, 2, 50, 200, 1_000],
    );
  });
});

function cell(x: number, round: number, proxyUs: number, redisUs = 0): Cell {
  return { x, round, ...cost(proxyUs, redisUs) };
}

type Cell = ReturnType<typeof cost> & { readonly x: number; readonly round: number };

function xOf(one: Cell): number {
  return one.x;
}

function cost(proxyUs: number, redisUs: number) {
  return { proxyUs, redisUs, redisCalls: 0, residentMb: 0 };
}
