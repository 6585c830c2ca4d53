import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DURATION_MAX_DAYS, DURATION_MAX_MS, durationSchema, parseDuration } from './duration.ts';

describe('a duration', () => {
  it('is one integer and one unit', () => {
    assert.equal(parseDuration('1ms'), 1);
    assert.equal(parseDuration('90m'), 5_400_000);
    assert.equal(parseDuration('2s'), 2_000);
    assert.equal(parseDuration('24h'), 86_400_000);
    assert.equal(parseDuration('366d'), DURATION_MAX_MS);
    assert.equal(parseDuration('99999ms'), 99_999);
  });

  it('is nothing else', () => {
    for (const text of [
      '',
      '1',
      'ms',
      '0s',
      '01s',
      '1.5h',
      '1h30m',
      ' 1s',
      '1s ',
      '1S',
      '100000s',
      '-1s',
      '1us',
      '1s\n',
    ]) {
      assert.equal(parseDuration(text), undefined, text);
    }
  });

  it('reaches 366 days in every unit, and not a unit further', () => {
    const hours = DURATION_MAX_DAYS * 24;

    for (const text of [
      `${String(DURATION_MAX_DAYS)}d`,
      `${String(hours)}h`,
      '99999m',
      '99999s',
      '99999ms',
    ]) {
      assert(durationSchema.safeParse(text).success, text);
    }
    for (const text of [`${String(DURATION_MAX_DAYS + 1)}d`, `${String(hours + 1)}h`]) {
      assert(!durationSchema.safeParse(text).success, text);
    }
  });
});
