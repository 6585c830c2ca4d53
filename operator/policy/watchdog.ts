// Pods that asked for a sidecar and have none: the webhook was away when they were made, or could not help them. They
// are told on whoever owns them; where it was asked for, some are evicted so that they come back with one.
import { annotations } from '../../contract/names.ts';
import type { ObjectReference } from '../kube/object.ts';
import { wishOf } from './opt-in.ts';
import { isLive, type PodRecord } from './pod-record.ts';
import type { EventPlan } from './policy-event.ts';
import { bounded, counted, listed } from './wording.ts';
import type { PodView, World } from './world.ts';

export interface UninjectedPod {
  readonly pod: PodRecord;
  readonly owner: ObjectReference;
  /** A value of the annotation or label that is none of ours; undefined = the value was in order. */
  readonly invalid: { readonly where: string; readonly given: string } | undefined;
}

/** All of them, by name. `isExcluded`: namespaces whose pods the webhook never sees. */
export function uninjectedPods(
  world: World,
  isExcluded: (namespace: string) => boolean,
): readonly UninjectedPod[] {
  return [...world.pods()]
    .flatMap((view) => (isExcluded(view.record.namespace) ? [] : uninjected(world, view)))
    .toSorted((a, b) => (a.pod.key < b.pod.key ? -1 : 1));
}

function uninjected(world: World, { record, workload }: PodView): UninjectedPod[] {
  if (!isLive(record) || record.injection !== undefined) return [];
  const wish = wishOf(record, world.namespaceLabels(record.namespace));
  if (wish.kind === 'none') return [];
  const invalid = wish.kind === 'invalid' ? wish : undefined;
  return [{ pod: record, owner: workload.reference, invalid }];
}

/** One Event for each owner. */
export function uninjectedEvents(found: readonly UninjectedPod[]): readonly EventPlan[] {
  const byOwner = Map.groupBy(found, ({ owner, pod }) =>
    [pod.namespace, owner.kind, owner.name].join('/'),
  );
  return [...byOwner.values()].flatMap((pods) =>
    pods.slice(0, 1).map((first) => uninjectedEvent(first, pods)),
  );
}

function uninjectedEvent(first: UninjectedPod, pods: readonly UninjectedPod[]): EventPlan {
  const names = listed(pods.map(({ pod }) => pod.name));
  const verb = pods.length === 1 ? 'asks' : 'ask';
  const subject = `${counted(pods.length, 'pod')} (${names}) ${verb} for a sidecar and ${pods.length === 1 ? 'has' : 'have'} none, so no policy limits them`;
  return {
    regarding: first.owner,
    type: 'Warning',
    reason: 'NotInjected',
    action: 'Inject',
    note: bounded(`${subject}: ${remedyFor(first)}.`),
  };
}

function remedyFor({ pod, owner, invalid }: UninjectedPod): string {
  if (invalid !== undefined) {
    return `${invalid.where} is ${JSON.stringify(invalid.given)}, write enabled, required or disabled`;
  }
  if (pod.isHostNetwork)
    return 'a pod on the network of its host cannot have one, remove hostNetwork';
  if (owner.kind === 'Pod') return 'delete and create it again';
  const restart = `kubectl -n ${pod.namespace} rollout restart ${owner.kind.toLowerCase()}/${owner.name}`;
  return `${restart}, or use ${annotations.inject}: required to have none without`;
}

/** A pod must have been so for a while: its ReplicaSet and its own events are still on their way before. */
export const EVICT_AFTER_MS = 60_000;
/** A workload whose new pods come bare again is not helped by more of it. */
export const EVICT_AGAIN_AFTER_MS = 600_000;
/** In a minute, over the whole cluster: what a rollout would take. */
export const EVICTIONS_PER_MINUTE = 5;

export interface EvictionHistory {
  /** Milliseconds since 1970, newest last. */
  readonly at: readonly number[];
  /** By `namespace/kind/name` of the owner. */
  readonly lastOfOwner: ReadonlyMap<string, number>;
}

/** Pods to evict now: never one without owner, one of a workload at a time. */
export function planEvictions(
  found: readonly UninjectedPod[],
  history: EvictionHistory,
  nowMs: number,
): readonly UninjectedPod[] {
  const recent = history.at.filter((at) => at > nowMs - 60_000).length;
  const chosen = new Map<string, UninjectedPod>();
  for (const one of found) {
    if (recent + chosen.size >= EVICTIONS_PER_MINUTE) break;
    const owner = evictionKey(one);
    const last = history.lastOfOwner.get(owner) ?? -Infinity;
    const isRested = nowMs - last >= EVICT_AGAIN_AFTER_MS;
    if (isEvictable(one, nowMs) && isRested && !chosen.has(owner)) chosen.set(owner, one);
  }
  return [...chosen.values()];
}

export function evictionKey({ pod, owner }: UninjectedPod): string {
  return [pod.namespace, owner.kind, owner.name].join('/');
}

function isEvictable({ pod, owner, invalid }: UninjectedPod, nowMs: number): boolean {
  const age = nowMs - Date.parse(pod.createdAt);
  const canBeHelped = invalid === undefined && !pod.isHostNetwork;
  return owner.kind !== 'Pod' && canBeHelped && age >= EVICT_AFTER_MS;
}
