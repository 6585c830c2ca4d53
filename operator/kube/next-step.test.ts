import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { planStep, type Outcome, type Step } from './next-step.ts';

const refused = (code: number, more: { reason?: string; retryAfterMs?: number } = {}): Outcome => ({
  kind: 'refused',
  failure: { code, reason: '', ...more },
  problem: 'x',
});
const broken = (code: number, reason = ''): Outcome => ({
  kind: 'broken',
  failure: { code, reason },
  problem: 'x',
});

const rows: readonly (readonly [string, 'list' | 'watch', Outcome, Step])[] = [
  ['a list', 'list', { kind: 'listed' }, { next: 'watch', waitMs: 0 }],
  ['a short watch', 'watch', ended(119_999), step('watch', 'ended')],
  ['a long watch', 'watch', ended(120_000), step('watch', 'ended', 0)],
  ['silence', 'watch', { kind: 'silent' }, step('watch', 'silent')],
  ['garbage', 'watch', { kind: 'garbage', problem: 'x' }, step('list', 'garbage')],
  ['410 on a list', 'list', refused(410), step('list', 'expired')],
  ['410 on a watch', 'watch', refused(410), step('list', 'expired')],
  [
    'an expired watch by reason',
    'watch',
    refused(500, { reason: 'Expired' }),
    step('list', 'expired'),
  ],
  ['429 on a watch', 'watch', refused(429), step('watch', 'throttled')],
  ['429 on a list', 'list', refused(429), step('list', 'throttled')],
  [
    'a Retry-After',
    'watch',
    refused(429, { retryAfterMs: 9000 }),
    step('watch', 'throttled', 9000),
  ],
  ['a shorter Retry-After', 'watch', refused(429, { retryAfterMs: 1 }), step('watch', 'throttled')],
  ['no answer to a watch', 'watch', refused(0), step('watch', 'failed')],
  ['no answer to a list', 'list', refused(0), step('list', 'failed')],
  ['503 on a watch', 'watch', refused(503), step('watch', 'failed')],
  ['403 on a watch', 'watch', refused(403), step('list', 'failed')],
  ['410 in the stream', 'watch', broken(410), step('list', 'expired')],
  ['Expired in the stream', 'watch', broken(0, 'Expired'), step('list', 'expired')],
  ['429 in the stream', 'watch', broken(429), step('list', 'throttled')],
  ['another Status in the stream', 'watch', broken(500), step('list', 'failed')],
];

function ended(livedMs: number, isEarly = true): Outcome {
  return { kind: 'ended', livedMs, isEarly };
}

function step(next: Step['next'], cause: NonNullable<Step['cause']>, waitMs = 1234): Step {
  return { next, waitMs, cause };
}

describe('what a reflector does', () => {
  for (const [what, during, outcome, expected] of rows) {
    it(`after ${what}: ${expected.next} in ${expected.waitMs} ms`, () => {
      assert.deepEqual(
        planStep({ during, outcome, isCustom: false, backOff: () => 1234 }),
        expected,
      );
    });
  }

  it('lists a custom resource anew after a watch that ended early: it may have gained fields', () => {
    const after = (outcome: Outcome): string =>
      planStep({ during: 'watch', outcome, isCustom: true, backOff: () => 1234 }).next;

    assert.equal(after(ended(200_000)), 'list');
    assert.equal(after(ended(400_000, false)), 'watch');
    assert.equal(after(refused(0)), 'watch');
  });
});
