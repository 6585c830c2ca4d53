// Hot path. One request on its way through rules and limiter. Admissions are pooled: what a request needs until its
// verdict lives in arrays that keep their size, and nothing is allocated for a request without shadow rules,
// response cost or debug header.
import type { Bucket } from '../limiter/bucket.ts';
import type { Answer, Quota, Verdict, Waiter } from '../proxy/gate.ts';
import type { Charge, Evaluation } from '../rules/evaluation.ts';
import type { RequestView } from '../rules/request-view.ts';
import type { Denied, LimitWaiter, Outcome, PendingRequest } from '../store/outcome.ts';
import type { ArmedBundle, ArmedRule } from './armed-bundle.ts';
import { ChargeList } from './charge-list.ts';
import { describeForDebugging } from './debug-field.ts';
import { BAD_TARGET, UNAVAILABLE } from './fixed-answers.ts';
import type { Office } from './office.ts';
import { hasResponseCost, ResponseCharges } from './response-charges.ts';

export class Admission implements LimitWaiter {
  pending: PendingRequest | undefined = undefined;
  readonly #office: Office;
  #waiter: Waiter | undefined = undefined;
  #bundle: ArmedBundle | undefined = undefined;
  #view: RequestView | undefined = undefined;
  #startedUs = 0;
  #isDebugged = false;
  #isVerifying = false;
  readonly #enforced = new ChargeList();
  /** Shadow charges follow the verdict, and only an admission. */
  readonly #shadows = new ChargeList();

  constructor(office: Office) {
    this.#office = office;
  }

  begin(bundle: ArmedBundle, view: RequestView, waiter: Waiter): void {
    this.#bundle = bundle;
    this.#waiter = waiter;
    this.#startedUs = this.#office.nowUs();
    this.#isDebugged = this.#office.wantsDebugging(view);
    const { evaluation } = this.#office;
    const readiness = bundle.rules.evaluate(view, evaluation, 'verify');
    if (readiness === 'ready') this.#decide(evaluation);
    else if (readiness === 'bad-request') this.#refuseTarget();
    else this.#verify(bundle, view, waiter);
  }

  // The client has gone. What the store was asked is counted as it answers, because it may charge; what it was not
  // asked costs nothing.
  cancel(): void {
    const waiter = this.#waiter;
    if (waiter === undefined) return;
    waiter.pending = undefined;
    this.#waiter = undefined;
    if (this.pending?.isAsked(this) === true) return;
    this.pending?.cancel(this);
    this.#office.counters.error += 1;
    // A verification under way comes back to find nobody waiting; only then may the object be used again.
    if (!this.#isVerifying) this.#release();
  }

  /** A token that was never seen is verified first: the one asynchronous step before the store. */
  #verify(bundle: ArmedBundle, view: RequestView, waiter: Waiter): void {
    this.#view = view;
    this.#isVerifying = true;
    waiter.pending = this;
    bundle.rules.verifyClaims(view).then(this.#onVerified, this.#onVerified);
  }

  readonly #onVerified = (): void => {
    const [bundle, view] = [this.#bundle, this.#view];
    this.#isVerifying = false;
    if (this.#waiter === undefined || bundle === undefined || view === undefined) {
      this.#release();
      return;
    }
    const { evaluation } = this.#office;
    if (bundle.rules.evaluate(view, evaluation, 'known') === 'bad-request') this.#refuseTarget();
    else this.#decide(evaluation);
  };

  #decide(evaluation: Evaluation): void {
    const bundle = this.#bundle;
    if (bundle === undefined) return;
    for (const refusal of evaluation.shadowRefusals) bundle.rule(refusal.rule).shadow.denied += 1;
    if (evaluation.forwardedSeen) this.#office.reportForwarded(bundle, evaluation);
    if (evaluation.refused !== undefined) {
      const rule = bundle.rule(evaluation.refused.rule);
      rule.enforced.denied += 1;
      this.#office.counters.denied += 1;
      this.#finish({ kind: 'denied', answer: rule.denial });
      return;
    }
    for (let i = 0; i < evaluation.count; i += 1) {
      const charge = evaluation.charges[i];
      if (charge !== undefined) this.#collect(bundle.rule(charge.rule), charge);
    }
    if (this.#enforced.count === 0) this.#admitFreely();
    else this.#acquire();
  }

  #collect(rule: ArmedRule, charge: Charge): void {
    const tier = rule.tiers[charge.tierIndex];
    if (tier === undefined) throw new RangeError('a charge names a tier that its rule has not');
    const part = this.#office.limiter.keyed(tier, charge.keyText);
    const list = charge.shadow ? this.#shadows : this.#enforced;
    list.add(part, charge.weight, rule, charge.rule);
  }

