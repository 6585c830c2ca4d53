// Rules that say the same thing twice, or two different things about the same requests. All of them apply, none is
// merged or dropped; whoever wrote them ought to know.
import type { CompiledPolicy, CompiledRule } from '../contract/bundle.ts';
import { stableJson } from './content-hash.ts';

export interface Conflict {
  /**
   * `equal`: same requests, same clients, same buckets: a request pays both, and the lower level decides.
   * `contradictory`: same requests, same clients, other buckets, in different policies: the tighter one decides.
   */
  readonly kind: 'equal' | 'contradictory';
  /** `<namespace>/<policy>/<rule>` of both. */
  readonly rules: readonly [string, string];
  readonly message: string;
}

interface Candidate {
  readonly policy: string;
  readonly name: string;
  /** Which requests and which clients the rule is about. */
  readonly subject: string;
  /** What it allows them. */
  readonly allowance: string;
}

/** Conflicts among the policies of one workload, each pair once, in the order of the policies. */
export function conflictsOf(policies: readonly CompiledPolicy[]): Conflict[] {
  return new ConflictSearch().among(policies);
}

/** For who asks again and again about policies that mostly stay: what a rule is about is worked out once. */
export class ConflictSearch {
  readonly #candidates = new WeakMap<CompiledPolicy, readonly Candidate[]>();

  /** As `conflictsOf`. */
  among(policies: readonly CompiledPolicy[]): Conflict[] {
    const bySubject = new Map<string, Candidate[]>();
    const conflicts: Conflict[] = [];
    for (const candidate of policies.flatMap((policy) => this.#candidatesOf(policy))) {
      const others = bySubject.get(candidate.subject) ?? [];
      conflicts.push(...others.flatMap((other) => conflictBetween(other, candidate)));
      bySubject.set(candidate.subject, [...others, candidate]);
    }
    return conflicts;
  }

  #candidatesOf(policy: CompiledPolicy): readonly Candidate[] {
    const known = this.#candidates.get(policy);
    if (known !== undefined) return known;
    const candidates = candidatesOf(policy);
    this.#candidates.set(policy, candidates);
    return candidates;
  }
}

function candidatesOf(policy: CompiledPolicy): Candidate[] {
  if (policy.mode === 'Disabled') return [];
  const name = `${policy.namespace}/${policy.name}`;
  return policy.rules.map((rule) => ({
    policy: name,
    name: `${name}/${rule.name}`,
    subject: subjectOf(rule, policy),
    allowance: stableJson([rule.tiers, rule.onNoTier, rule.cost]),
  }));
}

// Lists of matches and exceptions are ORed, so their order says nothing; the order of a key does not separate
// other clients either, but it does make other buckets, which is not looked at here.
function subjectOf(rule: CompiledRule, policy: CompiledPolicy): string {
  const except = [...rule.except, ...policy.except];
  const key = unordered(rule.key);
  return stableJson([
    unordered(rule.match),
    unordered(except),
    key,
    rule.onMissingKey,
    policy.clientIP,
  ]);
}

function unordered(items: readonly unknown[]): string[] {
  return [...new Set(items.map(stableJson))].toSorted();
}

function conflictBetween(a: Candidate, b: Candidate): Conflict[] {
  const rules = [a.name, b.name] as const;
  if (a.allowance === b.allowance) {
    const message = `${a.name} and ${b.name} are equal: every request pays both`;
    return [{ kind: 'equal', rules, message }];
  }
  // Within one policy it is how several limits are written, a second's and a day's.
  if (a.policy === b.policy) return [];
  const message = `${a.name} and ${b.name} limit the same requests differently: the tighter one decides`;
  return [{ kind: 'contradictory', rules, message }];
}
