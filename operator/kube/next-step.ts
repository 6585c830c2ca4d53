// Decides what a reflector does after a list or a watch has ended: pure, so that every way they end is a row of a test.
import type { ApiFailure } from './api.ts';
import { HEALTHY_AFTER_MS } from './back-off.ts';

/** How a list or a watch ended. */
export type Outcome =
  | { readonly kind: 'listed' }
  /** The server closed the watch, after the time it was asked to or before. */
  | { readonly kind: 'ended'; readonly livedMs: number; readonly isEarly: boolean }
  /** No byte for longer than a server that lives would be silent. */
  | { readonly kind: 'silent' }
  | { readonly kind: 'garbage'; readonly problem: string }
  /** A refusal in the HTTP status, or no answer (code 0). */
  | { readonly kind: 'refused'; readonly failure: ApiFailure; readonly problem: string }
  /** A Status inside of the stream. */
  | { readonly kind: 'broken'; readonly failure: ApiFailure; readonly problem: string };

/** Values of the metric's label `cause`. */
export type Cause = 'ended' | 'silent' | 'garbage' | 'expired' | 'throttled' | 'failed';

export interface Step {
  readonly next: 'list' | 'watch';
  readonly waitMs: number;
  /** Absent after a success. */
  readonly cause?: Cause;
}

export interface Situation {
  /** What was being done. */
  readonly during: 'list' | 'watch';
  readonly outcome: Outcome;
  /** See `Resource`. */
  readonly isCustom: boolean;
  /** The next wait of the back-off; asked only when there is to be one, because asking counts as a failure. */
  readonly backOff: () => number;
}

export function planStep({ during, outcome, isCustom, backOff }: Situation): Step {
  switch (outcome.kind) {
    case 'listed':
      return { next: 'watch', waitMs: 0 };
    case 'ended':
      return afterEnd(outcome, isCustom, backOff);
    case 'silent':
      return { next: 'watch', waitMs: backOff(), cause: 'silent' };
    case 'garbage':
      return { next: 'list', waitMs: backOff(), cause: 'garbage' };
    case 'refused':
      return {
        next: during === 'watch' && canResume(outcome.failure) ? 'watch' : 'list',
        ...afterFailure(outcome.failure, backOff),
      };
    case 'broken':
      // After a Status in the stream nothing says that all events before it were sent.
      return { next: 'list', ...afterFailure(outcome.failure, backOff) };
  }
}

function afterEnd(
  { livedMs, isEarly }: { readonly livedMs: number; readonly isEarly: boolean },
  isCustom: boolean,
  backOff: () => number,
): Step {
  return {
    // An early end may mean that objects have another shape now, in the version they had.
    next: isEarly && isCustom ? 'list' : 'watch',
    // A watch that lived cannot be a tight loop, and to wait would make events late at each rotation.
    waitMs: livedMs >= HEALTHY_AFTER_MS ? 0 : backOff(),
    cause: 'ended',
  };
}

/** The version that a watch starts from is still good when the server was only busy or away. */
function canResume({ code, reason }: ApiFailure): boolean {
  if (isExpired({ code, reason })) return false;
  return code === 0 || code === 429 || code >= 500;
}

function isExpired({ code, reason }: ApiFailure): boolean {
  return code === 410 || reason === 'Expired' || reason === 'Gone';
}

function afterFailure(
  failure: ApiFailure,
  backOff: () => number,
): { readonly waitMs: number; readonly cause: Cause } {
  return {
    waitMs: Math.max(backOff(), failure.retryAfterMs ?? 0),
    cause: causeOf(failure),
  };
}

function causeOf(failure: ApiFailure): Cause {
  if (isExpired(failure)) return 'expired';
  return failure.code === 429 ? 'throttled' : 'failed';
}
