import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BackOff } from './back-off.ts';

describe('the back-off', () => {
  it('doubles from 0.8 s to 15 s and adds up to as much again', () => {
    const least = new BackOff(() => 0);
    const most = new BackOff(() => 1);

    assert.deepEqual(
      [1, 2, 3, 4, 5, 6, 7].map(() => least.next(0)),
      [800, 1600, 3200, 6400, 12_800, 15_000, 15_000],
    );
    assert.deepEqual(
      [1, 2, 3, 4, 5, 6].map(() => most.next(0)),
      [1600, 3200, 6400, 12_800, 25_600, 30_000],
    );
  });

  it('starts anew two minutes after a wait has ended, and not sooner', () => {
    const backOff = new BackOff(() => 0);
    backOff.next(0);
    backOff.next(800);

    assert.equal(backOff.next(2400 + 119_999), 3200);
    assert.equal(backOff.next(2400 + 119_999 + 3200 + 120_000), 800);
  });
});
