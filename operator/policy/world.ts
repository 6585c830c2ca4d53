// The world as the operator sees it: policies, pods, Services, namespaces and owners, indexed by what is asked for.
// It is fed change by change and answers what each change touches, in steps proportional to what hangs together with
// it. It promises that the order of the changes leaves no trace: the same objects are the same world on every replica.
// The exception is a policy that is faulty now: its last good version is known to those who saw it.
import { isDeepStrictEqual } from 'node:util';
import type { CelCompiler } from '../../crds/cel-environment.ts';
import type { PublicKey } from '../../crds/key-set.ts';
import { matchesLabels } from '../../crds/label-match.ts';
import type { KubeObject } from '../kube/object.ts';
import { AffectedSet, type Affected } from './affected.ts';
import { GroupedKeys } from './grouped-keys.ts';
import { MatchIndex, type Pairing } from './match-index.ts';
import type { Labels } from './opt-in.ts';
import { PodConflicts } from './pod-conflicts.ts';
import { isLive, readPod, type PodObject, type PodRecord } from './pod-record.ts';
import { applies, decidingDocument, matchPolicy, sharingGroup } from './policy-match.ts';
import {
  isHeld,
  judgeKeys,
  judgePolicy,
  keySetUris,
  type JudgeContext,
  type PolicyObject,
  type PolicyRecord,
} from './policy-record.ts';
import { readService, type ServiceObject, type ServiceRecord } from './service-record.ts';
import {
  controllerOf,
  intermediateKey,
  workloadOf,
  type IntermediateKind,
  type IntermediateOwner,
  type Workload,
} from './workload.ts';

/** `object` undefined = it is gone. Keys are `namespace/name`, of namespaces the name. */
export type WorldChange =
  | {
      readonly kind: 'RateLimitPolicy';
      readonly key: string;
      readonly object: PolicyObject | undefined;
    }
  | { readonly kind: 'Pod'; readonly key: string; readonly object: PodObject | undefined }
  | { readonly kind: 'Service'; readonly key: string; readonly object: ServiceObject | undefined }
  | {
      readonly kind: 'Namespace' | IntermediateKind;
      readonly key: string;
      readonly object: KubeObject | undefined;
    }
  /** What was fetched from an address; undefined = forget it, if no policy needs it any more. */
  | {
      readonly kind: 'KeySet';
      readonly key: string;
      readonly object: readonly PublicKey[] | undefined;
    };

export interface PodView {
  readonly record: PodRecord;
  readonly workload: Workload;
  /** Pods of one kind run the same policies and are reached in the same ways. */
  readonly kind: string;
}

export class World {
  readonly conflicts: PodConflicts = new PodConflicts(this);
  readonly #policies = new Map<string, PolicyRecord>();
  readonly #policiesIn = new GroupedKeys();
  readonly #policiesWithKeys = new GroupedKeys();
  readonly #pods = new Map<string, PodView>();
  readonly #podUids = new Map<string, string>();
  readonly #podsIn = new GroupedKeys();
  readonly #podsOfOwner = new GroupedKeys();
  readonly #services = new Map<string, ServiceRecord>();
  readonly #servicesIn = new GroupedKeys();
  readonly #namespaces = new Map<string, Labels>();
  readonly #owners = new Map<string, IntermediateOwner>();
  readonly #keySets = new Map<string, readonly PublicKey[]>();
  readonly #matches = new MatchIndex();
  readonly #judging: JudgeContext;
  #revision = 0;

  /** One CEL compiler serves every policy. */
  constructor(cel: CelCompiler) {
    this.#judging = { cel, keysOf: (uri) => this.#keySets.get(uri) };
  }

  /** Rises with every change after which a bundle may be another one. */
  get revision(): number {
    return this.#revision;
  }

  apply(change: WorldChange): Affected {
    const affected = new AffectedSet();
    this.#dispatch(change, affected);
    if (affected.pods.size > 0 || affected.groups.size > 0) this.#revision += 1;
    return affected;
  }

