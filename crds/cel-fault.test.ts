import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { celFault, excerptOf } from './cel-fault.ts';

describe('a fault of an expression', () => {
  it('is told by its summary, at its place', () => {
    const error = Object.assign(new Error('long'), {
      summary: 'short',
      range: { start: 2, end: 3 },
    });

    assert.deepEqual(celFault('ab c', error), { message: 'short', excerpt: 'ab c\n  ^' });
  });

  it('is told by its message where it has no summary, at the beginning', () => {
    assert.deepEqual(celFault('ab', new Error('long')), { message: 'long', excerpt: 'ab\n^' });
    assert.deepEqual(
      celFault('ab', Object.assign(new Error('long'), { range: null })).excerpt,
      'ab\n^',
    );
  });

  it('is told whatever was thrown', () => {
    assert.equal(celFault('ab', 'words').message, 'words');
    assert.equal(celFault('ab', undefined).message, 'undefined');
    assert.equal(celFault('ab', null).message, 'null');
  });
});

describe('an excerpt', () => {
  it('is the line of the fault', () => {
    const text = 'one\ntwo\nthree';

    assert.equal(excerptOf(text, 0), 'one\n^');
    assert.equal(excerptOf(text, 3), 'one\n   ^');
    assert.equal(excerptOf(text, 4), 'two\n^');
    assert.equal(excerptOf(text, 13), 'three\n     ^');
  });

  it('stays within the text', () => {
    assert.equal(excerptOf('abc', 99), 'abc\n   ^');
    assert.equal(excerptOf('abc', -1), 'abc\n^');
    assert.equal(excerptOf('abc', Number.NaN), 'abc\n^');
    assert.equal(excerptOf('', 0), '\n^');
  });
});
