// Hot path. The TypeScript twin of ../store/script.lua: the same decisions, the same integers, the same
// reply, over buckets in memory. It serves the embedded store, the local share of a sidecar whose store is
// away, `simulate` and `explain`. A property test holds twin, script and an independent BigInt model together.
// Every number stays an exact integer below 9·10^15; the clock is the caller's.
import { clear, elementAt } from './element.ts';
import { MAX_INTEGER, type StoredLimit } from './stored-limit.ts';

/** A bucket's level at an instant, as the script stores it. `stamp` is in ticks of the limit. */
export class BucketState {
  level: number;
  stamp: number;
  limit: StoredLimit;
  /** While a batch is decided: which of its keys works on this bucket; −1 otherwise. */
  openedAs = -1;
  /** Its table still has it: who keeps a reference may use it without asking the table. */
  isHeld = false;

  constructor(level: number, stamp: number, limit: StoredLimit) {
    this.level = level;
    this.stamp = stamp;
    this.limit = limit;
  }

  copy(from: BucketState): void {
    this.level = from.level;
    this.stamp = from.stamp;
    this.limit = from.limit;
  }

  /** A full bucket. It is stamped at the end of the running tick, so that no part of a tick is credited twice. */
  reset(limit: StoredLimit, nowUs: number): void {
    this.level = limit.full;
    this.stamp = Math.ceil(nowUs / limit.tickUs);
    this.limit = limit;
  }
}

/** Where the twin keeps its buckets: a map whose bound is its owner's business. */
export interface BucketTable {
  /** The state of `key`; undefined means a full bucket that nothing has taken from. */
  open(key: string, limit: StoredLimit, nowUs: number): BucketState | undefined;
  /** Called for a key that `open` did not have, once something has changed it. */
  insert(key: string, state: BucketState): void;
}

/** What a decision does to its buckets. The script spells them a, p, r and c. */
export const ACQUIRE = 0;
export const PEEK = 1;
export const REFUND = 2;
export const CHARGE_DOWN = 3;

/**
 * Many decisions over distinct buckets, as plain data. `limits[i]` belongs to `keys[i]`; `operations` holds
 * per decision: operation, want (times), after, n, then n pairs (position in `keys` from 1, weight in tokens).
 * `after` names an earlier decision (from 1) whose grant bounds `want`; 0 = none.
 */
export interface Batch {
  readonly keys: readonly string[];
  readonly limits: readonly StoredLimit[];
  readonly operations: readonly number[];
}

/**
 * The answer to a batch: now in µs; per decision granted (−1: foreign value) and wait in µs (0: granted in
 * full, −1: never); per key the level in units (−1: foreign); then pairs (position from 1, limit text) of the
 * keys that are under another limit than the batch named.
 */
export type Reply = (number | string)[];

/** A clock further behind a stored instant than this was stepped or belongs to another host: the bucket is re-anchored. */
export const MAX_CLOCK_AHEAD_US = 5_000_000;

export class TokenBuckets {
  readonly #table: BucketTable;
  // Scratch of one call, kept to spare the garbage collector. A bucket is worked on as a copy and written
  // back only when a decision changed it: a denial that stored its refill would disagree with the script
  // once the clock goes back.
  readonly #work: BucketState[] = [];
  readonly #known: (BucketState | undefined)[] = [];
  readonly #changed: boolean[] = [];
  /** Position of the copy a key works on: its own, or that of the first key that shares its bucket. */
  readonly #slots: number[] = [];

  constructor(table: BucketTable) {
    this.#table = table;
  }

