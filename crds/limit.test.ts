import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { milliseconds } from '../contract/units.ts';
import { TOKENS_MAX } from './bucket.ts';
import { DURATION_MAX_MS, parseDuration } from './duration.ts';
import { limitOf, UNITS_MAX } from './limit.ts';

const DAY_MS = 86_400_000;

describe('the limit of a bucket', () => {
  it('divides tokens and ticks by what they have in common', () => {
    const limit = limitOf({ capacity: 100, tokens: 100, every: milliseconds(60_000) });

    assert.deepEqual(limit, { capacity: 100, unitsPerToken: 600_000, unitsPerTick: 1, tickUs: 1 });
  });

  it('adds several units a tick where tokens come faster than ticks', () => {
    const limit = limitOf({ capacity: 10, tokens: 100_000_000, every: milliseconds(1) });

    assert.deepEqual(limit, { capacity: 10, unitsPerToken: 1, unitsPerTick: 100_000, tickUs: 1 });
  });

  it('takes the smallest tick whose levels fit', () => {
    // 9·10^15 / (366 d in µs = 31 622 400 000 000) = 284.6 tokens at one unit a tick of 1 µs.
    const year = milliseconds(366 * DAY_MS);
    const at = (capacity: number): number =>
      limitOf({ capacity, tokens: 284_999, every: year }).tickUs;

    assert.equal(at(284), 1);
    assert.equal(at(285), 1_000);
    assert.equal(
      limitOf({ capacity: 99_999_999, tokens: 99_999_999, every: year }).tickUs,
      1_000_000,
    );
  });

  it('lets a level reach 9·10^15 units, and not one token more', () => {
    // 100 s are 10^8 ticks of 1 µs, so many units a token.
    const at = (capacity: number): number =>
      limitOf({ capacity, tokens: 1, every: milliseconds(100_000) }).tickUs;

    assert.equal(at(90_000_000), 1);
    assert.equal(at(90_000_001), 1_000);
  });

  it('takes no tick that does not divide the time exactly', () => {
    const limit = limitOf({
      capacity: 100_000_000,
      tokens: 99_999_989,
      every: milliseconds(99_999),
    });

    assert.equal(limit.tickUs, 1_000);
  });

  it('ends with an assertion outside of the bounds of the schema', () => {
    const every = milliseconds(366 * DAY_MS);

    // A second does not divide 1001 ms; the smaller ticks do, and are too small.
    const odd = { capacity: 1e15, tokens: 7, every: milliseconds(1_001) };
    assert.throws(() => limitOf(odd), /no tick fits/);
    assert.throws(() => limitOf({ capacity: 1e9, tokens: 999_999_937, every }), /no tick fits/);
  });

  it('exists, is exact and fits for every bucket that the schema accepts', () => {
    const unit = fc.constantFrom('ms', 's', 'm', 'h', 'd');
    const every = fc
      .tuple(fc.integer({ min: 1, max: 99_999 }), unit)
      .map(([count, name]) => parseDuration(`${String(count)}${name}`) ?? milliseconds(0))
      .filter((duration) => duration > 0 && duration <= DURATION_MAX_MS);
    const tokens = fc.oneof(
      fc.integer({ min: 1, max: TOKENS_MAX }),
      fc.integer({ min: TOKENS_MAX - 50, max: TOKENS_MAX }),
    );
    const bucket = fc
      .record({ every, tokens, part: fc.double({ min: 0, max: 1, noNaN: true }) })
      .map(({ part, ...rate }) => {
        const most = Number((BigInt(rate.tokens) * BigInt(DURATION_MAX_MS)) / BigInt(rate.every));
        return { ...rate, capacity: Math.max(1, Math.floor(part * Math.min(most, TOKENS_MAX))) };
      });
    fc.assert(
      fc.property(bucket, (rate) => {
        const { capacity, unitsPerToken, unitsPerTick, tickUs } = limitOf(rate);
        const levelMax = BigInt(capacity) * BigInt(unitsPerToken);

        assert(levelMax <= BigInt(UNITS_MAX));
        assert(Number.isInteger(unitsPerToken) && Number.isInteger(unitsPerTick));
        // Units gained in `every` are exactly those of `tokens`.
        const gained = BigInt(unitsPerTick) * ((BigInt(rate.every) * 1_000n) / BigInt(tickUs));
        assert.equal(gained, BigInt(rate.tokens) * BigInt(unitsPerToken));
        assert.equal((BigInt(rate.every) * 1_000n) % BigInt(tickUs), 0n);
      }),
      { numRuns: 5_000, verbose: true },
    );
  });
});
