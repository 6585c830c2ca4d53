import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { StoredLimit } from './stored-limit.ts';
import {
  ACQUIRE,
  CHARGE_DOWN,
  MAX_CLOCK_AHEAD_US,
  PEEK,
  REFUND,
  TokenBuckets,
  scaleExactly,
  type BucketState,
  type BucketTable,
  type Reply,
} from './token-bucket.ts';

const T0 = 1_758_000_000_000_000;
/** 5 tokens, one a second. */
const limit = new StoredLimit(1, {
  capacity: 5,
  unitsPerToken: 1_000_000,
  unitsPerTick: 1,
  tickUs: 1,
});

class Table implements BucketTable {
  readonly states = new Map<string, BucketState>();
  /** Keys that stand for another key. */
  readonly aliases = new Map<string, string>();

  open(key: string): BucketState | undefined {
    return this.states.get(this.aliases.get(key) ?? key);
  }

  insert(key: string, state: BucketState): void {
    this.states.set(key, state);
  }
}

interface OneDecision {
  readonly weight: number;
  readonly under: StoredLimit;
}

class Bench {
  readonly table = new Table();
  readonly #twin = new TokenBuckets(this.table);

  decide(nowUs: number, operations: readonly number[], ...limits: readonly StoredLimit[]): Reply {
    const used = limits.length === 0 ? [limit] : limits;
    const reply: Reply = ['what was there before'];
    this.#twin.decide(
      { keys: used.map((_, i) => `k${i}`), limits: used, operations },
      nowUs,
      reply,
    );
    return reply;
  }

  /** One decision over the first key. */
  one(nowUs: number, operation: number, want: number, rest: Partial<OneDecision> = {}): Reply {
    const { weight = 1, under = limit } = rest;
    return this.decide(nowUs, [operation, want, 0, 1, 1, weight], under);
  }

  state(i = 0): string | undefined {
    const state = this.table.states.get(`k${i}`);
    return state && `${state.level} ${state.stamp} ${state.limit.text}`;
  }
}

describe('acquiring', () => {
  test('denies the request after the last one the bucket holds', () => {
    const bench = new Bench();

    assert.deepEqual(bench.one(T0, ACQUIRE, 5), [T0, 5, 0, 0]);
    assert.deepEqual(bench.one(T0, ACQUIRE, 1), [T0, 0, 1_000_000, 0]);
  });

  test('grants as many of those asked for as there is, and says when the next passes', () => {
    const bench = new Bench();

    assert.deepEqual(bench.one(T0, ACQUIRE, 3, { weight: 2 }), [T0, 2, 1_000_000, 1_000_000]);
  });

  test('passes at the end of the wait, not one µs earlier', () => {
    const bench = new Bench();
    bench.one(T0, ACQUIRE, 5);

    assert.equal(bench.one(T0 + 999_999, ACQUIRE, 1)[1], 0);
    assert.equal(bench.one(T0 + 1_000_000, ACQUIRE, 1)[1], 1);
  });

  test('never can pay a cost above the capacity, and pays one that equals it', () => {
    const bench = new Bench();

    assert.deepEqual(bench.one(T0, ACQUIRE, 1, { weight: 6 }).slice(1), [0, -1, 5_000_000]);
    assert.deepEqual(bench.one(T0, ACQUIRE, 1, { weight: 5 }).slice(1), [1, 0, 0]);
  });

  test('takes from all buckets or from none', () => {
    const bench = new Bench();
    const small = new StoredLimit(1, {
      capacity: 1,
      unitsPerToken: 1_000_000,
      unitsPerTick: 1,
      tickUs: 1,
    });
    const both = [ACQUIRE, 1, 0, 2, 1, 1, 2, 1];

    assert.deepEqual(bench.decide(T0, both, limit, small), [T0, 1, 0, 4_000_000, 0]);
    assert.deepEqual(bench.decide(T0, both, limit, small), [T0, 0, 1_000_000, 4_000_000, 0]);
  });

  test('nothing changes nothing', () => {
    const bench = new Bench();

    assert.deepEqual(bench.one(T0, ACQUIRE, 0), [T0, 0, 0, 5_000_000]);
    assert.equal(bench.state(), undefined);
  });

  test('a denial leaves no trace', () => {
    const bench = new Bench();
    bench.one(T0, ACQUIRE, 5);
    const before = bench.state();

    bench.one(T0 + 500_000, ACQUIRE, 1);

    assert.equal(bench.state(), before);
  });
});

