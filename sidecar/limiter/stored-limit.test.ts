import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MAX_INTEGER, StoredLimit, parseStoredLimit } from './stored-limit.ts';

const numbers = { capacity: 10, unitsPerToken: 500_000, unitsPerTick: 1, tickUs: 1 } as const;

describe('a stored limit', () => {
  test('is the text that stands behind a level', () => {
    const limit = new StoredLimit(7, numbers);

    assert.equal(limit.text, '7 10 500000 1 1');
    assert.equal(limit.full, 5_000_000);
  });

  test('comes back from its text', () => {
    const limit = new StoredLimit(7, numbers);

    assert.deepEqual(parseStoredLimit(limit.text), limit);
  });

  test('has the same numbers as itself in another generation', () => {
    assert.ok(new StoredLimit(1, numbers).hasSameNumbers(new StoredLimit(2, numbers)));
  });

  const others = {
    capacity: { ...numbers, capacity: 11 },
    'units per token, with an equal level when full': {
      ...numbers,
      capacity: 5,
      unitsPerToken: 1_000_000,
    },
    'units per tick': { ...numbers, unitsPerTick: 2 },
    tick: { ...numbers, tickUs: 1_000 },
  } as const;
  for (const [what, other] of Object.entries(others)) {
    test(`has other numbers when the ${what} differs`, () => {
      assert.ok(!new StoredLimit(1, numbers).hasSameNumbers(new StoredLimit(1, other)));
    });
  }

  test('takes the largest numbers that stay exact', () => {
    const largest = {
      capacity: 1,
      unitsPerToken: MAX_INTEGER,
      unitsPerTick: MAX_INTEGER,
      tickUs: 1,
    } as const;

    assert.equal(new StoredLimit(MAX_INTEGER, largest).full, MAX_INTEGER);
  });

  const unsound: Record<string, () => unknown> = {
    'a level beyond the exact range': () =>
      new StoredLimit(1, { ...numbers, capacity: 2, unitsPerToken: MAX_INTEGER / 2 + 1 }),
    'a generation beyond it': () => new StoredLimit(MAX_INTEGER + 1, numbers),
    'a negative generation': () => new StoredLimit(-1, numbers),
    'no capacity': () => new StoredLimit(1, { ...numbers, capacity: 0 }),
    'a capacity and units that are negative together': () =>
      new StoredLimit(1, { ...numbers, capacity: -1, unitsPerToken: -1 }),
    'units that make a whole product of halves': () =>
      new StoredLimit(1, { ...numbers, capacity: 2, unitsPerToken: 0.5 }),
    'no rate': () => new StoredLimit(1, { ...numbers, unitsPerTick: 0 }),
    'no tick': () => parseStoredLimit('1 1 1 1 0'),
    'a text of four numbers': () => parseStoredLimit('1 1 1 1'),
    'a text of six numbers': () => parseStoredLimit('1 1 1 1 1 1'),
    'a text without numbers': () => parseStoredLimit('a b c d e'),
  };
  for (const [what, make] of Object.entries(unsound)) {
    test(`refuses ${what}`, () => {
      assert.throws(make, { name: 'AssertionError' });
    });
  }
});
