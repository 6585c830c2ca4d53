import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { bucketOf, tierOf } from '../../test/support/limiter-fixture.ts';
import { KeyedBucket, MAX_KNOWLEDGE_US } from './bucket.ts';
import { elementAt } from './element.ts';

/** A bucket of 5 tokens, one a second, whose level was told at 1 000 000 µs. */
function told(level: number, buckets = [bucketOf(5, 1)]): KeyedBucket {
  const keyed = new KeyedBucket('key', elementAt(tierOf({ buckets }).buckets, 0));
  keyed.level = level;
  keyed.sentUs = 1_000_000;
  keyed.receivedUs = 1_000_200;
  keyed.period = 1;
  return keyed;
}

describe('the buckets of a tier', () => {
  test('carry policy, rule, tier and the seconds in which they fill', () => {
    const tier = tierOf({ buckets: [bucketOf(5, 1), bucketOf(100, 50, 'burst')] });

    const [main, burst] = tier.buckets.map(({ bucket }) => bucket);
    assert.ok(main && burst);

    assert.equal(main.windowSeconds, 5);
    assert.equal(burst.windowSeconds, 2);
    assert.equal(burst.name, 'burst');
    assert.equal(burst.policy, tier.policy);
    assert.deepEqual(burst.limit, bucketOf(100, 50).limit);
  });

  test('round the seconds in which they fill up', () => {
    const { buckets } = tierOf({ buckets: [bucketOf(1, 1_000)] });

    assert.equal(buckets[0]?.bucket.windowSeconds, 1);
  });

  for (const tickUs of [1, 1_000, 1_000_000] as const) {
    test(`keep a tick of ${tickUs} µs`, () => {
      const limit = { capacity: 5, unitsPerToken: 7, unitsPerTick: 2, tickUs };

      const { buckets } = tierOf({ buckets: [{ name: 'main', limit }] });

      assert.deepEqual(buckets[0]?.bucket.limit, limit);
    });
  }

  test('have a local share only where the failure mode needs one', () => {
    const share = (policy: Parameters<typeof tierOf>[0]): number | undefined =>
      tierOf(policy).buckets[0]?.local?.capacity;

    assert.equal(share({ policy: { failureMode: 'Local', replicas: 2 } }), 2);
    assert.equal(share({ policy: { failureMode: 'Open' } }), undefined);
    assert.equal(share({ policy: { failureMode: 'Local', scope: 'Pod' } }), undefined);
  });
});

describe('a bucket under a newer limit', () => {
  test('says the limit in force, and is one object per limit', () => {
    const origin = elementAt(tierOf().buckets, 0);

    const newer = origin.under('2 50 100000 1 1');

    assert.equal(newer.limit.capacity, 50);
    assert.equal(newer.windowSeconds, 5);
    assert.equal(origin.under('2 50 100000 1 1'), newer);
    assert.notEqual(origin.under('3 60 100000 1 1'), newer);
  });

  test('is itself again when the text is its own', () => {
    const origin = elementAt(tierOf().buckets, 0);

    assert.equal(origin.under(origin.bucket.stored.text), origin.bucket);
  });
});

describe('what is known of a level', () => {
  test('refuses while level, refill since and one tick more do not suffice', () => {
    const keyed = told(0);

    assert.ok(keyed.certainlyLacks(1, 1_000_000 + 999_998, 1));
    assert.ok(!keyed.certainlyLacks(1, 1_000_000 + 999_999, 1));
  });

  test('counts the age in ticks of the limit', () => {
    const limit = { capacity: 5, unitsPerToken: 3, unitsPerTick: 1, tickUs: 1_000 } as const;
    const keyed = told(0, [{ name: 'main', limit }]);

    assert.ok(keyed.certainlyLacks(1, 1_000_000 + 1_999, 1));
    assert.ok(!keyed.certainlyLacks(1, 1_000_000 + 2_000, 1));
  });

  test('says nothing about a cost the level may pay', () => {
    assert.ok(!told(4_000_000).certainlyLacks(4, 1_000_001, 1));
    assert.ok(told(4_000_000).certainlyLacks(5, 1_000_001, 1));
  });

  test('is worth nothing after a second', () => {
    const keyed = told(0);

    assert.ok(keyed.certainlyLacks(5, 1_000_000 + MAX_KNOWLEDGE_US, 1));
    assert.ok(!keyed.certainlyLacks(5, 1_000_001 + MAX_KNOWLEDGE_US, 1));
  });

  test('is worth nothing after a reconnect, nor once forgotten', () => {
    const keyed = told(0);
    assert.ok(!keyed.certainlyLacks(1, 1_000_001, 2));

    keyed.forget();

    assert.ok(!keyed.certainlyLacks(1, 1_000_001, 1));
  });

  test('gives the wait from when the answer came', () => {
    assert.equal(told(0).waitUs(1, 1_000_200), 1_000_000);
    assert.equal(told(0).waitUs(1, 1_500_200), 500_000);
    assert.equal(told(400_000).waitUs(1, 1_000_200), 600_000);
  });

  test('adds how far the clock of the store is behind the bucket', () => {
    const keyed = told(0);
    keyed.aheadUs = 3_000_000;

    assert.equal(keyed.waitUs(1, 1_000_200), 4_000_000);
  });

  test('never gives a wait below one µs', () => {
    assert.equal(told(999_999).waitUs(1, 1_900_000), 1);
  });

  test('says never for a cost above the capacity', () => {
    assert.equal(told(5_000_000).waitUs(6, 1_000_200), -1);
    assert.equal(told(0).waitUs(5, 1_000_200), 5_000_000);
  });
});
