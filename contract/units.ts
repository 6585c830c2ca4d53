// Branded numbers: a bare count cannot become a duration by accident.
import assert from 'node:assert/strict';

declare const unit: unique symbol;
type Measure<Unit extends string> = number & { readonly [unit]: Unit };

/** A duration in whole milliseconds, ≥ 0. */
export type Milliseconds = Measure<'ms'>;
/** Asserts that `value` is a duration: a safe integer, at least 0. */
export function milliseconds(value: number): Milliseconds {
  assert(Number.isSafeInteger(value) && value >= 0, `not a duration in ms: ${String(value)}`);
  return value as Milliseconds;
}
