// What is kept of an object between its arrival and its record in the world: no more than is read, because a cluster has
// thousands of each.
import type { KubeObject, ObjectMeta } from '../kube/object.ts';
import type { PodObject } from '../policy/pod-record.ts';

/** Annotations of ours and nobody else's: others hold whole manifests. */
const OURS = 'weir.dev/';
/** The seed is for the sidecar alone. */
const SEED = 'weir.dev/seed';

export function trimPod(pod: PodObject): PodObject {
  const { spec, status } = pod;
  const { containers = [], initContainers = [], hostNetwork = false } = spec ?? {};
  return {
    metadata: trimMetadata(pod.metadata),
    spec: {
      containers: containers.map(trimContainer),
      initContainers: initContainers.map(trimContainer),
      hostNetwork,
    },
    status: status?.phase === undefined ? {} : { phase: status.phase },
  };
}

type Container = NonNullable<NonNullable<PodObject['spec']>['containers']>[number];

function trimContainer({ name, ports }: Container): Container {
  return ports === undefined ? { name } : { name, ports };
}

/** Labels, owners and our annotations. */
export function trimToMetadata({ metadata }: KubeObject): KubeObject {
  return { metadata: trimMetadata(metadata) };
}

function trimMetadata(metadata: ObjectMeta): ObjectMeta {
  const annotations = Object.entries(metadata.annotations ?? {}).filter(
    ([name]) => name.startsWith(OURS) && name !== SEED,
  );
  return { ...metadata, annotations: Object.fromEntries(annotations) };
}
