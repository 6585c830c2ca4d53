// What all admissions of one gate share.
import type { Histogram } from '../counters/histogram.ts';
import type { AfterResponse, Quota } from '../proxy/gate.ts';
import type { Evaluation } from '../rules/evaluation.ts';
import type { RequestView } from '../rules/request-view.ts';
import type { Limiter } from '../store/limiter.ts';
import type { Admission } from './admission.ts';
import type { ArmedBundle } from './armed-bundle.ts';

/**
 * Once per request. `error`: a target that cannot be interpreted, or a client that went before anything was asked for
 * it; what the parser refuses is counted by the proxy.
 */
export interface GateCounters {
  allowed: number;
  denied: number;
  unavailable: number;
  exempt: number;
  error: number;
}

/** The reused verdict of every admission. */
export interface AllowedVerdict {
  readonly kind: 'allowed';
  fields: string;
  quota: Quota | undefined;
  afterResponse: AfterResponse | undefined;
}

export interface Office {
  readonly limiter: Limiter;
  readonly counters: GateCounters;
  readonly decisionSeconds: Histogram;
  readonly evaluation: Evaluation;
  readonly allowed: AllowedVerdict;
  /** Monotonic µs. */
  readonly nowUs: () => number;
  wantsDebugging(view: RequestView): boolean;
  /** A rule keys on the socket's address although a forwarding header is present. */
  reportForwarded(bundle: ArmedBundle, evaluation: Evaluation): void;
  /** Takes an admission back. */
  release(admission: Admission): void;
}
