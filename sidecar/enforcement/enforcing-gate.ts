// Hot path. The gate that enforces a bundle: the proxy asks it, rules and limiter answer through it.
import { Histogram } from '../counters/histogram.ts';
import type { Gate, Waiter } from '../proxy/gate.ts';
import { isMissingKeyText } from '../rules/key-text.ts';
import { Evaluation } from '../rules/evaluation.ts';
import type { RequestView } from '../rules/request-view.ts';
import type { Limiter } from '../store/limiter.ts';
import { Admission } from './admission.ts';
import type { ArmedBundle } from './armed-bundle.ts';
import { UNAVAILABLE } from './fixed-answers.ts';
import type { AllowedVerdict, GateCounters, Office } from './office.ts';

/** From the deny cache's microseconds to a store that takes its whole deadline and more. */
const DECISION_BOUNDS_SECONDS = [
  0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
  0.25,
];

/** Admissions kept for reuse; a burst beyond them costs allocation, not memory. */
const MOST_KEPT = 1_024;

export interface EnforcingGateOptions {
  readonly limiter: Limiter;
  /** Monotonic µs. */
  readonly nowUs: () => number;
  /** Whether this peer may ask for the debug field; undefined = nobody may, and nobody is looked at. */
  readonly mayDebug: ((peerAddress: string) => boolean) | undefined;
  /** Told once per rule and bundle: it keys on the address of what is probably a proxy. */
  readonly onForwarded: (policy: string, rule: string) => void;
  /** Numbers of another gate of the same sidecar to add to; absent = its own. */
  readonly numbers?: GateNumbers | undefined;
}

export interface GateNumbers {
  readonly counters: GateCounters;
  readonly decisionSeconds: Histogram;
}

export class EnforcingGate implements Gate, Office {
  readonly limiter: Limiter;
  readonly counters: GateCounters;
  readonly decisionSeconds: Histogram;
  readonly evaluation: Evaluation = new Evaluation();
  readonly allowed: AllowedVerdict = {
    kind: 'allowed',
    fields: '',
    quota: undefined,
    afterResponse: undefined,
  };
  readonly nowUs: () => number;
  readonly #options: EnforcingGateOptions;
  readonly #kept: Admission[] = [];
  #bundle: ArmedBundle | undefined = undefined;

  constructor(options: EnforcingGateOptions) {
    this.#options = options;
    this.limiter = options.limiter;
    this.nowUs = options.nowUs;
    const numbers = options.numbers ?? newNumbers();
    this.counters = numbers.counters;
    this.decisionSeconds = numbers.decisionSeconds;
  }

  /** Undefined until the first bundle: every request is answered 503. */
  get bundle(): ArmedBundle | undefined {
    return this.#bundle;
  }

  /** From the next request on. */
  swap(bundle: ArmedBundle): void {
    this.#bundle = bundle;
    this.limiter.endLeases();
  }

  admit(view: RequestView, waiter: Waiter): void {
    const bundle = this.#bundle;
    if (bundle === undefined) {
      this.counters.unavailable += 1;
      waiter.onVerdict({ kind: 'unavailable', answer: UNAVAILABLE });
      return;
    }
    const admission = this.#kept.pop() ?? new Admission(this);
    admission.begin(bundle, view, waiter);
  }

  cancel(waiter: Waiter): void {
    waiter.pending?.cancel();
  }

  release(admission: Admission): void {
    if (this.#kept.length < MOST_KEPT) this.#kept.push(admission);
  }

  wantsDebugging(view: RequestView): boolean {
    const { mayDebug } = this.#options;
    if (mayDebug === undefined) return false;
    return view.header('weir-debug') === '1' && mayDebug(view.peerAddress);
  }

  reportForwarded(bundle: ArmedBundle, evaluation: Evaluation): void {
    for (const { rule, keyText } of evaluation.charges.slice(0, evaluation.count)) {
      const { trustedHops, trustedProxies } = rule.policy.clientIP;
      const believesPeer = trustedHops === 0 && trustedProxies.length === 0;
      const keysOnAddress =
        isMissingKeyText(keyText) || rule.rule.key.some(({ kind }) => kind === 'clientIP');
      if (believesPeer && keysOnAddress && bundle.isFirstWarning(rule)) {
        this.#options.onForwarded(`${rule.policy.namespace}/${rule.policy.name}`, rule.rule.name);
      }
    }
  }
}

function newNumbers(): GateNumbers {
  return {
    counters: { allowed: 0, denied: 0, unavailable: 0, exempt: 0, error: 0 },
    decisionSeconds: new Histogram(DECISION_BOUNDS_SECONDS),
  };
}
