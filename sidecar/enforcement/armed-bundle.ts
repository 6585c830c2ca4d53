// A bundle made ready to be enforced: rules to ask, buckets to charge, and what to say, each found by the rule's id.
// It is swapped as a whole; requests in flight end under the one they began with.
import type { Bundle } from '../../contract/bundle.ts';
import { type Bucket, bucketsOfTier, type TierBuckets } from '../limiter/bucket.ts';
import type { RuleEntry } from '../rules/evaluation.ts';
import type { RuleSet } from '../rules/rule-set.ts';
import { BucketVoice } from './bucket-voice.ts';
import { Denial } from './denial.ts';
import type { RuleTallies, RuleTally } from './rule-tally.ts';

export class ArmedBundle {
  readonly bundle: Bundle;
  readonly rules: RuleSet;
  readonly #armed: readonly ArmedRule[];
  readonly #voices = new Map<Bucket, BucketVoice>();
  readonly #warned = new Set<number>();

  constructor(bundle: Bundle, rules: RuleSet, tallies: RuleTallies) {
    this.bundle = bundle;
    this.rules = rules;
    this.#armed = rules.entries.map((entry) => armRule(entry, tallies));
  }

  rule(entry: RuleEntry): ArmedRule {
    const found = this.#armed[entry.id];
    if (found === undefined) throw new RangeError(`no rule ${entry.id} in this bundle`);
    return found;
  }

  /** A bucket under a newer limit than the bundle's speaks for itself; there is one newest generation at a time. */
  voice(bucket: Bucket): BucketVoice {
    const known = this.#voices.get(bucket);
    if (known !== undefined) return known;
    const voice = new BucketVoice(bucket);
    this.#voices.set(bucket, voice);
    return voice;
  }

  /** True the first time for a rule: what is said once per bundle is not repeated per request. */
  isFirstWarning(entry: RuleEntry): boolean {
    const before = this.#warned.size;
    return this.#warned.add(entry.id).size > before;
  }
}

export interface ArmedRule {
  /** By tier index. */
  readonly tiers: readonly TierBuckets[];
  readonly enforced: RuleTally;
  readonly shadow: RuleTally;
  /** For a rule that refuses without asking a bucket. */
  readonly denial: Denial;
  readonly hasResponseCost: boolean;
}

function armRule({ policy, rule }: RuleEntry, tallies: RuleTallies): ArmedRule {
  const name = `${policy.namespace}/${policy.name}`;
  return {
    tiers: rule.tiers.map((tier) => bucketsOfTier(policy, rule, tier)),
    enforced: tallies.of(name, rule.name, 'Enforce'),
    shadow: tallies.of(name, rule.name, 'Shadow'),
    denial: new Denial(policy, `${policy.name}/${rule.name}`),
    hasResponseCost: rule.cost.response !== undefined,
  };
}
