// Every answer the proxy gives in its own name, in one table: what happened → status, what the body says.
// The limiter's answers (429, 503) come with the verdict and pass through `answerText` too.
// Bodies are application/problem+json (RFC 9457).
import { refusalStatus } from '../http1/refusal.ts';
import type { RefusalReason } from '../http1/refusal.ts';
import type { UpstreamErrorKind } from './proxy-counters.ts';
import type { Answer } from './gate.ts';

export type OwnAnswerKind =
  | 'client-stall'
  | 'connect-protocol'
  | 'head-timeout'
  | 'too-many-connections'
  | 'too-many-heads'
  | 'upstream-bad-response'
  | 'upstream-closed'
  | 'upstream-closed-unheard'
  | 'upstream-connect'
  | 'upstream-http2-alone'
  | 'upstream-not-http2'
  | 'upstream-takes-nothing'
  | 'upstream-timeout';

export const ownAnswers: Readonly<Record<OwnAnswerKind, Answer>> = {
  'client-stall': answer(408, 'Request Timeout', 'The request body did not arrive in time.'),
  'connect-protocol': answer(
    501,
    'Not Implemented',
    'The application takes no CONNECT that names a protocol.',
  ),
  'head-timeout': answer(408, 'Request Timeout', 'The request head did not arrive in time.'),
  'too-many-connections': answer(503, 'Service Unavailable', 'Too many connections are open.'),
  'too-many-heads': answer(503, 'Service Unavailable', 'Too many request heads are unfinished.'),
  'upstream-bad-response': answer(502, 'Bad Gateway', 'The application sent no valid response.'),
  'upstream-closed': answer(502, 'Bad Gateway', 'The application closed without a response.'),
  'upstream-closed-unheard': answer(
    502,
    'Bad Gateway',
    'The application closed the connection before it said anything in HTTP/2.',
  ),
  'upstream-connect': answer(503, 'Service Unavailable', 'The application cannot be reached.'),
  'upstream-http2-alone': answer(
    502,
    'Bad Gateway',
    'The application speaks HTTP/2, and was asked in HTTP/1.1.',
  ),
  'upstream-not-http2': answer(502, 'Bad Gateway', 'The application does not speak HTTP/2.'),
  'upstream-takes-nothing': answer(
    503,
    'Service Unavailable',
    'The application takes no requests over HTTP/2 (SETTINGS_MAX_CONCURRENT_STREAMS is 0).',
  ),
  'upstream-timeout': answer(504, 'Gateway Timeout', 'The application did not answer in time.'),
};

const refusalTitles: Readonly<Record<ReturnType<typeof refusalStatus>, string>> = {
  400: 'Bad Request',
  414: 'URI Too Long',
  431: 'Request Header Fields Too Large',
  501: 'Not Implemented',
  505: 'HTTP Version Not Supported',
};

/** The answer to a request that was refused for `reason`. */
export function refusalAnswer(reason: RefusalReason): Answer {
  const status = refusalStatus(reason);
  return answer(status, refusalTitles[status], `The request was refused: ${reason}.`);
}

/** The answer to a request whose upstream failed before a response's head. */
export function upstreamFailureAnswer(kind: UpstreamErrorKind): Answer {
  switch (kind) {
    case 'connect':
      return ownAnswers['upstream-connect'];
    case 'timeout':
      return ownAnswers['upstream-timeout'];
    case 'bad-response':
      return ownAnswers['upstream-bad-response'];
    case 'closed':
    case 'reset':
      return ownAnswers['upstream-closed'];
  }
}

export interface AnswerContext {
  /** `Date: …\r\n` */
  readonly dateLine: string;
  readonly closes: boolean;
  /** A response to HEAD has no body but says its length (RFC 9110 §9.3.2). */
  readonly omitsBody: boolean;
}

/** The whole response as one Latin-1 string, ready for one write. */
export function answerText(given: Answer, context: AnswerContext): string {
  const head =
    `HTTP/1.1 ${String(given.status)} ${given.reason}\r\n${given.fields}${context.dateLine}` +
    `Content-Length: ${String(given.body.length)}\r\n`;
  return `${head}${context.closes ? 'Connection: close\r\n' : ''}\r\n${context.omitsBody ? '' : given.body}`;
}

function answer(status: number, reason: string, detail: string): Answer {
  const body = JSON.stringify({ type: 'about:blank', title: reason, status, detail });
  const fields = 'Content-Type: application/problem+json\r\nCache-Control: no-store\r\n';
  return { status, reason, fields, body, detail };
}