describe('many decisions in one call', () => {
  test('each see what those before them took', () => {
    const bench = new Bench();
    const [two, again] = [
      [ACQUIRE, 3, 0, 1, 1, 1],
      [ACQUIRE, 3, 0, 1, 1, 1],
    ];

    assert.deepEqual(bench.decide(T0, [...two, ...again]), [T0, 3, 0, 2, 1_000_000, 0]);
  });

  test('may be bounded by what an earlier one granted', () => {
    const bench = new Bench();
    const small = new StoredLimit(1, {
      capacity: 2,
      unitsPerToken: 1_000_000,
      unitsPerTick: 1,
      tickUs: 1,
    });
    const bounded = [ACQUIRE, 4, 0, 1, 2, 1, ACQUIRE, 4, 1, 1, 1, 1];

    assert.deepEqual(
      bench.decide(T0, bounded, limit, small).slice(1),
      [2, 1_000_000, 2, 0, 3_000_000, 0],
    );
  });

  test('work on one bucket where two keys share it', () => {
    const bench = new Bench();
    bench.one(T0, ACQUIRE, 1);
    bench.table.aliases.set('k1', 'k0');

    const reply = bench.decide(T0, [ACQUIRE, 3, 0, 1, 1, 1, ACQUIRE, 3, 0, 1, 2, 1], limit, limit);

    assert.deepEqual(reply, [T0, 3, 0, 1, 1_000_000, 0, 0]);
    assert.equal(bench.state(), `0 ${T0} ${limit.text}`);
  });

  test('end in an error when one names a key that is not there', () => {
    const bench = new Bench();
    bench.decide(T0, [], limit, limit, limit);

    assert.throws(() => bench.decide(T0, [ACQUIRE, 1, 0, 1, 2, 1], limit), RangeError);
  });
});

describe('peeking', () => {
  test('says what acquiring would, and takes nothing', () => {
    const bench = new Bench();
    bench.one(T0, ACQUIRE, 3);

    assert.deepEqual(bench.one(T0, PEEK, 5), [T0, 2, 1_000_000, 2_000_000]);
    assert.deepEqual(bench.one(T0, ACQUIRE, 5), [T0, 2, 1_000_000, 0]);
  });
});

describe('refunding', () => {
  test('gives tokens back, to a full bucket at most', () => {
    const bench = new Bench();
    bench.one(T0, ACQUIRE, 2);

    assert.deepEqual(bench.one(T0, REFUND, 1), [T0, 1, 0, 4_000_000]);
    assert.deepEqual(bench.one(T0, REFUND, 3), [T0, 3, 0, 5_000_000]);
  });

  test('never creates a bucket', () => {
    const bench = new Bench();

    bench.one(T0, REFUND, 1);

    assert.equal(bench.state(), undefined);
  });
});

describe('charging down', () => {
  test('takes what is there, fraction included, and never more', () => {
    const bench = new Bench();
    bench.one(T0, ACQUIRE, 5);

    assert.deepEqual(bench.one(T0 + 1_500_000, CHARGE_DOWN, 1), [T0 + 1_500_000, 1, 0, 500_000]);
    assert.deepEqual(bench.one(T0 + 1_500_000, CHARGE_DOWN, 1), [T0 + 1_500_000, 1, 0, 0]);
  });

  test('creates the bucket', () => {
    const bench = new Bench();

    bench.one(T0, CHARGE_DOWN, 1, { weight: 100_000_000 });

    assert.equal(bench.state(), `0 ${T0} ${limit.text}`);
  });
});

describe('the clock', () => {
  test('that goes back gives no credit and is not stored', () => {
    const bench = new Bench();
    bench.one(T0, ACQUIRE, 4);

    bench.one(T0 - 3_000_000, ACQUIRE, 1);

    assert.equal(bench.state(), `0 ${T0} ${limit.text}`);
    assert.deepEqual(bench.one(T0 - 3_000_000, ACQUIRE, 1).slice(1), [0, 4_000_000, 0]);
  });

  test('is behind by five seconds at most before the bucket is re-anchored', () => {
    const bench = new Bench();
    bench.one(T0, ACQUIRE, 5);

    bench.one(T0 - MAX_CLOCK_AHEAD_US, ACQUIRE, 1);
    assert.equal(bench.state(), `0 ${T0} ${limit.text}`);

    bench.one(T0 - MAX_CLOCK_AHEAD_US - 1, ACQUIRE, 1);
    assert.equal(bench.state(), `0 ${T0 - MAX_CLOCK_AHEAD_US - 1} ${limit.text}`);
  });

  test('credits no part of a tick twice', () => {
    const coarse = new StoredLimit(1, {
      capacity: 5,
      unitsPerToken: 1,
      unitsPerTick: 1,
      tickUs: 1_000_000,
    });
    const bench = new Bench();

    bench.one(T0 + 999_999, ACQUIRE, 5, { under: coarse });

    assert.equal(bench.one(T0 + 1_999_999, ACQUIRE, 1, { under: coarse })[1], 0);
    assert.equal(bench.one(T0 + 2_000_000, ACQUIRE, 1, { under: coarse })[1], 1);
  });

  test('stands still for a year without overflowing the bucket', () => {
    const fast = new StoredLimit(1, {
      capacity: 1_000,
      unitsPerToken: 1,
      unitsPerTick: 100_000_000,
      tickUs: 1,
    });
    const bench = new Bench();
    bench.one(T0, ACQUIRE, 1_000, { under: fast });

    assert.equal(bench.one(T0 + 31_622_400_000_000, PEEK, 1, { under: fast })[3], 1_000);
  });
});

