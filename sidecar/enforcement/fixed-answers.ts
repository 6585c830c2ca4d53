// The gate's answers that no policy shapes.
import type { Answer } from '../proxy/gate.ts';

/** A policy fails closed while the store is away, or there is no configuration yet. One second is when to ask again. */
export const UNAVAILABLE: Answer = problem(503, 'Service Unavailable', {
  detail: 'The rate limit could not be checked.',
  fields: 'Retry-After: 1\r\n',
});

/** Matching needs a path; a target whose escapes cannot be decoded has none. */
export const BAD_TARGET: Answer = problem(400, 'Bad Request', {
  detail: 'The request target holds an invalid percent-encoding.',
  fields: '',
});

function problem(
  status: number,
  reason: string,
  { detail, fields }: { readonly detail: string; readonly fields: string },
): Answer {
  return {
    status,
    reason,
    fields: `Content-Type: application/problem+json\r\nCache-Control: no-store\r\n${fields}`,
    body: JSON.stringify({ type: 'about:blank', title: reason, status, detail }),
    detail,
  };
}
