import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { tierOf } from '../../test/support/limiter-fixture.ts';
import { hashKeyText } from './bucket-key.ts';
import { KeyInterner, MAX_KEPT_TEXT } from './key-interner.ts';

describe('interned keys', () => {
  test('are the same object for as long as they are in use', () => {
    const interner = new KeyInterner(1, 10);
    const tier = tierOf();
    const first = interner.intern(tier, 'hot');

    for (let i = 0; i < 100; i += 1) {
      interner.intern(tier, `cold ${i}`);
      assert.equal(interner.intern(tier, 'hot'), first);
    }
  });

  test('fall out after a whole period without use', () => {
    const interner = new KeyInterner(1, 10);
    const tier = tierOf();
    const first = interner.intern(tier, 'once');

    for (let i = 0; i < 21; i += 1) interner.intern(tier, `other ${i}`);

    const again = interner.intern(tier, 'once');
    assert.notEqual(again, first);
    assert.equal(again.buckets[0]?.key, first.buckets[0]?.key);
    assert.notEqual(again.id, first.id);
  });

  test('number at most two periods over all tiers', () => {
    const most = 50;
    const interner = new KeyInterner(1, most);
    const tiers = Array.from({ length: 5 }, (_, i) => tierOf({ rule: { name: `rule-${i}` } }));

    for (let i = 0; i < 10_000; i += 1) {
      const tier = tiers[i % 5];
      if (tier !== undefined) interner.intern(tier, `key ${i}`);
    }

    const held = tiers.reduce((sum, { young, old }) => sum + young.size + old.size, 0);
    assert.ok(held <= 2 * most, `${held} held`);
  });

  test('of a tier nobody uses any more are let go', () => {
    const interner = new KeyInterner(1, 10);
    const [idle, busy] = [tierOf(), tierOf({ rule: { name: 'busy' } })];
    for (let i = 0; i < 10; i += 1) interner.intern(idle, `key ${i}`);

    for (let i = 0; i < 30; i += 1) interner.intern(busy, `key ${i}`);

    assert.equal(idle.young.size + idle.old.size, 0);
  });

  test('carry the partition of their key in their tag', () => {
    const interner = new KeyInterner(4);
    const tier = tierOf();

    const tags = new Set(
      Array.from({ length: 100 }, (_, i) => interner.intern(tier, `key ${i}`).tag),
    );

    assert.deepEqual([...tags].sort(), ['shop/uid/0', 'shop/uid/1', 'shop/uid/2', 'shop/uid/3']);
  });

  test('are kept as they are up to the bound, and under their hash beyond it', () => {
    const interner = new KeyInterner(1);
    const tier = tierOf();
    const [kept, long] = ['k'.repeat(MAX_KEPT_TEXT), 'k'.repeat(MAX_KEPT_TEXT + 1)];

    const [ofKept, ofLong] = [interner.intern(tier, kept), interner.intern(tier, long)];

    assert.deepEqual([...tier.young.keys()], [kept, `#${hashKeyText(long)}`]);
    assert.equal(interner.intern(tier, kept), ofKept);
    assert.equal(interner.intern(tier, long), ofLong);
    assert.equal(ofLong.buckets[0]?.key.split(':').at(-1), hashKeyText(long));
  });

  test('of any length tell texts apart that differ in one character', () => {
    const interner = new KeyInterner(1);
    const tier = tierOf();
    const names = [0, 300, 20_000, 65_536].flatMap((length) =>
      ['a', 'b', '\ud800', '\udfff'].map((end) => 'k'.repeat(length) + end),
    );

    const found = names.map((name) => interner.intern(tier, name));

    assert.equal(new Set(found.map(({ buckets }) => buckets[0]?.key)).size, names.length - 4);
    assert.deepEqual(
      names.map((name) => interner.intern(tier, name)),
      found,
    );
  });
});
