// The one function that maps what was found out about a policy to its conditions. Each condition has one reason: the
// first of its list that holds, and the lists are ordered so that what must be put right first is said first.
import type { ConditionState } from '../../contract/conditions.ts';
import { acceptedCondition } from './accepted-condition.ts';
import { enforcedCondition } from './enforced-condition.ts';
import type { PolicyObservation } from './policy-observation.ts';
import { programmedCondition } from './programmed-condition.ts';
import { resolvedRefsCondition } from './resolved-refs-condition.ts';
import { bounded } from './wording.ts';

/** Accepted, ResolvedRefs, Programmed, Enforced, in this order. */
export function conditionsOf(observation: PolicyObservation): readonly ConditionState[] {
  const conditions: readonly ConditionState[] = [
    acceptedCondition(observation),
    resolvedRefsCondition(observation),
    programmedCondition(observation),
    enforcedCondition(observation),
  ];
  return conditions.map((one) => ({ ...one, message: bounded(one.message) }));
}
