// Durations are one integer and one unit. Compound ones (`1h30m`) cannot be bounded within the API server's CEL
// budget, and floats would round; `90m` says the same.
import assert from 'node:assert/strict';
import type * as z from 'zod';
import { milliseconds } from '../contract/units.ts';
import type { Milliseconds } from '../contract/units.ts';
import { ruled, text } from './field.ts';

/** One leap year: a quota longer than that is a contract, not a rate. */
export const DURATION_MAX_DAYS = 366;
export const DURATION_MAX_MS: Milliseconds = milliseconds(DURATION_MAX_DAYS * 86_400_000);

const PATTERN = /^[1-9][0-9]{0,4}(ms|s|m|h|d)$/;
const CEL_PATTERN = PATTERN.source;
const UNIT_MS = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

/** `90m` → 5 400 000; undefined when the text is no duration. The upper bound is not looked at. */
export function parseDuration(value: string): Milliseconds | undefined {
  const unit = PATTERN.exec(value)?.[1];
  const factor = unit === undefined ? undefined : UNIT_MS.get(unit);
  return factor === undefined ? undefined : milliseconds(Number.parseInt(value, 10) * factor);
}

/** The milliseconds of a text that `durationSchema` has accepted. */
export function durationOf(value: string): Milliseconds {
  const duration = parseDuration(value);
  assert(duration !== undefined, `not a duration: ${value}`);
  return duration;
}

export const durationSchema: z.ZodType<string> = ruled(
  text('How often: one integer and one of ms, s, m, h, d, from 1ms to 366d.', {
    min: 2,
    max: 7,
    pattern: PATTERN,
    advice:
      'one integer and one unit of ms, s, m, h, d, such as 500ms, 90m or 1d; five digits at most',
  }),
  [
    {
      rule: `!self.matches('${CEL_PATTERN}') || (self.endsWith('d') ? int(self.replace('d', '')) <= ${String(DURATION_MAX_DAYS)} : duration(self) <= duration('${String(DURATION_MAX_DAYS * 24)}h'))`,
      message: `must be at most ${String(DURATION_MAX_DAYS)}d`,
      advice: `use a duration of at most ${String(DURATION_MAX_DAYS)}d`,
      holds: (value) => durationOf(value) <= DURATION_MAX_MS,
    },
  ],
);

/** The duration in ms as CEL, for a rule of an object that holds one at `field`; guard it with `celIsDuration`. */
export function celMilliseconds(field: string): string {
  return `(${field}.endsWith('d') ? int(${field}.replace('d','')) * 86400000 : duration(${field}).getMilliseconds())`;
}

/** CEL that says whether `field` has the form of a duration; the pattern's own message covers the rest. */
export function celIsDuration(field: string): string {
  return `${field}.matches('${CEL_PATTERN}')`;
}
