// When a key set is fetched again, and what of the outcome is kept.
import { readKeySet } from '../../crds/key-set.ts';
import type { KeySetState } from './key-set-state.ts';

/** UTF-8 bytes: 32 keys of 4 096 bits with their certificates are a fifth of it. */
export const KEY_SET_BYTES_MAX = 262_144;
/** Where an issuer says nothing; it rotates its keys over days. */
export const REFRESH_MS = 900_000;
/** An issuer that says "now" would be asked with every policy event. */
export const REFRESH_MIN_MS = 300_000;
/** A key that was taken back must end to be believed within a day. */
export const REFRESH_MAX_MS = 86_400_000;
/** An issuer that restarts is back within seconds. */
export const RETRY_MIN_MS = 5_000;
export const RETRY_MAX_MS = 300_000;
/** Share by which replicas spread, so that they do not ask at once. */
const JITTER = 0.1;

export type FetchOutcome =
  | {
      readonly kind: 'fetched';
      readonly text: string;
      /** `Cache-Control` of the answer; absent = none. */
      readonly cacheControl?: string;
    }
  /** `message` goes on after the address: "answered 503". It never holds what was answered. */
  | { readonly kind: 'refused' | 'unavailable'; readonly message: string };

export interface KeySetStep {
  readonly state: KeySetState;
  readonly failures: number;
  readonly nextInMs: number;
}

export interface KeySetProgress {
  readonly state: KeySetState;
  /** In a row. */
  readonly failures: number;
}

/** @param random in [0, 1) */
export function planKeySet(
  { state, failures }: KeySetProgress,
  outcome: FetchOutcome,
  { nowMs, random }: { readonly nowMs: number; readonly random: () => number },
): KeySetStep {
  const failed = (kind: 'refused' | 'unavailable' | 'invalid', message: string): KeySetStep => ({
    state: { good: state.good, failure: { kind, message } },
    failures: failures + 1,
    nextInMs: retryIn(failures, random()),
  });
  if (outcome.kind !== 'fetched') return failed(outcome.kind, outcome.message);
  const read = readKeySet(outcome.text);
  if (read.kind === 'invalid') return failed('invalid', read.message);
  const fetchedAt = `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
  return {
    state: { good: { keys: read.keys, fetchedAt }, failure: undefined },
    failures: 0,
    nextInMs: spread(refreshIn(outcome.cacheControl), random()),
  };
}

function retryIn(failures: number, random: number): number {
  return spread(Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(failures, 16)), random);
}

/** Down to a tenth earlier: never later than was said. */
function spread(ms: number, random: number): number {
  return Math.round(ms * (1 - JITTER * random));
}

/** How long an answer is good for, in ms, from `Cache-Control` (RFC 9111 §5.2.2). */
export function refreshIn(cacheControl = ''): number {
  const directives = cacheControl.toLowerCase().split(',');
  const names = directives.map((one) => one.trim());
  if (names.some((name) => name === 'no-store' || name.startsWith('no-cache')))
    return REFRESH_MIN_MS;
  const age = names.map((name) => /^max-age="?([0-9]{1,12})"?$/.exec(name)?.[1]);
  const seconds = age.find((found) => found !== undefined);
  if (seconds === undefined) return REFRESH_MS;
  return Math.min(REFRESH_MAX_MS, Math.max(REFRESH_MIN_MS, Number(seconds) * 1_000));
}