  #acquire(): void {
    const { parts, weights, count } = this.#enforced;
    const waiter = this.#waiter;
    if (waiter !== undefined) waiter.pending = this;
    this.#office.limiter.acquire(parts, weights, count, this);
  }

  /** No enforced rule applies: nothing is waited for. */
  #admitFreely(): void {
    const { counters } = this.#office;
    if (this.#shadows.count > 0) counters.allowed += 1;
    else counters.exempt += 1;
    this.#pass('', undefined);
  }

  onOutcome(outcome: Outcome): void {
    switch (outcome.kind) {
      case 'allowed':
        this.#admit(outcome.tightest, outcome.level);
        break;
      case 'denied':
        this.#deny(outcome);
        break;
      case 'unavailable':
        this.#office.counters.unavailable += 1;
        for (const rule of this.#enforced.rules.slice(0, this.#enforced.count)) {
          rule.enforced.unknown += 1;
        }
        this.#finish({ kind: 'unavailable', answer: UNAVAILABLE });
        break;
    }
  }

  #admit(tightest: Bucket | undefined, level: number): void {
    const { rules, count } = this.#enforced;
    for (let i = 0; i < count; i += 1) {
      const rule = rules[i];
      if (rule !== undefined) rule.enforced.allowed += 1;
    }
    this.#office.counters.allowed += 1;
    const voice = tightest === undefined ? undefined : this.#bundle?.voice(tightest);
    if (voice === undefined) this.#pass('', undefined);
    else this.#pass(voice.lines(level), voice.quota(level));
  }

  /** Forwards the request: shadow rules see exactly what was admitted. */
  #pass(fields: string, quota: Quota | undefined): void {
    const { allowed, limiter } = this.#office;
    allowed.fields = this.#isDebugged ? fields + this.#debugField() : fields;
    allowed.quota = quota;
    allowed.afterResponse = undefined;
    if (hasResponseCost(this.#enforced) || hasResponseCost(this.#shadows)) {
      const owed = new ResponseCharges(limiter);
      owed.addFrom(this.#enforced);
      owed.addFrom(this.#shadows);
      allowed.afterResponse = owed;
    }
    if (this.#shadows.count > 0) this.#runShadows();
    this.#finish(allowed);
  }

  #deny({ refusedBy, waitUs, level }: Denied): void {
    const { parts, rules, count } = this.#enforced;
    this.#office.counters.denied += 1;
    for (let i = 0; i < count; i += 1) {
      const rule = rules[i];
      // Only the rule that refused decided anything: nothing was charged to the others.
      if (rule !== undefined && parts[i]?.tier.rule === refusedBy.rule) rule.enforced.denied += 1;
    }
    const answer = this.#bundle?.voice(refusedBy).refuse(waitUs, level);
    if (answer === undefined) return;
    this.#finish({ kind: 'denied', answer: this.#isDebugged ? this.#debugged(answer) : answer });
  }

  #runShadows(): void {
    const { parts, weights, rules, count } = this.#shadows;
    for (let i = 0; i < count; i += 1) {
      const [part, rule] = [parts[i], rules[i]];
      if (part === undefined || rule === undefined) continue;
      this.#office.limiter.shadow(part, weights[i] ?? 1, rule.shadow);
    }
  }

  #debugged({ status, reason, fields, body, detail }: Answer): Answer {
    return { status, reason, fields: fields + this.#debugField(), body, detail };
  }

  #debugField(): string {
    return describeForDebugging(this.#enforced.present(), this.#shadows.present());
  }

  #refuseTarget(): void {
    this.#office.counters.error += 1;
    this.#finish({ kind: 'bad-request', answer: BAD_TARGET });
  }

  /** The verdict goes out last: the waiter may begin its next request during the call. */
  #finish(verdict: Verdict): void {
    const waiter = this.#waiter;
    this.#office.decisionSeconds.observe((this.#office.nowUs() - this.#startedUs) / 1e6);
    this.#release();
    if (waiter === undefined) return;
    waiter.pending = undefined;
    waiter.onVerdict(verdict);
  }

  #release(): void {
    this.#waiter = undefined;
    this.#bundle = undefined;
    this.#view = undefined;
    this.#enforced.count = 0;
    this.#shadows.count = 0;
    this.#office.release(this);
  }
}
