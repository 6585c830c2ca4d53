// Who owns a pod in the end: the Deployment behind its ReplicaSet, the CronJob behind its Job. Events go to that
// owner, since it is what people look at, and `scope: Workload` shares buckets by it.
import type { ObjectMeta, ObjectReference, OwnerReference } from '../kube/object.ts';

export interface Workload {
  /** `<kind>.<name>`, lower-case kind, e.g. `deployment.api`; a bare pod is `pod.<name>`. */
  readonly id: string;
  readonly reference: ObjectReference;
}

/** Kinds between a pod and what a person wrote. */
export type IntermediateKind = 'ReplicaSet' | 'Job';

/** What is known of an intermediate owner: its own controller, undefined = it has none. */
export interface IntermediateOwner {
  readonly uid: string;
  readonly controller: OwnerReference | undefined;
}

/** By `<kind> <namespace>/<name>`; undefined = not known, or not yet. */
export type OwnerLookup = (key: string) => IntermediateOwner | undefined;

/** The owner that manages the object, of several. */
export function controllerOf({ ownerReferences = [] }: ObjectMeta): OwnerReference | undefined {
  return ownerReferences.find(({ controller }) => controller === true);
}

/** The key `OwnerLookup` is asked with; undefined for an owner that has no owner of a kind we look at. */
export function intermediateKey(
  namespace: string,
  owner: OwnerReference | undefined,
): string | undefined {
  if (owner === undefined) return undefined;
  return owner.kind === 'ReplicaSet' || owner.kind === 'Job'
    ? `${owner.kind} ${namespace}/${owner.name}`
    : undefined;
}

interface OwnedPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly owner?: OwnerReference;
}

/** The workload of a pod, as far as the owners are known. */
export function workloadOf(pod: OwnedPod, lookup: OwnerLookup): Workload {
  const { namespace, owner } = pod;
  if (owner === undefined) {
    return workload(namespace, { apiVersion: 'v1', kind: 'Pod', name: pod.name, uid: pod.uid });
  }
  const key = intermediateKey(namespace, owner);
  if (key === undefined) return workload(namespace, owner);
  const known = lookup(key);
  // Another object of that name, deleted and made anew, owns other pods.
  if (known?.uid === owner.uid) return workload(namespace, known.controller ?? owner);
  return workload(namespace, assumedOwner(pod, owner));
}

/**
 * A ReplicaSet may be seen after its pods. The Deployment's controller names it `<deployment>-<hash>` and puts the
 * hash on the pods, so that its name is known without it.
 */
function assumedOwner({ labels }: OwnedPod, owner: OwnerReference): NamedOwner {
  const hash = labels['pod-template-hash'];
  const suffix = `-${hash ?? ''}`;
  if (owner.kind !== 'ReplicaSet' || hash === undefined || !owner.name.endsWith(suffix))
    return owner;
  return { apiVersion: 'apps/v1', kind: 'Deployment', name: owner.name.slice(0, -suffix.length) };
}

interface NamedOwner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid?: string;
}

function workload(namespace: string, { apiVersion, kind, name, uid }: NamedOwner): Workload {
  return {
    id: `${kind.toLowerCase()}.${name}`,
    reference: { apiVersion, kind, namespace, name, ...(uid === undefined ? {} : { uid }) },
  };
}
