import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { bucketOf, tierOf } from '../../test/support/limiter-fixture.ts';
import { KeyedBucket } from '../limiter/bucket.ts';
import { elementAt } from '../limiter/element.ts';
import { KeyPositions } from './key-positions.ts';

const origin = elementAt(tierOf({ buckets: [bucketOf(5, 1)] }).buckets, 0);

function bucketNamed(key: string): KeyedBucket {
  return new KeyedBucket(key, origin);
}

function positionOf(positions: KeyPositions, bucket: KeyedBucket): number {
  const known = positions.find(bucket);
  return known > 0 ? known : positions.add(bucket);
}

describe('the positions of keys in a call', () => {
  it('are those a map would give, call after call', () => {
    // Few letters, so that keys repeat; `Aa` and `BB` have one hash.
    const key = fc.string({ unit: fc.constantFrom('Aa', 'BB', 'x'), maxLength: 6 });
    const calls = fc.array(fc.array(key, { maxLength: 200 }), { maxLength: 4 });
    fc.assert(
      fc.property(calls, (keysOfCalls) => {
        const positions = new KeyPositions();
        for (const keys of keysOfCalls) {
          const expected = new Map<string, number>();
          for (const name of keys) {
            if (!expected.has(name)) expected.set(name, expected.size + 1);
            assert.equal(positionOf(positions, bucketNamed(name)), expected.get(name));
          }
          assert.deepEqual(
            positions.buckets.map((bucket) => bucket.key),
            [...expected.keys()],
          );
          positions.clear();
          assert.equal(positions.buckets.length, 0);
        }
      }),
    );
  });

  it('are kept for a decision over more buckets than a call has otherwise', () => {
    const positions = new KeyPositions();
    const buckets = Array.from({ length: 1_000 }, (_, i) => bucketNamed(`key-${i}`));

    for (const bucket of buckets) positions.add(bucket);

    assert.deepEqual(
      buckets.map((bucket) => positions.find(bucket)),
      buckets.map((_, i) => i + 1),
    );
    assert.equal(positions.find(bucketNamed('another')), 0);
  });

  it('give two objects with one key one position', () => {
    const positions = new KeyPositions();
    positions.add(bucketNamed('other'));

    positions.add(bucketNamed('same'));

    assert.equal(positions.find(bucketNamed('same')), 2);
  });
});
