// Programmed: whether the sidecars run this generation.
import type { ConditionReason, ConditionState } from '../../contract/conditions.ts';
import { tallyPods, type PodTally } from './pod-tally.ts';
import type { PolicyObservation } from './policy-observation.ts';
import { listed } from './wording.ts';

type Programmed = ConditionState<'Programmed'>;

export function programmedCondition(observation: PolicyObservation): Programmed {
  const tally = tallyPods(observation);
  return (
    notAccepted(observation) ?? notEverywhere(observation, tally) ?? everywhere(observation, tally)
  );
}

/** What stays in force while the newest generation is not. */
export function lastGood({ policy: { good } }: PolicyObservation): string {
  return good === undefined
    ? 'sidecars keep what they have of this policy, new ones run without it'
    : `generation ${String(good.generation)} stays in force`;
}

function notAccepted(observation: PolicyObservation): Programmed | undefined {
  if (observation.policy.judgement.kind !== 'refused') return undefined;
  const message = `This generation is not accepted; ${lastGood(observation)}.`;
  return because('NotAccepted', message);
}

function notEverywhere(observation: PolicyObservation, tally: PodTally): Programmed | undefined {
  const { expected, rejected, tooOld } = tally;
  const [first] = rejected;
  if (expected.length === 0) {
    return because('NoSidecars', 'There is no running sidecar that this policy is for.');
  }
  if (first !== undefined) {
    const { path, message } = first.refusal;
    const place = path === '' ? '' : `${path}: `;
    const names = listed(rejected.map(({ pod }) => pod.name));
    const text = `The sidecar of pod ${names} refused this generation and keeps what it had: ${place}${message}`;
    return because('Rejected', text);
  }
  if (tooOld.length > 0) {
    const names = listed(tooOld.map(({ pod }) => pod.name));
    const features = listed([...new Set(tooOld.flatMap((one) => one.features))].toSorted());
    const unknown = features === '' ? '' : ` (${features})`;
    const text = `The sidecar of pod ${names} is too old for this policy${unknown}: restart the workload to get the present one.`;
    return because('SidecarTooOld', text);
  }
  return pending(observation, tally);
}

function pending(observation: PolicyObservation, tally: PodTally): Programmed | undefined {
  const { expected, programmed } = tally;
  if (observation.policy.judgement.kind === 'waiting') {
    return because('Pending', `Waits for the key set; ${lastGood(observation)}.`);
  }
  if (programmed.length === expected.length) return undefined;
  const running = new Set(programmed.map(({ uid }) => uid));
  const waiting = expected.filter(({ uid }) => !running.has(uid)).map(({ name }) => name);
  const message = `${ratio(observation, tally)}; not yet: pod ${listed(waiting)}.`;
  return because('Pending', message);
}

function everywhere(observation: PolicyObservation, tally: PodTally): Programmed {
  const message = `${ratio(observation, tally)}.`;
  return { type: 'Programmed', status: 'True', reason: 'Programmed', message };
}

function ratio({ policy }: PolicyObservation, { programmed, expected }: PodTally): string {
  return `${String(programmed.length)} of ${String(expected.length)} sidecars run generation ${String(policy.generation)}`;
}

function because(reason: ConditionReason<'Programmed'>, message: string): Programmed {
  return { type: 'Programmed', status: 'False', reason, message };
}
