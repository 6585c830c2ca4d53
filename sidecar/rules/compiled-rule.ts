// Hot path.
// One rule, compiled: whether it applies to a request, and what the request then owes.
import type { Evaluation, Refusal, RuleEntry } from './evaluation.ts';
import { requestCost } from './cost.ts';
import { isEnforced } from './enforced-share.ts';
import type { ClientFact } from './client-address.ts';
import type { HeaderFact } from './field-names.ts';
import { compileKey } from './key.ts';
import type { RuleKey } from './key.ts';
import { always, compileAny, never } from './match.ts';
import type { Test } from './match.ts';
import type { RequestFacts } from './request-facts.ts';
import type { RuleTerms } from './rule-terms.ts';

/** The exceptions of one policy: tested once per request, however many rules ask. */
export class PolicyExcept {
  readonly #test: Test;
  #epoch = 0;
  #isExcepted = false;

  constructor(test: Test) {
    this.#test = test;
  }

  holds(facts: RequestFacts): boolean {
    if (this.#epoch !== facts.epoch) {
      this.#epoch = facts.epoch;
      this.#isExcepted = this.#test(facts);
    }
    return this.#isExcepted;
  }
}

/** What came of one rule. `refused` only when the refusal counts; a shadow rule's is `counted`. */
export type RuleOutcome = 'charged' | 'no-match' | 'excepted' | 'skipped' | 'refused' | 'counted';

const NO_TIER = -1;

export class ActiveRule {
  readonly entry: RuleEntry;
  readonly #policyExcept: PolicyExcept;
  readonly #match: Test;
  readonly #except: Test;
  readonly #tiers: readonly Test[];
  readonly #key: RuleKey;
  readonly #client: ClientFact;
  readonly #costHeader: HeaderFact | undefined;
  readonly #isShadow: boolean;
  readonly #missingKey: Refusal;
  readonly #noTier: Refusal;

  constructor(entry: RuleEntry, policyExcept: PolicyExcept, terms: RuleTerms) {
    const { rule, policy } = entry;
    this.entry = entry;
    this.#policyExcept = policyExcept;
    this.#match = compileAny(rule.match, terms, always);
    this.#except = compileAny(rule.except, terms, never);
    this.#tiers = rule.tiers.map((tier) => compileAny(tier.match, terms, always));
    this.#key = compileKey(rule, terms);
    this.#client = terms.client;
    this.#costHeader = rule.cost.header && terms.names.header(rule.cost.header.name);
    this.#isShadow = policy.mode === 'Shadow' || rule.mode === 'Shadow';
    this.#missingKey = { rule: entry, reason: 'missing-key' };
    this.#noTier = { rule: entry, reason: 'no-tier' };
  }

  /** Adds the request's charge or the rule's refusal to `out`. */
  apply(facts: RequestFacts, out: Evaluation): RuleOutcome {
    if (!this.#match(facts)) return 'no-match';
    if (this.#policyExcept.holds(facts) || this.#except(facts)) return 'excepted';
    const tier = this.#tierOf(facts);
    const key = this.#key.read(facts);
    if (this.#isSkipped(tier, key)) return 'skipped';
    const shadow = this.#isShadow || !this.#isInShare(key, facts);
    const refusal = this.#refusalOf(tier, key);
    if (refusal !== undefined) return refuse(refusal, shadow, out);
    const charge = out.next(this.entry);
    charge.tierIndex = tier;
    charge.keyText = key ?? this.#textWithoutKey(facts);
    charge.weight = requestCost(this.entry.rule.cost, this.#sentCost(facts));
    charge.shadow = shadow;
    if (this.#isByAddress(key) && facts.isForwardedPast(this.#client)) out.forwardedSeen = true;
    return 'charged';
  }

  /** A rule that does not apply never refuses: either `Skip` comes before either `Deny`. */
  #isSkipped(tier: number, key: string | undefined): boolean {
    const { onNoTier, onMissingKey } = this.entry.rule;
    return (
      (tier === NO_TIER && onNoTier === 'Skip') || (key === undefined && onMissingKey === 'Skip')
    );
  }

  #refusalOf(tier: number, key: string | undefined): Refusal | undefined {
    if (tier === NO_TIER) return this.#noTier;
    const isDenied = key === undefined && this.entry.rule.onMissingKey === 'Deny';
    return isDenied ? this.#missingKey : undefined;
  }

  /** The first tier that matches, -1 when none does. */
  #tierOf(facts: RequestFacts): number {
    const tiers = this.#tiers;
    return tiers.length === 1 && tiers[0] === always ? 0 : tiers.findIndex((test) => test(facts));
  }

  /** Requests without a key, and rules without one, are shared out by client. */
  #isInShare(key: string | undefined, facts: RequestFacts): boolean {
    const percent = this.entry.policy.enforcePercent;
    if (percent >= 100) return true;
    const isOwnKey = key !== undefined && this.entry.isKeyed;
    return isEnforced(isOwnKey ? key : facts.client(this.#client).name, percent);
  }

  #textWithoutKey(facts: RequestFacts): string {
    return this.entry.rule.onMissingKey === 'Shared' ? this.#key.shared : this.#key.ofClient(facts);
  }

  #isByAddress(key: string | undefined): boolean {
    return key === undefined ? this.entry.rule.onMissingKey === 'ClientIP' : this.#key.hasAddress;
  }

  #sentCost(facts: RequestFacts): string | undefined {
    return this.#costHeader === undefined ? undefined : facts.header(this.#costHeader);
  }
}

function refuse(refusal: Refusal, shadow: boolean, out: Evaluation): RuleOutcome {
  if (shadow) {
    out.shadowRefusals.push(refusal);
    return 'counted';
  }
  out.refused = refusal;
  return 'refused';
}