describe('an edited limit', () => {
  const raised = new StoredLimit(2, {
    capacity: 8,
    unitsPerToken: 500_000,
    unitsPerTick: 1,
    tickUs: 1,
  });
  const sameGeneration = new StoredLimit(1, {
    capacity: 8,
    unitsPerToken: 500_000,
    unitsPerTick: 1,
    tickUs: 1,
  });

  test('keeps whole tokens, scales the fraction and adds the growth', () => {
    const bench = new Bench();
    bench.one(T0, ACQUIRE, 3);

    const level = bench.one(T0 + 400_000, PEEK, 1, { under: raised })[3];

    assert.equal(level, (2 + 3) * 500_000 + 200_000);
  });

  test('of the same generation adds no growth, so flips mint nothing', () => {
    const bench = new Bench();
    bench.one(T0, ACQUIRE, 5);

    for (let flip = 0; flip < 10; flip += 1) {
      assert.equal(bench.one(T0, ACQUIRE, 1, { under: sameGeneration })[1], 0);
      assert.equal(bench.one(T0, ACQUIRE, 1)[1], 0);
    }
  });

  test('is stored even when the request is denied', () => {
    const bench = new Bench();
    bench.one(T0, ACQUIRE, 5);

    bench.one(T0, ACQUIRE, 1, { under: sameGeneration });

    assert.equal(bench.state(), `0 ${T0} ${sameGeneration.text}`);
  });

  test('is clamped to a lowered capacity', () => {
    const lowered = new StoredLimit(2, {
      capacity: 2,
      unitsPerToken: 1_000_000,
      unitsPerTick: 1,
      tickUs: 1,
    });
    const bench = new Bench();
    bench.one(T0, ACQUIRE, 1);

    assert.equal(bench.one(T0, PEEK, 1, { under: lowered })[3], 2_000_000);
  });

  test('that is older obeys the newer one, and the reply says so', () => {
    const bench = new Bench();
    bench.one(T0, ACQUIRE, 8, { under: raised });

    assert.deepEqual(bench.one(T0, ACQUIRE, 1), [T0, 0, 500_000, 0, 1, raised.text]);
  });

  test('of a newer generation with equal numbers changes nothing', () => {
    const next = new StoredLimit(2, limit);
    const bench = new Bench();
    bench.one(T0, ACQUIRE, 5);

    bench.one(T0, ACQUIRE, 1, { under: next });

    assert.equal(bench.state(), `0 ${T0} ${limit.text}`);
  });

  test('with a coarser tick never brings the stamp back', () => {
    const coarse = new StoredLimit(2, {
      capacity: 5,
      unitsPerToken: 1,
      unitsPerTick: 1,
      tickUs: 1_000_000,
    });
    const bench = new Bench();
    bench.one(T0 + 1, ACQUIRE, 5);

    bench.one(T0 + 1, ACQUIRE, 1, { under: coarse });

    assert.equal(bench.state(), `0 ${T0 / 1_000_000 + 1} ${coarse.text}`);
  });
});

describe('scaling', () => {
  const cases = [
    [0, 7, 3],
    [2, 7, 3],
    [8_999_999_999_999_999, 8_999_999_999_999_998, 9_000_000_000_000_000],
    [4_503_599_627_370_497, 9_000_000_000_000_000, 9_000_000_000_000_000],
    [1, 9_000_000_000_000_000, 2],
    [123_456_789_012_345, 987_654_321_098_765, 123_456_789_012_346],
  ] as const;
  for (const [a, b, c] of cases) {
    test(`gives floor(${a} · ${b} / ${c}) exactly`, () => {
      assert.equal(BigInt(scaleExactly(a, b, c)), (BigInt(a) * BigInt(b)) / BigInt(c));
    });
  }
});
