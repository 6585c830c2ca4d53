// A limit as it is written behind a level: "generation capacity unitsPerToken unitsPerTick tickUs".
// The text is the identity: two limits with the same text are the same limit, whoever wrote it, so a
// sidecar that meets a text it knows never parses it, and one that meets a newer one obeys it.
import assert from 'node:assert/strict';
import type { Limit } from '../../contract/bundle.ts';

/**
 * The largest level, rate, tick, instant and wait: below 2^53, because a Redis client reads the
 * integer 9007199254740991 as …992, and a number that is not exact must never reach a state.
 */
export const MAX_INTEGER = 9_000_000_000_000_000;

/** One limit of one generation, with what the arithmetic needs precomputed. Compared by `text`. */
export class StoredLimit {
  readonly generation: number;
  /** Tokens. */
  readonly capacity: number;
  readonly unitsPerToken: number;
  readonly unitsPerTick: number;
  readonly tickUs: number;
  /** Units of a full bucket. */
  readonly full: number;
  readonly text: string;

  constructor(generation: number, limit: Limit | StoredLimitNumbers) {
    this.generation = generation;
    this.capacity = limit.capacity;
    this.unitsPerToken = limit.unitsPerToken;
    this.unitsPerTick = limit.unitsPerTick;
    this.tickUs = limit.tickUs;
    this.full = limit.capacity * limit.unitsPerToken;
    this.text = `${generation} ${limit.capacity} ${limit.unitsPerToken} ${limit.unitsPerTick} ${limit.tickUs}`;
    assert(this.isSound(), `not a limit: ${this.text}`);
  }

  /** Whether a level keeps its meaning under `other`: everything but the generation is equal. */
  hasSameNumbers(other: StoredLimit): boolean {
    return (
      this.full === other.full &&
      this.unitsPerToken === other.unitsPerToken &&
      this.unitsPerTick === other.unitsPerTick &&
      this.tickUs === other.tickUs
    );
  }

  private isSound(): boolean {
    return (
      isWithin(this.generation, 0) &&
      isWithin(this.full, 1) &&
      isWithin(this.capacity, 1) &&
      isWithin(this.unitsPerToken, 1) &&
      isWithin(this.unitsPerTick, 1) &&
      isWithin(this.tickUs, 1)
    );
  }
}

interface StoredLimitNumbers {
  readonly capacity: number;
  readonly unitsPerToken: number;
  readonly unitsPerTick: number;
  readonly tickUs: number;
}

function isWithin(value: number, least: number): boolean {
  return Number.isSafeInteger(value) && value >= least && value <= MAX_INTEGER;
}

/** Reads a limit text that the script sent back. Throws on anything the script would have called foreign. */
export function parseStoredLimit(text: string): StoredLimit {
  const numbers = text.split(' ').map(Number);
  const [generation, capacity, unitsPerToken, unitsPerTick, tickUs] = numbers;
  assert(
    numbers.length === 5 &&
      generation !== undefined &&
      capacity !== undefined &&
      unitsPerToken !== undefined &&
      unitsPerTick !== undefined &&
      tickUs !== undefined,
    `not a limit text: ${text}`,
  );
  return new StoredLimit(generation, { capacity, unitsPerToken, unitsPerTick, tickUs });
}
