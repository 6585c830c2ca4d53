// What becomes of one check of the app.

export type CheckOutcome =
  | { readonly kind: 'succeeded' }
  /** `why` is for whoever reads the kubelet's Event; `status` is the app's own, where it gave one. */
  | { readonly kind: 'failed'; readonly why: string; readonly status?: number }
  | { readonly kind: 'timed-out' };

export const SUCCEEDED: CheckOutcome = { kind: 'succeeded' };

export function failed(why: string): CheckOutcome {
  return { kind: 'failed', why };
}

/** Of what went wrong on the way to the app. */
export function outcomeOf(error: unknown, signal: AbortSignal): CheckOutcome {
  if (signal.aborted) return { kind: 'timed-out' };
  return failed(error instanceof Error ? error.message : String(error));
}
