import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isToken, listElements } from './field-list.ts';

describe('a comma-separated list', () => {
  it('has its elements without whitespace, empty ones and case', () => {
    assert.deepEqual(listElements(' A,,b c ,\td'), ['a', 'b c', 'd']);
    assert.deepEqual(listElements(''), []);
  });
});

describe('a token', () => {
  it('is one or more token characters', () => {
    assert.equal(isToken('keep-alive'), true);
    assert.equal(isToken(''), false);
    assert.equal(isToken('a b'), false);
  });
});
