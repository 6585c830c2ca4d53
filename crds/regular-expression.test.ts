import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileExpression } from './regular-expression.ts';

describe('a regular expression', () => {
  it('matches anywhere unless it says where', () => {
    const outcome = compileExpression('b+');

    assert(outcome.kind === 'compiled');
    assert(outcome.expression.test('abc'));
    assert(!outcome.expression.test('ac'));
  });

  it('is refused in the words of RE2', () => {
    assert.deepEqual(compileExpression('['), { kind: 'invalid', cause: 'missing closing ]: `[`' });
    assert.deepEqual(compileExpression('a{1001}'), {
      kind: 'invalid',
      cause: 'invalid repeat count: `{1001}`',
    });
  });
});
