// When an authority is replaced, in three steps, so that nobody ever meets a certificate whose authority it has not
// been told of: the next one is introduced into the bundle that everybody trusts, a day later it signs, and the previous
// one leaves the bundle when the last certificate that it signed has ended.

import type { Validity } from '../../contract/certificate.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** A year: long enough that a cluster that slept for months wakes up with it. */
export const CA_LIFE_MS: number = 365 * DAY_MS;
/** A week: a key that leaked is worth little, and an operator that cannot renew is noticed days before. */
export const LEAF_LIFE_MS: number = 7 * DAY_MS;
/** Bundles travel in seconds; a sidecar whose stream is cut for the night has the next authority in the morning. */
export const OVERLAP_MS: number = DAY_MS;
/** Replicas look at their certificates once a minute, and clocks differ: one signed by the previous may be an hour late. */
const LATE_MS = HOUR_MS;

export interface RotationState {
  /** Signs. */
  readonly current?: Validity;
  /** Is trusted already, and will sign. */
  readonly next?: Validity;
  /** Is trusted still, and signs no more. */
  readonly previous?: Validity;
  /** When `current` began to sign; absent for the first. */
  readonly promotedAtMs?: number;
}

export type RotationStep =
  /** There is nothing that could sign. */
  'create' | 'introduce' | 'promote' | 'drop' | 'none';

/** The one step that is due. */
export function planRotation(state: RotationState, nowMs: number): RotationStep {
  const { current, next, previous, promotedAtMs = 0 } = state;
  if (!isValid(current, nowMs)) return isValid(next, nowMs) ? 'promote' : 'create';
  if (previous !== undefined) {
    return nowMs >= promotedAtMs + LEAF_LIFE_MS + LATE_MS ? 'drop' : 'none';
  }
  if (isValid(next, nowMs)) return nowMs >= next.notBeforeMs + OVERLAP_MS ? 'promote' : 'none';
  return nowMs >= renewalMs(current) ? 'introduce' : 'none';
}

/** Whether it can still sign, or be trusted. */
export function isValid(validity: Validity | undefined, nowMs: number): validity is Validity {
  return validity !== undefined && nowMs < validity.notAfterMs;
}

/** At two thirds of its life. */
export function renewalMs({ notBeforeMs, notAfterMs }: Validity): number {
  return notBeforeMs + Math.floor(((notAfterMs - notBeforeMs) * 2) / 3);
}

/** Half a day sooner at most: replicas that started together do not renew in the same second. */
const JITTER_MS = 12 * HOUR_MS;

/** When a certificate is replaced. `share` is random, from 0 to 1; a short life is jittered by a tenth of it. */
export function jitteredRenewalMs(validity: Validity, share: number): number {
  const life = validity.notAfterMs - validity.notBeforeMs;
  return renewalMs(validity) - Math.floor(share * Math.min(JITTER_MS, life / 10));
}
