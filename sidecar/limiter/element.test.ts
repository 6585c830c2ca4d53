import assert from 'node:assert/strict';
import { test } from 'node:test';
import { elementAt } from './element.ts';

test('gives the element', () => {
  assert.equal(elementAt([7, 8], 1), 8);
});

test('ends a request for an element that does not exist', () => {
  assert.throws(() => elementAt([7, 8], 2), { name: 'RangeError', message: 'no element 2 of 2' });
});
