import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { byteAt } from './byte-at.ts';

describe('a byte of a buffer', () => {
  it('is what stands there, and 0 past the end', () => {
    assert.equal(byteAt(Buffer.from([1, 255]), 1), 255);
    assert.equal(byteAt(Buffer.from([1, 255]), 2), 0);
  });
});
