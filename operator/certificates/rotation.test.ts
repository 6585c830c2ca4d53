import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  CA_LIFE_MS,
  isValid,
  jitteredRenewalMs,
  LEAF_LIFE_MS,
  OVERLAP_MS,
  planRotation,
  renewalMs,
} from './rotation.ts';
import type { Validity } from '../../contract/certificate.ts';
import type { RotationState } from './rotation.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

function authority(sinceMs: number): Validity {
  return { notBeforeMs: sinceMs, notAfterMs: sinceMs + CA_LIFE_MS };
}

describe('the plan of a rotation', () => {
  it('takes each step at its time, and not a millisecond before', () => {
    const current = authority(0);
    const twoThirds = Math.floor((CA_LIFE_MS * 2) / 3);
    const next = authority(twoThirds);
    const promotedAtMs = 1_000;
    const state = { current: authority(promotedAtMs), previous: current, promotedAtMs };
    const table: readonly (readonly [string, RotationState, number])[] = [
      ['create', {}, 0],
      ['none', { current }, twoThirds - 1],
      ['introduce', { current }, twoThirds],
      ['none', { current, next }, twoThirds + OVERLAP_MS - 1],
      ['promote', { current, next }, twoThirds + OVERLAP_MS],
      ['none', state, promotedAtMs + LEAF_LIFE_MS + HOUR_MS - 1],
      ['drop', state, promotedAtMs + LEAF_LIFE_MS + HOUR_MS],
      ['introduce', { current }, CA_LIFE_MS - 1],
      ['create', { current }, CA_LIFE_MS],
      ['promote', { current, next }, CA_LIFE_MS],
    ];

    for (const [step, given, nowMs] of table) {
      assert.equal(planRotation(given, nowMs), step, JSON.stringify([given, nowMs]));
    }
  });

  it('never lets a certificate be served that somebody a day behind does not trust', () => {
    const trusted: (readonly Validity[])[] = [];
    const signers: Validity[] = [];
    let state: RotationState = { current: authority(0) };
    let promotions = 0;

    for (let hour = 0; hour < 4 * 365 * 24; hour += 1) {
      const nowMs = hour * HOUR_MS;
      const step = planRotation(state, nowMs);
      if (step === 'promote') promotions += 1;
      state = stepped(state, step, nowMs);
      const { current, next, previous } = state;
      assert.ok(current !== undefined && isValid(current, nowMs));
      signers.push(current);
      trusted.push([current, next, previous].filter((one) => one !== undefined));
      if (hour < 24) continue;
      // A client that was last told 23 hours ago meets a replica that last looked now.
      assert.ok(trusted[hour - 23]?.includes(current), `hour ${hour}`);
      // A client that was told now meets a replica that serves what it signed up to a week ago.
      const old = signers[Math.max(0, hour - LEAF_LIFE_MS / HOUR_MS)];
      assert.ok(old !== undefined && trusted[hour]?.includes(old), `hour ${hour}`);
    }

    assert.equal(promotions, 5);
  });

  it('renews a leaf at two thirds of its life, and half a day sooner at most', () => {
    const leaf = { notBeforeMs: 0, notAfterMs: LEAF_LIFE_MS };

    assert.equal(renewalMs(leaf), (LEAF_LIFE_MS * 2) / 3);
    assert.equal(jitteredRenewalMs(leaf, 0), renewalMs(leaf));
    assert.equal(jitteredRenewalMs(leaf, 1), renewalMs(leaf) - DAY_MS / 2);
    assert.equal(jitteredRenewalMs({ notBeforeMs: 0, notAfterMs: 300 }, 1), 170);
  });
});

function stepped(
  { current, next, previous, promotedAtMs = 0 }: RotationState,
  step: ReturnType<typeof planRotation>,
  nowMs: number,
): RotationState {
  assert.ok(current);
  switch (step) {
    case 'none':
      return {
        ...{ current, promotedAtMs },
        ...(next === undefined ? {} : { next }),
        ...(previous === undefined ? {} : { previous }),
      };
    case 'introduce':
      return { current, next: authority(nowMs), promotedAtMs };
    case 'promote':
      assert.ok(next);
      return { current: next, previous: current, promotedAtMs: nowMs };
    case 'drop':
      return { current, promotedAtMs };
    case 'create':
      throw new Error('the authority ran out');
  }
}
