import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { editDistance, nearestWord } from './spelling.ts';

const FIELDS = ['capacity', 'refill', 'name'];

describe('the nearest word', () => {
  const cases: [string, string, string | undefined][] = [
    ['is found when a letter is missing', 'capcity', 'capacity'],
    ['is found when two neighbours are swapped', 'capactiy', 'capacity'],
    ['is found when only the case differs', 'Capacity', 'capacity'],
    ['is found in a short word with one letter wrong', 'nme', 'name'],
    ['is none when more than a third is wrong', 'cabasidi', undefined],
    ['is none for another word', 'limit', undefined],
    ['is none for the empty word', '', undefined],
    ['is none for a word that nobody would write', 'x'.repeat(65), undefined],
  ];

  for (const [claim, word, nearest] of cases) {
    it(claim, () => {
      assert.equal(nearestWord(word, FIELDS), nearest);
    });
  }

  it('is the nearest of several, the first of equals', () => {
    assert.equal(nearestWord('modes', ['nodes', 'mode', 'modem']), 'nodes');
    assert.equal(nearestWord('modee', ['modest', 'mode']), 'mode');
  });

  it('compares words of up to 64 letters', () => {
    assert.equal(nearestWord('x'.repeat(64), ['x'.repeat(63)]), 'x'.repeat(63));
  });
});

describe('the edit distance', () => {
  it('counts insertions, deletions, replacements and swaps as one each', () => {
    const distances = [
      ['', '', 0],
      ['abc', '', 3],
      ['', 'ab', 2],
      ['abc', 'abd', 1],
      ['abc', 'acb', 1],
      ['ab', 'ba', 1],
      ['abcd', 'badc', 2],
      ['kitten', 'sitting', 3],
    ] as const;

    for (const [a, b, distance] of distances)
      assert.equal(editDistance(a, b), distance, `${a} ${b}`);
  });

  it('is symmetric, and zero only for equal words', () => {
    const word = fc.string({ maxLength: 8 });
    fc.assert(
      fc.property(word, word, (a, b) => {
        assert.equal(editDistance(a, b), editDistance(b, a));
        assert.equal(editDistance(a, b) === 0, a === b);
      }),
      { verbose: true },
    );
  });
});
