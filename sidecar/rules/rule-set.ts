// Hot path.
// The rules of one bundle, ready to be asked. A request's facts go in, the charges it owes come out, synchronously; only
// a token that was never seen has to be waited for.
import type { Bundle, CompiledPolicy } from '../../contract/bundle.ts';
import { ClientAddressPlan, ClientFact } from './client-address.ts';
import { ActiveRule, PolicyExcept } from './compiled-rule.ts';
import type { Evaluation, RuleEntry } from './evaluation.ts';
import { loadExpressions } from './expressions.ts';
import type { Expressions } from './expressions.ts';
import { FieldNames } from './field-names.ts';
import { compileAny, never } from './match.ts';
import { RequestFacts } from './request-facts.ts';
import type { TokenFact } from './token-fact.ts';
import type { RequestView } from './request-view.ts';
import { newRuleCounters } from './rule-counters.ts';
import type { RuleCounters } from './rule-counters.ts';
import { RuleIndex } from './rule-index.ts';
import { RuleTerms } from './rule-terms.ts';
import { loadTokenFacts } from './token-facts.ts';

export interface RuleDeps {
  /** Wall clock: tokens carry calendar time. */
  readonly nowMs: () => number;
  /** Absent: counters of the set's own. Give the same ones again to count across bundles. */
  readonly counters?: RuleCounters;
}

/**
 * - `ready`: the evaluation holds the outcome.
 * - `bad-request`: the target's path cannot be interpreted.
 * - `needs-claims`: await `verifyClaims`, then evaluate again with `known`.
 */
export type Readiness = 'ready' | 'bad-request' | 'needs-claims';

/** `known`: a token that is not verified by now has no claims, so that no request is asked to wait twice. */
export type TokenPatience = 'verify' | 'known';

/**
 * Compiles a bundle. Throws POLICY_INVALID when an expression or key set in it cannot be used.
 * Disabled policies are left out.
 */
export async function compileRules(bundle: Bundle, deps: RuleDeps): Promise<RuleSet> {
  const policies = bundle.policies.filter((policy) => policy.mode !== 'Disabled').sort(byName);
  const counters = deps.counters ?? newRuleCounters();
  const names = new FieldNames();
  const parts: RuleSetParts = {
    names,
    counters,
    facts: new RequestFacts(names),
    expressions: await loadExpressions(policies),
    tokens: await loadTokenFacts(policies, { names, counters, nowMs: deps.nowMs }),
  };
  return new RuleSet(policies, parts);
}

interface RuleSetParts {
  readonly names: FieldNames;
  readonly counters: RuleCounters;
  readonly facts: RequestFacts;
  readonly expressions: Expressions;
  readonly tokens: ReadonlyMap<CompiledPolicy, TokenFact>;
}

export class RuleSet {
  /** Every rule that can apply, by id. */
  readonly entries: readonly RuleEntry[];
  readonly counters: RuleCounters;
  readonly #rules: readonly ActiveRule[];
  readonly #index: RuleIndex;
  readonly #candidates: Uint32Array;
  readonly #facts: RequestFacts;
  readonly #tokens: ReadonlySet<TokenFact>;

  /** Use `compileRules`. */
  constructor(policies: readonly CompiledPolicy[], parts: RuleSetParts) {
    this.counters = parts.counters;
    this.#facts = parts.facts;
    this.#tokens = new Set(parts.tokens.values());
    this.#rules = activeRules(policies, parts);
    this.entries = this.#rules.map((rule) => rule.entry);
    this.#index = new RuleIndex(this.entries.map((entry) => entry.rule));
    this.#candidates = new Uint32Array(this.entries.length);
  }

  /** Says in `out` what the request owes. `view` is read during the call only. */
  evaluate(view: RequestView, out: Evaluation, patience: TokenPatience = 'verify'): Readiness {
    out.reset();
    if (this.#rules.length === 0) {
      out.exempt = 'no-match';
      return 'ready';
    }
    if (!this.#facts.begin(view, patience === 'verify')) return 'bad-request';
    const celErrors = this.counters.celErrors;
    const readiness = this.#applyCandidates(out);
    // The request comes again: its errors are counted then.
    if (readiness === 'needs-claims') this.counters.celErrors = celErrors;
    return readiness;
  }

  /** Verifies the request's token for every policy that knows issuers. Never rejects. `view` is read before it returns. */
  async verifyClaims(view: RequestView): Promise<void> {
    this.#facts.begin(view, true);
    const running: Promise<void>[] = [];
    for (const fact of this.#tokens) {
      const { token, state, verifier } = this.#facts.token(fact);
      if (token !== undefined && state === undefined) running.push(verifier.verify(token));
    }
    await Promise.all(running);
  }

  #applyCandidates(out: Evaluation): Readiness {
    const facts = this.#facts;
    const count = this.#index.candidates(facts.view.method, facts.path, this.#candidates);
    let wasExcepted = false;
    for (let i = 0; i < count; i += 1) {
      const outcome = this.#rules[Number(this.#candidates[i])]?.apply(facts, out);
      if (facts.claimsPending) return 'needs-claims';
      if (outcome === 'refused') {
        out.count = 0;
        return 'ready';
      }
      if (outcome === 'excepted') wasExcepted = true;
    }
    if (out.count === 0) out.exempt = wasExcepted ? 'exception' : 'no-match';
    return 'ready';
  }
}

function activeRules(policies: readonly CompiledPolicy[], parts: RuleSetParts): ActiveRule[] {
  const clients = new Map<string, ClientFact>();
  const rules: ActiveRule[] = [];
  for (const policy of policies) {
    const client = clientOf(policy, clients);
    const terms = new RuleTerms({ ...parts, client, tokens: parts.tokens.get(policy) });
    const except = new PolicyExcept(compileAny(policy.except, terms, never));
    for (const rule of [...policy.rules].sort((a, b) => order(a.name, b.name))) {
      const entry = { id: rules.length, policy, rule, isKeyed: rule.key.length > 0 };
      rules.push(new ActiveRule(entry, except, terms));
    }
  }
  return rules;
}

/** Policies with the same settings share one client, read once per request. */
function clientOf(policy: CompiledPolicy, clients: Map<string, ClientFact>): ClientFact {
  const { trustedHops, trustedProxies, ipv6PrefixLength } = policy.clientIP;
  const settings = JSON.stringify([trustedHops, trustedProxies, ipv6PrefixLength]);
  const known = clients.get(settings);
  if (known !== undefined) return known;
  const client = new ClientFact(new ClientAddressPlan(policy.clientIP));
  clients.set(settings, client);
  return client;
}

/** A fixed order, so that no outcome depends on the one in which policies arrived. */
function byName(a: CompiledPolicy, b: CompiledPolicy): number {
  return order(a.namespace, b.namespace) || order(a.name, b.name) || order(a.uid, b.uid);
}

function order(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
