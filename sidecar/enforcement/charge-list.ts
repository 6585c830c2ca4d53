// Hot path. The charges of one request as parallel arrays that keep their size, in the form in which the limiter
// takes them.
import type { KeyedBuckets } from '../limiter/bucket.ts';
import type { RuleEntry } from '../rules/evaluation.ts';
import type { ArmedRule } from './armed-bundle.ts';

export class ChargeList {
  /** The first `count` entries of each array are the request's. */
  count = 0;
  readonly parts: KeyedBuckets[] = [];
  readonly weights: number[] = [];
  readonly rules: ArmedRule[] = [];
  readonly entries: RuleEntry[] = [];

  add(part: KeyedBuckets, weight: number, rule: ArmedRule, entry: RuleEntry): void {
    const i = this.count;
    this.count = i + 1;
    this.parts[i] = part;
    this.weights[i] = weight;
    this.rules[i] = rule;
    this.entries[i] = entry;
  }

  /** The parts that are this request's, as an array of their own. */
  present(): KeyedBuckets[] {
    return this.parts.slice(0, this.count);
  }
}
