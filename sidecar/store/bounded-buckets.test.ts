import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { StoredLimit } from '../limiter/stored-limit.ts';
import { ACQUIRE, BucketState, TokenBuckets, type Reply } from '../limiter/token-bucket.ts';
import { BoundedBuckets, SWEEP_FROM, MAX_BUCKETS } from './bounded-buckets.ts';

/** 2 tokens, one a second. */
const limit = new StoredLimit(1, {
  capacity: 2,
  unitsPerToken: 1_000_000,
  unitsPerTick: 1,
  tickUs: 1,
});
const SECOND = 1_000_000;

class Bench {
  readonly table: BoundedBuckets;
  readonly #twin: TokenBuckets;

  constructor(most: number) {
    this.table = new BoundedBuckets(most);
    this.#twin = new TokenBuckets(this.table);
  }

  /** Grants of one token from each key's bucket, decided in one call. */
  take(nowUs: number, ...names: readonly string[]): number[] {
    const keys = names.map((name) => `weir1:{t}:rule:-:${name}`);
    const operations = names.flatMap((_, i) => [ACQUIRE, 1, 0, 1, i + 1, 1]);
    const reply: Reply = [];
    this.#twin.decide({ keys, limits: keys.map(() => limit), operations }, nowUs, reply);
    return names.map((_, i) => Number(reply[1 + 2 * i]));
  }
}

describe('a bounded table of buckets', () => {
  test('has room for 65 536, and sends the next key to the shared bucket', () => {
    const bench = new Bench(MAX_BUCKETS);
    for (let i = 0; i < MAX_BUCKETS; i += 1) bench.take(0, `main:${i}`);
    assert.deepEqual([bench.table.size, bench.table.overflowSize], [MAX_BUCKETS, 0]);

    bench.take(0, 'main:one more');

    assert.deepEqual([bench.table.size, bench.table.overflowSize], [MAX_BUCKETS, 1]);
  });

  test('evicts full buckets to make room', () => {
    const bench = new Bench(3);
    bench.take(0, 'main:a', 'main:b', 'main:c');

    bench.take(SECOND, 'main:d');

    assert.equal(bench.table.overflowSize, 0);
    assert.ok(bench.table.size <= 3);
  });

  test('lets go of what it evicts, so that nobody works on it any more', () => {
    const table = new BoundedBuckets(1);
    const evicted = new BucketState(0, 0, limit);
    table.insert('weir1:{t}:rule:-:main:a', evicted);
    assert.equal(evicted.isHeld, true);

    const other = table.open('weir1:{t}:rule:-:main:b', limit, 2 * SECOND);

    assert.deepEqual([other, evicted.isHeld], [undefined, false]);
  });

  test('does not evict a bucket one µs before it is full', () => {
    const bench = new Bench(1);
    bench.take(0, 'main:a');

    bench.take(SECOND - 1, 'main:b');

    assert.deepEqual([bench.table.size, bench.table.overflowSize], [1, 1]);
  });

  test('shares one bucket among all keys without a place, also within one call', () => {
    const bench = new Bench(1);
    bench.take(0, 'main:a');

    assert.deepEqual(bench.take(0, 'main:b', 'main:c', 'main:d'), [1, 1, 0]);
    assert.deepEqual(bench.take(0, 'main:e'), [0]);
  });

  test('shares apart for every bucket name', () => {
    const bench = new Bench(1);
    bench.take(0, 'main:a');

    bench.take(0, 'main:b', 'burst:b');

    assert.equal(bench.table.overflowSize, 2);
  });

  test('keeps keys in the shared bucket until it is full, so that none gets tokens anew', () => {
    const bench = new Bench(1);
    bench.take(0, 'main:a');
    bench.take(0, 'main:b');
    bench.take(0, 'main:b');
    // The place is free again, but b has drained the shared bucket.
    assert.deepEqual(bench.take(SECOND, 'main:b', 'main:c'), [1, 0]);

    assert.deepEqual(bench.take(3 * SECOND, 'main:b'), [1]);
    assert.deepEqual([bench.table.size, bench.table.overflowSize], [1, 0]);
  });

  test('shrinks as buckets fill and others come', () => {
    const bench = new Bench(2 * SWEEP_FROM);
    for (let i = 0; i < 2 * SWEEP_FROM; i += 1) bench.take(0, `main:${i}`);

    for (let i = 0; i < SWEEP_FROM; i += 1) bench.take(2 * SECOND, `main:late ${i}`);

    assert.ok(bench.table.size <= SWEEP_FROM, `${bench.table.size} held`);
  });

  test('drops nothing while it is small', () => {
    const bench = new Bench(2 * SWEEP_FROM);
    for (let i = 0; i < SWEEP_FROM; i += 1) bench.take(i * SECOND, `main:${i}`);

    assert.equal(bench.table.size, SWEEP_FROM);
  });

  test('never admits more of a key than an unbounded one would', () => {
    const requests = fc.array(
      fc.record({
        key: fc.integer({ min: 0, max: 6 }),
        stepUs: fc.integer({ min: 0, max: SECOND }),
      }),
      { maxLength: 200 },
    );

    fc.assert(
      fc.property(requests, fc.integer({ min: 1, max: 4 }), (story, most) => {
        const [bounded, unbounded] = [new Bench(most), new Bench(1_000)];
        let nowUs = 0;
        const admitted = [0, 0, 0, 0, 0, 0, 0];
        for (const { key, stepUs } of story) {
          nowUs += stepUs;
          const [here = 0] = bounded.take(nowUs, `main:${key}`);
          unbounded.take(nowUs, `main:${key}`);
          admitted[key] = (admitted[key] ?? 0) + here;
        }
        for (const count of admitted) assert.ok(count <= Math.floor(2 + nowUs / SECOND));
      }),
    );
  });
});
