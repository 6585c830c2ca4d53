// The one error that calls of the API throw, and how it is read from an answer. It holds method and path, never a
// header: the token must not reach a log through an error.
import type { ApiFailure } from './api.ts';

/** `Status.reason` for what never came from a server. */
export type LocalReason = 'Unreachable' | 'Timeout' | 'Unreadable';

/** A server that asks for more waits in vain: a person would think us dead. */
const MOST_RETRY_AFTER_MS = 120_000;

/** A message goes into conditions, Events and logs. */
const MOST_MESSAGE_CHARACTERS = 1024;

export interface ApiRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
}

export class ApiError extends Error implements ApiFailure {
  override readonly name = 'ApiError';
  readonly code: number;
  readonly reason: string;
  readonly retryAfterMs?: number;
  readonly request: ApiRequest;

  constructor(request: ApiRequest, failure: ApiFailure, options: ApiErrorOptions) {
    super(
      `${request.method} ${request.path}: ${options.message.slice(0, MOST_MESSAGE_CHARACTERS)}`,
      options.cause === undefined ? {} : { cause: options.cause },
    );
    this.request = request;
    this.code = failure.code;
    this.reason = failure.reason;
    if (failure.retryAfterMs !== undefined) this.retryAfterMs = failure.retryAfterMs;
  }
}

export interface ApiErrorOptions {
  readonly message: string;
  readonly cause?: unknown;
}

/** No answer came, or none that can be read. */
export function localFailure(
  request: ApiRequest,
  reason: LocalReason,
  options: ApiErrorOptions,
): ApiError {
  return new ApiError(request, { code: 0, reason }, options);
}

/** An answer that is no success. `body` is mostly a Status; a proxy on the way may send anything. */
export function failureOf(
  request: ApiRequest,
  answer: { readonly code: number; readonly retryAfter?: string; readonly body: string },
): ApiError {
  const status = readStatus(parse(answer.body), answer.code);
  const header = retryAfterMs(Number(answer.retryAfter ?? Number.NaN));
  const waitMs = header ?? status.retryAfterMs;
  return new ApiError(
    request,
    {
      code: answer.code,
      reason: status.reason,
      ...(waitMs !== undefined && { retryAfterMs: waitMs }),
    },
    { message: status.message || `status ${answer.code}` },
  );
}

export interface StatusFailure extends ApiFailure {
  readonly message: string;
}

/** Reads a Status object; what is no Status gives `code` with an empty reason. */
export function readStatus(value: unknown, code = 0): StatusFailure {
  const waitMs = retryAfterMs(numberAt(objectAt(value, 'details'), 'retryAfterSeconds'));
  return {
    code: numberAt(value, 'code') || code,
    reason: textAt(value, 'reason'),
    message: textAt(value, 'message'),
    ...(waitMs !== undefined && { retryAfterMs: waitMs }),
  };
}

/** True for what `request` threw with that HTTP status. */
export function isApiError(error: unknown, code?: number): error is ApiError {
  return error instanceof ApiError && (code === undefined || error.code === code);
}

function retryAfterMs(seconds: number): number | undefined {
  if (!(seconds > 0)) return undefined;
  return Math.min(seconds * 1000, MOST_RETRY_AFTER_MS);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function objectAt(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.entries(value).find(([name]) => name === key)?.[1];
}

function textAt(value: unknown, key: string): string {
  const text = objectAt(value, key);
  return typeof text === 'string' ? text : '';
}

function numberAt(value: unknown, key: string): number {
  const number = objectAt(value, key);
  return typeof number === 'number' ? number : 0;
}
