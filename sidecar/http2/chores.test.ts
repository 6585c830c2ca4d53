import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Chores, CHORES_OF_A_RESET } from './chores.ts';
import { ENHANCE_YOUR_CALM } from './error-code.ts';

describe('chores', () => {
  it('are done up to ten thousand at a time', () => {
    const chores = new Chores();
    for (let done = 0; done < 10_000; done += CHORES_OF_A_RESET) chores.add(CHORES_OF_A_RESET);
    assert.throws(() => {
      chores.add(1);
    }, /ConnectionError.*nothing/);
  });

  it('are forgiven with time', () => {
    const chores = new Chores();
    chores.add(10_000);
    chores.forgive();
    chores.add(10_000);
    assert.throws(
      () => {
        chores.add(1);
      },
      { code: ENHANCE_YOUR_CALM },
    );
  });
});
