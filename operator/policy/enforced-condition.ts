// Enforced: whether somebody who asks too often is really refused. True only when requests cannot go around, a pod
// runs the policy and a rule refuses. What was wanted (Disabled, Shadow) is never told as a fault of something else.
import type { CompiledPolicy } from '../../contract/bundle.ts';
import type { ConditionReason, ConditionState } from '../../contract/conditions.ts';
import { describeBypass } from './bypass-finding.ts';
import { tallyPods, type PodTally } from './pod-tally.ts';
import type { ObservedPod, PolicyObservation } from './policy-observation.ts';
import { lastGood } from './programmed-condition.ts';
import { counted, listed } from './wording.ts';

type Enforced = ConditionState<'Enforced'>;

/** In the order they are told: the first that holds. */
const OBSTACLES: readonly ((
  observation: PolicyObservation,
  tally: PodTally,
) => Enforced | undefined)[] = [
  notAccepted,
  disabled,
  noMatchingPods,
  notInjected,
  notProgrammed,
  shadow,
  bypassable,
  storeUnavailable,
];

export function enforcedCondition(observation: PolicyObservation): Enforced {
  const tally = tallyPods(observation);
  for (const obstacle of OBSTACLES) {
    const found = obstacle(observation, tally);
    if (found !== undefined) return found;
  }
  return enforced(observation, tally);
}

function notAccepted(observation: PolicyObservation): Enforced | undefined {
  if (observation.policy.judgement.kind !== 'refused') return undefined;
  return because('NotAccepted', `This generation is not accepted; ${lastGood(observation)}.`);
}

function disabled({ policy }: PolicyObservation): Enforced | undefined {
  const spec = policy.document?.spec;
  if (spec?.mode === 'Disabled') {
    return because('Disabled', 'The policy is disabled (spec.mode): no request is limited by it.');
  }
  if (spec?.rules.every(({ mode }) => mode === 'Disabled') === true) {
    return because('Disabled', 'Every rule is disabled (mode): no request is limited.');
  }
  return undefined;
}

const HOW_TO_OPT_IN =
  'set the annotation weir.dev/inject: enabled in the pod template of their workload';

function noMatchingPods(
  { policy }: PolicyObservation,
  { matched, outside }: PodTally,
): Enforced | undefined {
  if (matched.length > 0) return undefined;
  if (isEverything(policy.document?.spec.selector)) {
    const message = `No pod of this namespace asked for a sidecar: ${HOW_TO_OPT_IN}.`;
    return because('NoMatchingPods', message);
  }
  if (outside.length === 0) {
    return because('NoMatchingPods', 'No pod of this namespace has the labels of spec.selector.');
  }
  const message = `${counted(outside.length, 'pod')} of spec.selector never asked for a sidecar (${namesOf(outside)}): ${HOW_TO_OPT_IN}.`;
  return because('NotInjected', message);
}

function notInjected(_: PolicyObservation, { bare, matched }: PodTally): Enforced | undefined {
  const [first] = bare;
  if (first === undefined) return undefined;
  const share = `${String(bare.length)} of ${counted(matched.length, 'pod')}`;
  const invalid = bare.find(({ wish }) => wish.kind === 'invalid');
  if (invalid?.wish.kind === 'invalid') {
    const { where, given } = invalid.wish;
    const message = `${share} have no sidecar: ${where} of pod ${invalid.name} is ${JSON.stringify(given)}, write enabled, required or disabled.`;
    return because('NotInjected', message);
  }
  const message = `${share} have no sidecar (${namesOf(bare)}): restart their workload, and see its Events.`;
  return because('NotInjected', message);
}

function notProgrammed(observation: PolicyObservation, tally: PodTally): Enforced | undefined {
  if (tally.programmed.length > 0) return undefined;
  const { uid } = observation.policy;
  const older = tally.expected.flatMap(({ report }) => report?.generations.get(uid) ?? []);
  const message =
    older.length === 0
      ? 'No sidecar says that it runs this policy yet.'
      : `No sidecar runs this generation yet; generation ${String(Math.max(...older))} stays in force.`;
  return because('NotProgrammed', message);
}

