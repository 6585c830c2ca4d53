// Pods that could not be made because of our container: a quota or a limit range that it does not fit, a Pod Security
// level that refuses it. The API server names it to the ReplicaSet only; we say what to do about it.
import { annotations, inPod } from '../../contract/names.ts';
import type { ObjectReference } from '../kube/object.ts';
import type { EventPlan } from './policy-event.ts';
import { bounded } from './wording.ts';

/** An Event of a controller, as far as it is read. */
export interface FailedCreate {
  readonly reason: string;
  readonly note: string;
  readonly regarding: ObjectReference;
}

/** What the injected sidecar asks for, as the operator's settings have it, e.g. `256Mi`. */
export type SidecarQuantities = readonly string[];

interface Remedy {
  readonly isOurs: (note: string, quantities: SidecarQuantities) => boolean;
  readonly advice: string;
}

const CPU_AND_MEMORY = `${annotations.cpuRequest}, ${annotations.cpuLimit}, ${annotations.memoryRequest} and ${annotations.memoryLimit}`;

const REMEDIES: readonly Remedy[] = [
  {
    isOurs: (note) => new RegExp(`must specify [^;]* for: [^;]*\\b${inPod.sidecar}\\b`).test(note),
    advice: `the namespace's ResourceQuota wants them of every container: set them for the sidecar with the annotations ${CPU_AND_MEMORY}, or add a LimitRange with defaults`,
  },
  {
    isOurs: (note, quantities) =>
      note.includes(' usage per Container is ') &&
      quantities.some((one) => note.includes(` is ${one}`)),
    advice: `the sidecar does not fit the namespace's LimitRange: set what fits with the annotations ${CPU_AND_MEMORY}`,
  },
  {
    isOurs: (note) =>
      note.includes('violates PodSecurity') && note.includes(`"${inPod.redirectInit}"`),
    advice: `the namespace's Pod Security level does not admit redirect mode: annotate the pods with ${annotations.mode}: takeover`,
  },
  {
    isOurs: (note) => /Duplicate value: "weir(-[a-z]+)?"/.test(note),
    advice: `the pod template holds a container, volume or port of the sidecar's name: remove it`,
  },
];

/** An Event with the remedy; undefined when the failure is not about our container, or nothing is known to do. */
export function remedyEvent(
  { reason, note, regarding }: FailedCreate,
  quantities: SidecarQuantities,
): EventPlan | undefined {
  if (reason !== 'FailedCreate') return undefined;
  const remedy = REMEDIES.find(({ isOurs }) => isOurs(note, quantities));
  if (remedy === undefined) return undefined;
  return {
    regarding,
    type: 'Warning',
    reason: 'SidecarRefused',
    action: 'Inject',
    note: bounded(`No pod can be created with the sidecar: ${remedy.advice}.`),
  };
}
