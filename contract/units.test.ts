import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { milliseconds } from './units.ts';

describe('a duration in milliseconds', () => {
  it('is a safe integer from 0 on', () => {
    assert.equal(milliseconds(0), 0);
    assert.equal(milliseconds(Number.MAX_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
  });

  for (const value of [-1, 0.5, NaN, Infinity, Number.MAX_SAFE_INTEGER + 1]) {
    it(`is not ${value}`, () => {
      assert.throws(() => milliseconds(value), assert.AssertionError);
    });
  }
});