  #dispatch(change: WorldChange, affected: AffectedSet): void {
    switch (change.kind) {
      case 'RateLimitPolicy':
        this.#applyPolicy(change.key, change.object, affected);
        break;
      case 'Pod':
        this.#applyPod(change.key, change.object, affected);
        break;
      case 'Service':
        this.#applyService(change.key, change.object, affected);
        break;
      case 'Namespace':
        this.#applyNamespace(change.key, change.object, affected);
        break;
      case 'ReplicaSet':
      case 'Job':
        this.#applyOwner(`${change.kind} ${change.key}`, change.object, affected);
        break;
      case 'KeySet':
        this.#applyKeySet(change.key, change.object, affected);
        break;
    }
  }

  policy(key: string): PolicyRecord | undefined {
    return this.#policies.get(key);
  }

  policies(): Iterable<PolicyRecord> {
    return this.#policies.values();
  }

  policiesIn(namespace: string): readonly PolicyRecord[] {
    return this.#policiesOf(this.#policiesIn.of(namespace));
  }

  /** Policies of a namespace of which no good version is known, by uid, sorted. */
  heldIn(namespace: string): readonly string[] {
    return this.#policiesOf(this.#policiesIn.of(namespace))
      .filter(isHeld)
      .map(({ uid }) => uid)
      .toSorted();
  }

  pod(uid: string): PodView | undefined {
    return this.#pods.get(uid);
  }

  pods(): Iterable<PodView> {
    return this.#pods.values();
  }

  podByName(namespace: string, name: string): PodView | undefined {
    return this.#podAt(`${namespace}/${name}`);
  }

  /** Pods a policy selects. */
  podsOf(policyKey: string): readonly PodView[] {
    return this.#podViews(this.#matches.podsOf(policyKey));
  }

  /** Pods of a ReplicaSet or Job, whether that is known or not. */
  podsOfOwner(kind: IntermediateKind, namespace: string, name: string): readonly PodView[] {
    return this.#podViews(this.#podsOfOwner.of(`${kind} ${namespace}/${name}`));
  }

  /** What is known of a ReplicaSet or Job, by the key of `intermediateKey`. */
  ownerOf(key: string): IntermediateOwner | undefined {
    return this.#owners.get(key);
  }

  /** What each policy that selects the pod is to it, by policy key. */
  pairingsOf(uid: string): ReadonlyMap<string, Pairing> {
    return this.#matches.ofPod(uid);
  }

  servicesFor(namespace: string, labels: Labels): readonly ServiceRecord[] {
    return [...this.#servicesIn.of(namespace)]
      .map((key) => this.#services.get(key))
      .filter((service) => service !== undefined)
      .filter(({ selector }) => matchesLabels({ matchLabels: selector }, labels))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  namespaceLabels(namespace: string): Labels {
    return this.#namespaces.get(namespace) ?? NO_LABELS;
  }

  /** Live pods with a sidecar that share the buckets of a group. */
  groupSize(group: string): number {
    return this.#matches.sizeOf(group);
  }

  /** Uids of pods that run a policy of the group, those that count and those that are about to end. */
  podsInGroup(group: string): readonly string[] {
    const [key = '', workload] = group.split('|');
    return this.podsOf(key)
      .filter((pod) => workload === '' || pod.workload.id === workload)
      .map(({ record }) => record.uid);
  }

  /** Addresses of the key sets that policies need. */
  keySetUris(): Iterable<string> {
    return this.#policiesWithKeys.groups();
  }

  #policiesOf(keys: Iterable<string>): PolicyRecord[] {
    return [...keys].map((key) => this.#policies.get(key)).filter((one) => one !== undefined);
  }

  #podAt(key: string): PodView | undefined {
    const uid = this.#podUids.get(key);
    return uid === undefined ? undefined : this.#pods.get(uid);
  }

  #podViews(uids: Iterable<string>): PodView[] {
    return [...uids].map((uid) => this.#pods.get(uid)).filter((pod) => pod !== undefined);
  }

  #applyPolicy(key: string, object: PolicyObject | undefined, affected: AffectedSet): void {
    const before = this.#policies.get(key);
    const after = object === undefined ? undefined : judgePolicy(object, before, this.#judging);
    this.#replacePolicy(key, before, after, affected);
  }

  #replacePolicy(
    key: string,
    before: PolicyRecord | undefined,
    after: PolicyRecord | undefined,
    affected: AffectedSet,
  ): void {
    const present = after ?? before;
    if (after === before || present === undefined) return;
    affected.policies.add(key);
    this.#indexPolicy(key, before, after);
    if (isSameForPods(before, after)) return;
    const { namespace } = present;
    const selected = [...this.#matches.podsOf(key)];
    for (const pod of this.#podViews(this.#podsIn.of(namespace))) {
      this.#pair(key, pod, affected);
    }
    affected.addPods(selected);
    affected.addPods(this.#matches.podsOf(key));
    if (wasHeld(before) !== wasHeld(after)) affected.addPods(this.#podsIn.of(namespace));
    // What they say of each other is in the status of both.
    for (const uid of [...selected, ...this.#matches.podsOf(key)]) {
      affected.addPolicies(this.#matches.ofPod(uid).keys());
    }
  }

  #indexPolicy(
    key: string,
    before: PolicyRecord | undefined,
    after: PolicyRecord | undefined,
  ): void {
    this.#policiesIn.move(key, before?.namespace, after?.namespace);
    for (const uri of before === undefined ? [] : keySetUris(before)) {
      this.#policiesWithKeys.remove(uri, key);
    }
    for (const uri of after === undefined ? [] : keySetUris(after)) {
      this.#policiesWithKeys.add(uri, key);
    }
    if (after === undefined) this.#policies.delete(key);
    else this.#policies.set(key, after);
  }

  #applyPod(key: string, object: PodObject | undefined, affected: AffectedSet): void {
    const record = object === undefined ? undefined : readPod(object);
    const known = this.#podAt(key);
    if (known !== undefined && known.record.uid !== record?.uid) this.#removePod(known, affected);
    if (record === undefined) return;
    const before = this.#pods.get(record.uid);
    if (isDeepStrictEqual(before?.record, record)) return;
    const workload = workloadOf(record, (owner) => this.#owners.get(owner));
    this.#replacePod(before, viewOf(record, workload), affected);
  }

  #removePod({ record }: PodView, affected: AffectedSet): void {
    const { uid } = record;
    this.#pods.delete(uid);
    this.#podUids.delete(record.key);
    this.#podsIn.remove(record.namespace, uid);
    this.#podsOfOwner.move(uid, ownerKey(record), undefined);
    affected.pods.add(uid);
    for (const key of [...this.#matches.ofPod(uid).keys()]) {
      affected.policies.add(key);
      for (const group of this.#matches.set(key, uid, undefined)) affected.groups.add(group);
    }
  }

  #replacePod(before: PodView | undefined, after: PodView, affected: AffectedSet): void {
    const { record } = after;
    const { uid, namespace } = record;
    this.#pods.set(uid, after);
    this.#podUids.set(record.key, uid);
    this.#podsIn.add(namespace, uid);
    this.#podsOfOwner.move(
      uid,
      before === undefined ? undefined : ownerKey(before.record),
      ownerKey(record),
    );
    const pairings = new Map(this.#matches.ofPod(uid));
    affected.addPolicies(pairings.keys());
    for (const key of this.#policiesIn.of(namespace)) this.#pair(key, after, affected);
    affected.addPolicies(this.#matches.ofPod(uid).keys());
    const isSame =
      before?.workload.id === after.workload.id &&
      before.record.isTerminal === record.isTerminal &&
      isDeepStrictEqual(before.record.injection, record.injection) &&
      isDeepStrictEqual(matchesOf(pairings), matchesOf(this.#matches.ofPod(uid)));
    if (!isSame) affected.pods.add(uid);
  }

  #pair(key: string, pod: PodView, affected: AffectedSet): void {
    const policy = this.#policies.get(key);
    const pairing = policy === undefined ? undefined : pairingOf(policy, pod);
    const groups = this.#matches.set(key, pod.record.uid, pairing);
    for (const group of groups) affected.groups.add(group);
  }

  #applyService(key: string, object: ServiceObject | undefined, affected: AffectedSet): void {
    const before = this.#services.get(key);
    const after = object === undefined ? undefined : readService(object);
    if (isDeepStrictEqual(before, after)) return;
    this.#servicesIn.move(key, before?.namespace, after?.namespace);
    if (after === undefined) this.#services.delete(key);
    else this.#services.set(key, after);
    for (const service of [before, after]) this.#touchSelected(service, affected);
  }

  #touchSelected(service: ServiceRecord | undefined, affected: AffectedSet): void {
    if (service === undefined) return;
    for (const { record } of this.#podViews(this.#podsIn.of(service.namespace))) {
      if (!matchesLabels({ matchLabels: service.selector }, record.labels)) continue;
      affected.addPolicies(this.#matches.ofPod(record.uid).keys());
    }
  }

  #applyNamespace(name: string, object: KubeObject | undefined, affected: AffectedSet): void {
    const before = this.namespaceLabels(name);
    const after = object?.metadata.labels ?? NO_LABELS;
    if (object === undefined) this.#namespaces.delete(name);
    else this.#namespaces.set(name, after);
    if (isDeepStrictEqual(before, after)) return;
    affected.addPolicies(this.#policiesIn.of(name));
  }

  #applyOwner(key: string, object: KubeObject | undefined, affected: AffectedSet): void {
    if (object === undefined) this.#owners.delete(key);
    else {
      const { uid = '' } = object.metadata;
      this.#owners.set(key, { uid, controller: controllerOf(object.metadata) });
    }
    for (const pod of this.#podViews(this.#podsOfOwner.of(key))) {
      const workload = workloadOf(pod.record, (owner) => this.#owners.get(owner));
      if (isDeepStrictEqual(workload, pod.workload)) continue;
      this.#replacePod(pod, viewOf(pod.record, workload), affected);
    }
  }

  #applyKeySet(uri: string, keys: readonly PublicKey[] | undefined, affected: AffectedSet): void {
    if (keys === undefined) {
      // While a policy needs them, the last ones stay.
      if (this.#policiesWithKeys.of(uri).size === 0) this.#keySets.delete(uri);
      return;
    }
    this.#keySets.set(uri, keys);
    for (const record of this.#policiesOf([...this.#policiesWithKeys.of(uri)])) {
      const after = judgeKeys(record, this.#judging);
      this.#replacePolicy(record.key, record, after, affected);
    }
  }
}

const NO_LABELS: Labels = {};

function viewOf(record: PodRecord, workload: Workload): PodView {
  const { namespace, labels, injection, ports, hasChosenPorts, isTerminal } = record;
  const sorted = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const traits = [namespace, workload.id, sorted, injection, ports, hasChosenPorts, isTerminal];
  return { record, workload, kind: JSON.stringify(traits) };
}

function pairingOf(policy: PolicyRecord, pod: PodView): Pairing | undefined {
  const match = matchPolicy(policy, pod.record);
  if (match === undefined) return undefined;
  const { good } = policy;
  const isSharing =
    good !== undefined &&
    pod.record.injection !== undefined &&
    isLive(pod.record) &&
    applies(match);
  const group = isSharing ? sharingGroup(good.compiled, policy.key, pod.workload.id) : undefined;
  return group === undefined ? { match } : { match, group };
}

function matchesOf(pairings: ReadonlyMap<string, Pairing>): readonly unknown[] {
  return [...pairings].map(([key, { match }]) => [key, match]);
}

function ownerKey({ namespace, owner }: PodRecord): string | undefined {
  return intermediateKey(namespace, owner);
}

function wasHeld(policy: PolicyRecord | undefined): string | undefined {
  return policy !== undefined && isHeld(policy) ? policy.uid : undefined;
}

/** Whether pods see no difference: neither in what they run nor in whether they are selected. */
function isSameForPods(before: PolicyRecord | undefined, after: PolicyRecord | undefined): boolean {
  if (before === undefined || after === undefined) return false;
  return (
    before.uid === after.uid &&
    before.good?.hash === after.good?.hash &&
    decidingDocument(before) === decidingDocument(after)
  );
}
