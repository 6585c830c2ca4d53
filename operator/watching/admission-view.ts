// What the webhook asks the world about a pod that does not exist yet: Services that would select it, the namespace's
// labels, what its siblings got, and the rules to start with.
import { encodeSeed } from '../../contract/seed.ts';
import type { WorldView } from '../injection/admission-review.ts';
import type { PodSurroundings, Seed } from '../injection/injection-config.ts';
import type { InterceptionMode } from '../injection/injection-status.ts';
import type { Pod, PodOwner } from '../injection/pod.ts';
import type { ObjectReference } from '../kube/object.ts';
import type { PodBundle } from '../policy/pod-bundle.ts';
import { isLive, readPod, type PodRecord } from '../policy/pod-record.ts';
import { intermediateKey, workloadOf } from '../policy/workload.ts';
import type { PodView, World } from '../policy/world.ts';

/** Label by which StatefulSets and DaemonSets tell the pods of one revision. */
const REVISION_LABEL = 'controller-revision-hash';
/** Stands for the uid that the API server has not given yet. */
const NO_UID = '';

export interface AdmissionViewOptions {
  readonly world: World;
  /** The bundle a pod would get; undefined = the caches are not filled. */
  readonly bundleForNew: (pod: PodRecord, workload: string) => PodBundle | undefined;
}

export class AdmissionView implements WorldView {
  readonly #world: World;
  readonly #bundleForNew: AdmissionViewOptions['bundleForNew'];

  constructor({ world, bundleForNew }: AdmissionViewOptions) {
    this.#world = world;
    this.#bundleForNew = bundleForNew;
  }

  surroundingsOf(namespace: string, pod: Pod): PodSurroundings {
    const record = recordOf(namespace, pod);
    const siblingMode = this.#siblingMode(record);
    const seed = this.#seedFor(record);
    return {
      namespace,
      namespaceLabels: this.#world.namespaceLabels(namespace),
      services: this.#world.servicesFor(namespace, record.labels),
      ...(siblingMode === undefined ? {} : { siblingMode }),
      ...(seed === undefined ? {} : { seed }),
    };
  }

  workloadOf(namespace: string, owner: PodOwner): ObjectReference {
    const key = intermediateKey(namespace, owner);
    const known = key === undefined ? undefined : this.#world.ownerOf(key);
    const found = known?.uid === owner.uid ? (known.controller ?? owner) : owner;
    return { ...referenceOf(found), namespace };
  }

  /** Of a pod of the same ReplicaSet, Job or revision: all of them are reached in the same way. */
  #siblingMode(pod: PodRecord): InterceptionMode | undefined {
    const live = this.#siblings(pod).filter(({ record }) => isLive(record));
    return live.find(({ record }) => record.injection !== undefined)?.record.injection?.mode;
  }

  #siblings({ namespace, owner, labels }: PodRecord): readonly PodView[] {
    if (owner === undefined) return [];
    // By uid: an owner that was deleted and made anew under its name begins a revision of its own.
    const isOwned = ({ record }: PodView): boolean => record.owner?.uid === owner.uid;
    if (owner.kind === 'ReplicaSet' || owner.kind === 'Job') {
      return this.#world.podsOfOwner(owner.kind, namespace, owner.name).filter(isOwned);
    }
    const revision = labels[REVISION_LABEL];
    // Without the label a restarted owner could never choose anew.
    if (revision === undefined) return [];
    return [...this.#world.pods()].filter(
      (one) => isOwned(one) && one.record.labels[REVISION_LABEL] === revision,
    );
  }

  #seedFor(record: PodRecord): Seed | undefined {
    const workload = workloadOf(record, (key) => this.#world.ownerOf(key));
    const made = this.#bundleForNew(record, workload.id);
    // A policy that is held has no rules that could be written down.
    if (made === undefined || made.held.length > 0) return undefined;
    return encodeSeed(made.bundle);
  }
}

/** As if it were injected before every port: which ones are taken is decided after the seed is made. */
function recordOf(namespace: string, pod: Pod): PodRecord {
  const metadata = { ...pod.metadata, namespace, uid: NO_UID };
  const record = readPod({ metadata, spec: pod.spec });
  const ports = record.ports.map(({ container, name, number }) => ({
    ...{ container, port: number, listen: number },
    ...(name === undefined ? {} : { name }),
  }));
  return { ...record, injection: { mode: 'takeover', ports } };
}

function referenceOf({
  apiVersion,
  kind,
  name,
  uid,
}: PodOwner): Omit<ObjectReference, 'namespace'> {
  return { apiVersion, kind, name, uid };
}
