// What is told as Events: transitions on the policy, bypasses on the Service and on who owns the pods, conflicts and
// proxies taken for clients on the policy. The recorder counts repetitions; nothing is told twice here either.
import type { ConditionState } from '../../contract/conditions.ts';
import { API_GROUP, API_VERSION, KIND } from '../../crds/policy.ts';
import type { ObjectReference } from '../kube/object.ts';
import { describeBypass, type BypassFinding } from './bypass-finding.ts';
import type { PolicyObservation } from './policy-observation.ts';
import type { Transition } from './policy-status.ts';
import { bounded, listed } from './wording.ts';

/** An Event to be recorded; the note has at most 1 024 characters. */
export interface EventPlan {
  readonly regarding: ObjectReference;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  /** What was being done, in one CamelCase word. */
  readonly action: string;
  readonly note: string;
}

/** Characters the API server takes. */
export const NOTE_MAX = 1_024;

function policyReference(policy: {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}): ObjectReference {
  const { namespace, name, uid } = policy;
  return { apiVersion: `${API_GROUP}/${API_VERSION}`, kind: KIND, namespace, name, uid };
}

/** One Event for each condition that says something else than before. */
export function transitionEvents(
  { policy }: PolicyObservation,
  transitions: readonly Transition[],
): readonly EventPlan[] {
  const regarding = policyReference(policy);
  return transitions.filter(isNews).map(({ condition }) => ({
    regarding,
    type: typeOf(condition),
    reason: condition.reason,
    action: condition.type,
    note: bounded(condition.message, NOTE_MAX),
  }));
}

// That a new policy refers to nothing and is still on its way is no news.
function isNews({ condition, before }: Transition): boolean {
  if (before !== undefined) return true;
  return condition.reason !== 'ResolvedRefs' && !WAITS.has(condition.reason);
}

/** Ways of waiting, which every policy goes through. */
const WAITS: ReadonlySet<string> = new Set([
  // That there are no pods is told by the other condition.
  ...['Pending', 'NoSidecars', 'NotProgrammed', 'KeySetPending'],
]);
/** What somebody wrote on purpose. */
const WANTED: ReadonlySet<string> = new Set(['Disabled', 'Shadow']);

function typeOf({ status, reason }: ConditionState): EventPlan['type'] {
  if (reason === 'ClientIPIsProxy') return 'Warning';
  return status === 'True' || WAITS.has(reason) || WANTED.has(reason) ? 'Normal' : 'Warning';
}

/** One Event for each pair of rules that conflict. */
export function conflictEvents({ policy, conflicts }: PolicyObservation): readonly EventPlan[] {
  const regarding = policyReference(policy);
  return conflicts.map(({ message }) => ({
    regarding,
    type: 'Warning',
    reason: 'RuleConflict',
    action: 'Compile',
    note: bounded(`${message}.`, NOTE_MAX),
  }));
}

/** For each bypass one Event on the Service, and one on each workload whose pods are reached. */
export function bypassEvents(
  { policy }: PolicyObservation,
  findings: readonly BypassFinding[],
  ownerOf: (podName: string) => ObjectReference | undefined,
): readonly EventPlan[] {
  return findings.flatMap((finding) => {
    const tail = `so policy ${policy.namespace}/${policy.name} does not limit it for pod ${listed(finding.pods)}. Then run kubectl rollout restart where pods were changed.`;
    const note = bounded(`${describeBypass(finding)}, ${tail}`, NOTE_MAX);
    return subjectsOf(finding, ownerOf).map((regarding) => ({
      regarding,
      type: 'Warning' as const,
      reason: 'Bypassable',
      action: 'Bypass',
      note,
    }));
  });
}

function subjectsOf(
  { service, pods }: BypassFinding,
  ownerOf: (podName: string) => ObjectReference | undefined,
): readonly ObjectReference[] {
  const owners = new Map<string, ObjectReference>();
  for (const pod of pods) {
    const owner = ownerOf(pod);
    if (owner !== undefined) owners.set(`${owner.kind}/${owner.name}`, owner);
  }
  if (service === undefined) return [...owners.values()];
  const { namespace, name, uid } = service;
  return [{ apiVersion: 'v1', kind: 'Service', namespace, name, uid }, ...owners.values()];
}
