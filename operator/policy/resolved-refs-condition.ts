// ResolvedRefs: whether what the policy refers to is there: its key set, and the ports it is restricted to.
import type { ConditionReason, ConditionState } from '../../contract/conditions.ts';
import type { KeySetState } from './key-set-state.ts';
import type { ObservedPod, PolicyObservation } from './policy-observation.ts';
import { listed } from './wording.ts';

type ResolvedRefs = ConditionState<'ResolvedRefs'>;

export function resolvedRefsCondition(observation: PolicyObservation): ResolvedRefs {
  const { keySet, policy, pods } = observation;
  return (
    inlineFault(observation) ??
    keySetFault(keySet, policy.keySetUri) ??
    portFault(pods) ?? {
      type: 'ResolvedRefs',
      status: 'True',
      reason: 'ResolvedRefs',
      message:
        keySet === undefined
          ? 'Everything the policy refers to is there.'
          : 'The key set and everything else the policy refers to are there.',
    }
  );
}

/** A key set that stands in the policy itself and is none. */
function inlineFault({ policy: { judgement } }: PolicyObservation): ResolvedRefs | undefined {
  if (judgement.kind !== 'refused') return undefined;
  const problem = judgement.problems.find(({ path }) => path === 'spec.jwt.jwks.inline');
  if (problem?.reason !== 'reference') return undefined;
  return fault('KeySetInvalid', `${problem.path} ${problem.message}: ${problem.advice}`);
}

const KEY_SET_REASONS = {
  refused: 'KeySetRefused',
  unavailable: 'KeySetUnavailable',
  invalid: 'KeySetInvalid',
} as const satisfies Record<string, ConditionReason<'ResolvedRefs'>>;

function keySetFault(
  keySet: KeySetState | undefined,
  uri: string | undefined,
): ResolvedRefs | undefined {
  if (keySet === undefined || uri === undefined) return undefined;
  const { good, failure } = keySet;
  if (failure === undefined) {
    if (good !== undefined) return undefined;
    const message = `The key set ${uri} is being fetched; the policy waits for it.`;
    return { type: 'ResolvedRefs', status: 'Unknown', reason: 'KeySetPending', message };
  }
  const until =
    good === undefined
      ? 'sidecars keep what they have of this policy, new ones run without it'
      : `the keys of ${good.fetchedAt} stay in use`;
  const message = `The key set ${uri} ${failure.message}; ${until}.`;
  return fault(KEY_SET_REASONS[failure.kind], message);
}

function portFault(pods: readonly ObservedPod[]): ResolvedRefs | undefined {
  const lacking = pods.filter(({ isInjected, match }) => isInjected && match.missing.length > 0);
  const [first] = lacking;
  if (first === undefined) return undefined;
  const ports = listed(first.match.missing.map(String));
  const names = listed(lacking.map(({ name }) => name));
  const message = `The sidecar does not stand before port ${ports} of pod ${names}: correct spec.ports, or name the port in the pods' annotation weir.dev/ports.`;
  return fault('PortNotFound', message);
}

function fault(reason: ConditionReason<'ResolvedRefs'>, message: string): ResolvedRefs {
  return { type: 'ResolvedRefs', status: 'False', reason, message };
}
