// The limiter's exact integers. With g = gcd(tokens, every in ticks): units per token = every/g, units per tick =
// tokens/g; the level never passes capacity · units per token. No division is left for the hot path.
import assert from 'node:assert/strict';
import type { Limit } from '../contract/bundle.ts';
import type { Milliseconds } from '../contract/units.ts';

/** Not 2^53 − 1: the Redis client reads a reply of 9007199254740991 as …992. */
export const UNITS_MAX = 9_000_000_000_000_000;

const TICKS_US = [1, 1_000, 1_000_000] as const;

export interface Rate {
  readonly capacity: number;
  readonly tokens: number;
  readonly every: Milliseconds;
}

/**
 * The limit of a bucket at the smallest tick whose levels fit. Asserts that there is one: it does exist for every
 * bucket within the bounds of the schema (capacity and tokens at most 10^8, at most 366 days to fill).
 */
export function limitOf({ capacity, tokens, every }: Rate): Limit {
  const everyUs = every * 1_000;
  for (const tickUs of TICKS_US) {
    if (everyUs % tickUs !== 0) continue;
    const ticks = everyUs / tickUs;
    const divisor = greatestCommonDivisor(tokens, ticks);
    const unitsPerToken = ticks / divisor;
    // Above 2^53 the product rounds, but never to below 2^53.
    if (capacity * unitsPerToken > UNITS_MAX) continue;
    return { capacity, unitsPerToken, unitsPerTick: tokens / divisor, tickUs };
  }
  assert.fail(`no tick fits ${String(capacity)} by ${String(tokens)} every ${String(every)} ms`);
}

function greatestCommonDivisor(a: number, b: number): number {
  let [larger, smaller] = [a, b];
  while (smaller > 0) [larger, smaller] = [smaller, larger % smaller];
  return larger;
}
