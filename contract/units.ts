// Branded numbers: a count of ticks cannot become a duration, nor a duration an instant, by accident.
import assert from 'node:assert/strict';

declare const unit: unique symbol;
type Measure<Unit extends string> = number & { readonly [unit]: Unit };

/** A duration in whole milliseconds, ≥ 0. */
export type Milliseconds = Measure<'ms'>;
/** A duration in whole microseconds, ≥ 0. */
export type Microseconds = Measure<'us'>;

/** Asserts that `value` is a duration: a safe integer, at least 0. */
export function milliseconds(value: number): Milliseconds {
  assert(Number.isSafeInteger(value) && value >= 0, `not a duration in ms: ${String(value)}`);
  return value as Milliseconds;
}

/** Asserts that `value` is a duration: a safe integer, at least 0. */
export function microseconds(value: number): Microseconds {
  assert(Number.isSafeInteger(value) && value >= 0, `not a duration in µs: ${String(value)}`);
  return value as Microseconds;
}
