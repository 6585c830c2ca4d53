// A gate for tests of the proxy alone: the request's own fields say what becomes of it.
import type { Answer, Gate, Verdict, Waiter } from '../../sidecar/proxy/gate.ts';
import type { RequestView } from '../../sidecar/rules/request-view.ts';

type Allowed = Extract<Verdict, { kind: 'allowed' }>;

export const allowedPlain: Allowed = {
  kind: 'allowed',
  fields: '',
  quota: undefined,
  afterResponse: undefined,
};

export const deniedAnswer: Answer = {
  status: 429,
  reason: 'Too Many Requests',
  fields: 'Content-Type: text/plain\r\nRetry-After: 7\r\nCache-Control: no-store\r\n',
  body: 'slow down\n',
  detail: 'Too many: slow down.',
};

export const unavailableAnswer: Answer = {
  status: 503,
  reason: 'Service Unavailable',
  fields: 'Content-Type: text/plain\r\n',
  body: 'no store\n',
  detail: 'No store.',
};

/** Allows everything at once. */
export const openGate: Gate = {
  admit(_view, waiter) {
    waiter.onVerdict(allowedPlain);
  },
  cancel() {
    // nothing is ever pending
  },
};

/**
 * `X-Verdict: deny | unavailable | throw | wait` decides; anything else is allowed. A waiting request gets its
 * verdict when the test calls `release`.
 */
export class FieldGate implements Gate {
  /** What allowed requests are given. */
  verdict: Allowed = allowedPlain;
  /** Targets in the order they were asked about. */
  readonly seen: string[] = [];
  readonly cancelled: Waiter[] = [];
  readonly #waiting: Waiter[] = [];

  admit(view: RequestView, waiter: Waiter): void {
    this.seen.push(view.target);
    switch (view.header('x-verdict')) {
      case 'deny':
        waiter.onVerdict({ kind: 'denied', answer: deniedAnswer });
        return;
      case 'unavailable':
        waiter.onVerdict({ kind: 'unavailable', answer: unavailableAnswer });
        return;
      case 'throw':
        throw new Error('a fault in the gate');
      case 'wait':
        this.#waiting.push(waiter);
        return;
      case undefined:
      default:
        waiter.onVerdict(this.verdict);
    }
  }

  cancel(waiter: Waiter): void {
    this.cancelled.push(waiter);
  }

  get waitingCount(): number {
    return this.#waiting.length;
  }

  release(verdict: Verdict = this.verdict): void {
    for (const waiter of this.#waiting.splice(0)) waiter.onVerdict(verdict);
  }
}
