// What each rule decided, as plain numbers. They belong to the names of policy and rule, so that an edited policy
// goes on counting where it was.

export type RuleVerdict = 'allowed' | 'denied' | 'unknown';

export class RuleTally {
  readonly policy: string;
  readonly rule: string;
  readonly mode: 'Enforce' | 'Shadow';
  allowed = 0;
  denied = 0;
  /** The store gave no answer and nothing else decided. */
  unknown = 0;

  constructor(policy: string, rule: string, mode: 'Enforce' | 'Shadow') {
    this.policy = policy;
    this.rule = rule;
    this.mode = mode;
  }

  /** As the limiter reports a shadow decision. */
  onShadow(verdict: RuleVerdict): void {
    this[verdict] += 1;
  }
}

/** Every tally there has been; rules of policies long gone stay, as counters must not go back. */
export class RuleTallies {
  readonly #byName = new Map<string, RuleTally>();

  /** `policy` is `<namespace>/<name>`. */
  of(policy: string, rule: string, mode: 'Enforce' | 'Shadow'): RuleTally {
    const name = `${policy}/${rule}/${mode}`;
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const tally = new RuleTally(policy, rule, mode);
    this.#byName.set(name, tally);
    return tally;
  }

  all(): IterableIterator<RuleTally> {
    return this.#byName.values();
  }
}
