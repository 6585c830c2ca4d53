import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as z from 'zod';
import { list, quote, ruled, text } from './field.ts';

describe('a string field', () => {
  const field = text('A word.', { min: 2, max: 3, pattern: /^[a-z🌊]+$/u, advice: 'a short word' });

  function messageOf(value: string): string | undefined {
    return field.safeParse(value).error?.issues[0]?.message;
  }

  it('counts code points, as the API server does', () => {
    assert.equal(messageOf('🌊🌊🌊'), undefined);
    assert.equal(messageOf('🌊🌊🌊🌊'), 'has 4 characters, more than 3');
  });

  it('says what is wrong', () => {
    assert.equal(messageOf(''), 'is empty');
    assert.equal(messageOf('a'), 'is shorter than 2 characters');
    assert.equal(messageOf('A1'), '"A1" does not have the form');
  });

  it('says that the form is wrong rather than the length', () => {
    assert.equal(messageOf('5 seconds'), '"5 seconds" does not have the form');
    assert.equal(messageOf('A'), '"A" does not have the form');
  });

  it('does not ask the pattern about a text that is far too long', () => {
    assert.equal(messageOf('A'.repeat(20_000)), `"${'A'.repeat(40)}…" does not have the form`);
    assert.equal(messageOf('A'.repeat(20_001)), 'has 20001 characters, more than 3');
  });
});

describe('a quoted value', () => {
  it('is cut at 40 characters and has no line ends', () => {
    assert.equal(quote('x'.repeat(40)), `"${'x'.repeat(40)}"`);
    assert.equal(quote('x'.repeat(41)), `"${'x'.repeat(40)}…"`);
    assert.equal(quote('a\r\nb'), '"a\\r\\nb"');
  });
});

describe('a list', () => {
  it('refuses the second of two equal items of a set', () => {
    const set = list('Words.', z.string(), { max: 3, kind: 'set' });

    assert.deepEqual(set.safeParse(['a', 'b', 'a']).error?.issues[0]?.path, [2]);
  });

  it('refuses the second of two items of a map with one name', () => {
    const map = list('Things.', z.object({ name: z.string() }), { max: 3, kind: 'map' });

    assert.deepEqual(map.safeParse([{ name: 'a' }, { name: 'a' }]).error?.issues[0]?.path, [
      1,
      'name',
    ]);
    assert(map.safeParse([{ name: 'a' }, { name: 'b' }]).success);
  });

  it('does not look for names where items are no objects, or have none', () => {
    const map = list('Things.', z.any(), { max: 3, kind: 'map' });

    assert(map.safeParse([1, 1, null]).success);
    assert(map.safeParse([{}, {}]).success);
  });
});

describe('a rule', () => {
  const schema = ruled(z.object({ a: z.int(), b: z.int() }), [
    {
      rule: 'self.a < self.b',
      message: 'must be smaller',
      advice: 'lower it',
      field: 'a',
      holds: ({ a, b }) => a < b,
    },
    {
      rule: 'self.a > 0',
      message: 'must be positive',
      advice: 'raise it',
      holds: ({ a }) => a > 0,
      cause: ({ a }) => `is ${String(a)}`,
    },
  ]);

  it('is written out for the API server', () => {
    assert.deepEqual(schema.meta()?.['x-kubernetes-validations'], [
      { rule: 'self.a < self.b', message: 'must be smaller', fieldPath: '.a' },
      { rule: 'self.a > 0', message: 'must be positive' },
    ]);
  });

  it('is reported at its field, each rule for itself', () => {
    const issues = schema
      .safeParse({ a: 0, b: 0 })
      .error?.issues.map(({ path, message }) => ({ path, message }));

    assert.deepEqual(issues, [
      { path: ['a'], message: 'must be smaller' },
      { path: [], message: 'must be positive: is 0' },
    ]);
  });

  it('is asked although a rule further inside is broken', () => {
    const inner = ruled(z.object({ b: z.int() }), [
      { rule: 'self.b == 7', message: 'must be 7', advice: 'write 7', holds: ({ b }) => b === 7 },
    ]);
    const outer = ruled(z.object({ a: z.array(inner) }), [
      {
        rule: 'self.a.size() == 2',
        message: 'must be two',
        advice: 'write 2',
        holds: ({ a }) => a.length === 2,
      },
    ]);

    const issues = outer.safeParse({ a: [{ b: 1 }] }).error?.issues;

    assert.deepEqual(
      issues?.map(({ path }) => path),
      [['a', 0], []],
    );
  });

  it('is not asked where a field is wrong, be it of the wrong type or out of bounds', () => {
    const bounded = ruled(z.object({ a: z.int().max(1) }), [
      { rule: 'self.a == 7', message: 'must be 7', advice: 'write 7', holds: ({ a }) => a === 7 },
    ]);

    for (const a of ['x', 2]) {
      assert.deepEqual(
        bounded.safeParse({ a }).error?.issues.map(({ path }) => path),
        [['a']],
      );
    }
  });
});
