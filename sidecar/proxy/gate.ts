// The one seam between the proxy and the limiter: a request's head goes in, a verdict comes out, exactly once,
// during the call to `admit` when nothing has to be asked (deny cache, exempt, embedded store), later otherwise.
// No promise and no closure per request: this is the hot path.
import type { RequestView } from '../rules/request-view.ts';

/** Implemented by the proxy's exchange (one object per connection, reused). */
export interface Waiter {
  /** Called exactly once per `admit`, unless `cancel` came first. The verdict is valid only during the call. */
  onVerdict(verdict: Verdict): void;
  /** The gate's mark while the request waits. Starts as undefined; its owner never writes it. */
  pending: PendingAdmission | undefined;
}

/** Whatever holds a request that waits for its verdict. */
export interface PendingAdmission {
  cancel(): void;
}

/**
 * - `allowed`: forward the request; `fields` go onto the response.
 * - `denied`: over a limit; answer with `answer`.
 * - `unavailable`: the store is away and a policy fails closed, or there is no configuration yet: 503.
 * - `bad-request`: the target cannot be interpreted (invalid percent escape): 400.
 */
export type Verdict =
  | {
      readonly kind: 'allowed';
      /** Field lines for the response, each ended by CRLF; empty when there is nothing to say. */
      readonly fields: string;
      /** Bucket numbers behind `fields`, so that a stricter upstream field can be kept; undefined when `fields` is empty. */
      readonly quota: Quota | undefined;
      /** Present when the response's head has to be shown to the gate (response cost). */
      readonly afterResponse: AfterResponse | undefined;
    }
  | { readonly kind: 'denied'; readonly answer: Answer }
  | { readonly kind: 'unavailable'; readonly answer: Answer }
  | { readonly kind: 'bad-request'; readonly answer: Answer };

export interface Quota {
  readonly form: 'RateLimit' | 'XRateLimit';
  /** Whole tokens left. */
  readonly remaining: number;
}

/** Charges what the response says it cost. `header` reads a response field by lower-case name. */
export interface AfterResponse {
  onResponseHead(header: (name: string) => string | undefined): void;
}

/** An answer of our own. `fields` are complete lines ended by CRLF, without Date, Content-Length and Connection. */
export interface Answer {
  readonly status: number;
  readonly reason: string;
  readonly fields: string;
  /** Latin-1 or UTF-8 already turned into one char per byte; its length is the Content-Length. */
  readonly body: string;
  /** One sentence on what happened, for where there is no body (gRPC). */
  readonly detail: string;
}

export interface Gate {
  /** Decides the request. `view` may be read until the verdict is given or the request is cancelled. */
  admit(view: RequestView, waiter: Waiter): void;
  /** The client has gone: no verdict is wanted any more. What was charged stays charged. */
  cancel(waiter: Waiter): void;
}