function shadow({ policy }: PolicyObservation): Enforced | undefined {
  const compiled = policy.good?.compiled;
  if (compiled === undefined || policy.document?.spec.mode === 'Disabled') return undefined;
  if (compiled.enforcePercent === 0) {
    return because('Shadow', 'spec.enforcePercent is 0: requests are counted, none is refused.');
  }
  const refuses = compiled.rules.some(({ mode }) => mode === 'Enforce');
  if (refuses) return undefined;
  const field = compiled.mode === 'Shadow' ? 'spec.mode' : 'the mode of every rule';
  return because('Shadow', `${field} is Shadow: requests are counted, none is refused.`);
}

function bypassable({ bypasses }: PolicyObservation): Enforced | undefined {
  const [first] = bypasses;
  if (first === undefined) return undefined;
  const more = bypasses.length - 1;
  const rest = more > 0 ? ` (and ${String(more)} more)` : '';
  return because('Bypassable', `${describeBypass(first)}${rest}.`);
}

const STORE_AWAY = {
  Local: 'each sidecar limits to its share (failureMode Local)',
  Open: 'requests are not limited (failureMode Open)',
  Closed: 'requests are refused with 503 (failureMode Closed)',
} as const;

function storeUnavailable(
  { policy, store }: PolicyObservation,
  { storeDown, expected }: PodTally,
): Enforced | undefined {
  const compiled = policy.good?.compiled;
  // Each pod alone needs no store.
  if (compiled === undefined || compiled.scope === 'Pod') return undefined;
  const outcome = STORE_AWAY[compiled.failureMode];
  if (store.kind === 'none') {
    const message = `No store is configured, so ${outcome}: name a Secret with its address in the operator's settings.`;
    return because('StoreUnavailable', message);
  }
  if (store.kind === 'faulty' && !store.isKept) {
    return because('StoreUnavailable', `${store.message}; ${outcome}.`);
  }
  if (storeDown.length === 0) return undefined;
  const share = `${String(storeDown.length)} of ${counted(expected.length, 'sidecar')}`;
  const message = `${share} cannot reach the store (${namesOf(storeDown)}); there ${outcome}.`;
  return because('StoreUnavailable', message);
}

function enforced({ policy }: PolicyObservation, tally: PodTally): Enforced {
  const { behindProxy, outside } = tally;
  if (behindProxy.length > 0) {
    const message = `Rule ${listed(behindProxy)} takes a proxy's address for the client's, one bucket for everybody behind it: set spec.clientIP.trustedHops or trustedProxies.`;
    return { type: 'Enforced', status: 'True', reason: 'ClientIPIsProxy', message };
  }
  const notes = policy.good === undefined ? [] : softened(policy.good.compiled);
  if (outside.length > 0 && !isEverything(policy.document?.spec.selector)) {
    notes.push(`${counted(outside.length, 'pod')} of spec.selector never asked for a sidecar`);
  }
  const rest = notes.length === 0 ? '' : `; ${notes.join('; ')}`;
  const message = `Requests above the limit are refused${rest}.`;
  return { type: 'Enforced', status: 'True', reason: 'Enforced', message };
}

function softened({ rules, enforcePercent }: CompiledPolicy): string[] {
  const shadowed = rules.filter(({ mode }) => mode === 'Shadow').map(({ name }) => name);
  return [
    ...(enforcePercent < 100 ? [`for ${String(enforcePercent)} % of clients`] : []),
    ...(shadowed.length > 0 ? [`rule ${listed(shadowed)} only counts`] : []),
  ];
}

// `{}` means every pod that asked, so the others are none of its business.
function isEverything(selector: object | undefined): boolean {
  return selector !== undefined && Object.keys(selector).length === 0;
}

function namesOf(pods: readonly ObservedPod[]): string {
  return listed(pods.map(({ name }) => name));
}

function because(reason: ConditionReason<'Enforced'>, message: string): Enforced {
  return { type: 'Enforced', status: 'False', reason, message };
}