  /** Decides `batch` at `nowUs` (whole µs) and writes the answer into `reply`, whose old content is dropped. */
  decide(batch: Batch, nowUs: number, reply: Reply): void {
    const { keys, operations } = batch;
    clear(reply);
    reply.push(nowUs);
    clear(this.#slots);
    for (let i = 0; i < keys.length; i += 1) this.#load(batch, i, nowUs);
    for (let at = 0; at < operations.length; at += 4 + 2 * elementAt(operations, at + 3)) {
      this.#decideOne(operations, at, reply);
    }
    this.#finish(batch, reply);
  }

  #load(batch: Batch, i: number, nowUs: number): void {
    const limit = elementAt(batch.limits, i);
    const key = elementAt(batch.keys, i);
    const known = this.#table.open(key, limit, nowUs);
    this.#known[i] = known;
    this.#changed[i] = false;
    this.#slots[i] = i;
    const work = (this.#work[i] ??= new BucketState(0, 0, limit));
    if (known === undefined) {
      work.reset(limit, nowUs);
      return;
    }
    if (known.openedAs >= 0) {
      this.#slots[i] = known.openedAs;
    } else {
      known.openedAs = i;
      work.copy(known);
    }
    const slot = elementAt(this.#slots, i);
    if (bringToNow(this.#state(i), limit, nowUs)) this.#changed[slot] = true;
  }

  #finish(batch: Batch, reply: Reply): void {
    const { keys, limits } = batch;
    for (let i = 0; i < keys.length; i += 1) reply.push(this.#state(i).level);
    for (let i = 0; i < keys.length; i += 1) {
      const state = this.#state(i);
      if (state.limit.text !== elementAt(limits, i).text) reply.push(i + 1, state.limit.text);
      const known = this.#known[i];
      if (known !== undefined) known.openedAs = -1;
      if (!elementAt(this.#changed, i)) continue;
      if (known === undefined) {
        this.#table.insert(
          elementAt(keys, i),
          new BucketState(state.level, state.stamp, state.limit),
        );
      } else {
        known.copy(state);
      }
    }
  }

  #decideOne(operations: readonly number[], at: number, reply: Reply): void {
    const operation = elementAt(operations, at);
    const after = elementAt(operations, at + 2);
    let want = elementAt(operations, at + 1);
    if (after > 0) want = Math.min(want, Math.max(0, Number(reply[2 * after - 1])));
    const pairs = { operations, first: at + 4, last: at + 4 + 2 * elementAt(operations, at + 3) };
    if (operation === REFUND || operation === CHARGE_DOWN) {
      this.#move(pairs, operation === REFUND ? want : -want);
      reply.push(want, 0);
      return;
    }
    const granted = this.#grantable(pairs, want);
    if (operation === ACQUIRE) this.#move(pairs, -granted);
    const ahead = operation === PEEK ? granted : 0;
    reply.push(granted, granted < want ? this.#waitUs(pairs, ahead, Number(reply[0])) : 0);
  }

  /** How often all buckets of the decision can pay, at most `want` times. */
  #grantable({ operations, first, last }: Pairs, want: number): number {
    let granted = want;
    for (let b = first; b < last; b += 2) {
      const state = this.#state(elementAt(operations, b) - 1);
      const units = state.limit.unitsPerToken * elementAt(operations, b + 1);
      granted = Math.min(granted, Math.floor(state.level / units));
    }
    return granted;
  }

  /** Adds (refund) or takes (charge) `times` weights, clamped to what a bucket can hold. */
  #move({ operations, first, last }: Pairs, times: number): void {
    for (let b = first; b < last; b += 2) {
      const i = elementAt(operations, b) - 1;
      const state = this.#state(i);
      const units = times * elementAt(operations, b + 1) * state.limit.unitsPerToken;
      // A missing key is a full bucket: the clamp makes a refund to it no change, so none creates it.
      const level = Math.min(state.limit.full, Math.max(0, state.level + units));
      if (level !== state.level) {
        state.level = level;
        this.#changed[elementAt(this.#slots, i)] = true;
      }
    }
  }

  /** µs until every bucket could pay `ahead + 1` times; −1 when one never can. */
  #waitUs({ operations, first, last }: Pairs, ahead: number, nowUs: number): number {
    let wait = 0;
    for (let b = first; b < last; b += 2) {
      const state = this.#state(elementAt(operations, b) - 1);
      const weight = elementAt(operations, b + 1);
      if (weight > state.limit.capacity) return -1;
      const units = state.limit.unitsPerToken * weight;
      // A peek has not taken what it granted. In this order no term leaves the exact range.
      const need = units - (state.level - ahead * units);
      if (need > 0) wait = Math.max(wait, waitForUnits(state, need, nowUs));
    }
    return wait;
  }

  #state(i: number): BucketState {
    return elementAt(this.#work, elementAt(this.#slots, i));
  }
}

/** Where a decision's pairs of position and weight stand. */
interface Pairs {
  readonly operations: readonly number[];
  readonly first: number;
  readonly last: number;
}

/** µs from `nowUs` until `need` more units are there: exact, one µs earlier is too early. */
function waitForUnits(state: BucketState, need: number, nowUs: number): number {
  const { tickUs, unitsPerTick } = state.limit;
  const from = Math.max(state.stamp, Math.floor(nowUs / tickUs)) * tickUs;
  return Math.min(MAX_INTEGER, Math.ceil(need / unitsPerTick) * tickUs + (from - nowUs));
}

/**
 * Refills `state` to `nowUs` under its own limit, then converts it to `mine` unless it is under a newer one.
 * True when the change has to be kept even if the request is denied: a re-anchored clock, or the bucket stays
 * frozen for the whole clock step; a converted limit, or the old rate lives on in an empty bucket.
 */
export function bringToNow(state: BucketState, mine: StoredLimit, nowUs: number): boolean {
  let keep = refill(state, nowUs);
  if (state.limit !== mine && state.limit.generation <= mine.generation) {
    if (!state.limit.hasSameNumbers(mine)) {
      convert(state, mine, nowUs);
      keep = true;
    }
    state.limit = mine;
  }
  if (state.level === state.limit.full) {
    state.stamp = Math.max(state.stamp, Math.ceil(nowUs / state.limit.tickUs));
  }
  return keep;
}

/** True when the clock was re-anchored. */
function refill(state: BucketState, nowUs: number): boolean {
  const { tickUs, unitsPerTick, full } = state.limit;
  const tick = Math.floor(nowUs / tickUs);
  if (tick > state.stamp) {
    const elapsed = tick - state.stamp;
    // Compared before it is multiplied: a year's worth of ticks times the rate would leave the exact range.
    const fills = elapsed >= Math.ceil((full - state.level) / unitsPerTick);
    state.level = fills ? full : state.level + elapsed * unitsPerTick;
    state.stamp = tick;
    return false;
  }
  // A clock that went back gives no credit and never stores the older instant, unless it went back so far
  // that the bucket would stay frozen for the whole step.
  const end = Math.ceil(nowUs / tickUs);
  if ((state.stamp - end) * tickUs <= MAX_CLOCK_AHEAD_US) return false;
  state.stamp = end;
  return true;
}

/**
 * Whole tokens are kept, the fraction is scaled exactly. Only a newer generation adds its growth: with equal
 * generations two sidecars that disagree about the numbers would mint tokens at every flip.
 */
function convert(state: BucketState, mine: StoredLimit, nowUs: number): void {
  const old = state.limit;
  let whole = Math.floor(state.level / old.unitsPerToken);
  const fraction = state.level - whole * old.unitsPerToken;
  if (old.generation < mine.generation) whole += Math.max(0, mine.capacity - old.capacity);
  state.level =
    whole >= mine.capacity
      ? mine.full
      : whole * mine.unitsPerToken + scaleExactly(fraction, mine.unitsPerToken, old.unitsPerToken);
  if (old.tickUs !== mine.tickUs) {
    const stampInMine = Math.ceil((state.stamp * old.tickUs) / mine.tickUs);
    state.stamp = Math.max(Math.ceil(nowUs / mine.tickUs), stampInMine);
  }
}

/** floor(a · b / c) for 0 ≤ a < c, exact also where the product passes 2^53: long division, bit by bit of b. */
export function scaleExactly(a: number, b: number, c: number): number {
  if (a * b <= MAX_INTEGER) return Math.floor((a * b) / c);
  let quotient = 0;
  let remainder = 0;
  let rest = b;
  for (let bit = 2 ** 52; bit >= 1; bit /= 2) {
    quotient += quotient;
    const double = remainder - (c - remainder);
    if (double >= 0) quotient += 1;
    remainder = double >= 0 ? double : remainder + remainder;
    if (rest >= bit) {
      rest -= bit;
      const sum = remainder - (c - a);
      if (sum >= 0) quotient += 1;
      remainder = sum >= 0 ? sum : remainder + a;
    }
  }
  return quotient;
}
