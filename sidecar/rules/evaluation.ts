// What the rules say about one request. The caller owns the object and hands it in again and again.
import type { CompiledPolicy, CompiledRule } from '../../contract/bundle.ts';

/** A rule that can apply. */
export interface RuleEntry {
  /** 0..n−1, in the order of `RuleSet.entries`: the same whatever the order of policies and rules in the bundle. */
  readonly id: number;
  readonly policy: CompiledPolicy;
  readonly rule: CompiledRule;
  /** Whether the rule has a key (otherwise it has one bucket per tier). */
  readonly isKeyed: boolean;
}

/** One rule's demand on its buckets. Reused: valid until the next evaluation. */
export interface Charge {
  rule: RuleEntry;
  /** Which of `rule.rule.tiers`. */
  tierIndex: number;
  /** Names the client within the rule and tier: see key-text.ts. */
  keyText: string;
  /** Tokens, at least 1. */
  weight: number;
  /** Counted, never refused. */
  shadow: boolean;
}

/** A rule that refuses by itself, whatever its buckets hold. */
export interface Refusal {
  readonly rule: RuleEntry;
  readonly reason: 'missing-key' | 'no-tier';
}

/** Why there is neither a charge nor a refusal: a rule matched but an exception took the request out, or none matched. */
export type Exemption = 'exception' | 'no-match';

export class Evaluation {
  /** The first `count` are this request's. */
  readonly charges: Charge[] = [];
  count = 0;
  exempt: Exemption | undefined;
  /** The request is refused without asking buckets; there are no charges then. */
  refused: Refusal | undefined;
  /** Refusals that a shadow rule, or one outside its policy's share, would have made: to be counted only. */
  readonly shadowRefusals: Refusal[] = [];
  /** A rule keys on the socket's address although the request came through a proxy (`ClientIPIsProxy`). */
  forwardedSeen = false;

  reset(): void {
    this.count = 0;
    this.exempt = undefined;
    this.refused = undefined;
    this.shadowRefusals.length = 0;
    this.forwardedSeen = false;
  }

  /** The next charge, to be filled in: its fields are those of an earlier request. */
  next(rule: RuleEntry): Charge {
    const index = this.count;
    this.count += 1;
    const reused = this.charges[index];
    if (reused !== undefined) {
      reused.rule = rule;
      return reused;
    }
    const charge = { rule, tierIndex: 0, keyText: '', weight: 1, shadow: false };
    this.charges.push(charge);
    return charge;
  }
}
