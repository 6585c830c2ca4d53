// Everything that the status of one policy is planned from, gathered in one value: the plan asks nobody anything.
import assert from 'node:assert/strict';
import type { Conflict } from '../../crds/conflicts.ts';
import { bypassesOf, type Bypass } from './bypass.ts';
import { findingsOf, type BypassFinding, type PodBypasses } from './bypass-finding.ts';
import type { KeySetState } from './key-set-state.ts';
import { wishOf, type Wish } from './opt-in.ts';
import { isLive } from './pod-record.ts';
import { applies, type PolicyMatch } from './policy-match.ts';
import type { PolicyRecord } from './policy-record.ts';
import type { ServiceRecord } from './service-record.ts';
import type { ReportLookup, SidecarReport } from './sidecar-report.ts';
import type { StoreState } from './store-settings.ts';
import type { PodView, World } from './world.ts';

export interface ObservedPod {
  readonly name: string;
  readonly uid: string;
  readonly wish: Wish;
  readonly isInjected: boolean;
  readonly isRunning: boolean;
  readonly match: PolicyMatch;
  readonly report: SidecarReport | undefined;
}

export interface PolicyObservation {
  readonly policy: PolicyRecord;
  /** Of the newest version's address; undefined = it names none. */
  readonly keySet: KeySetState | undefined;
  /** Live pods that it selects, by name. */
  readonly pods: readonly ObservedPod[];
  readonly conflicts: readonly Conflict[];
  readonly bypasses: readonly BypassFinding[];
  /** Pods that a bypass leads to. */
  readonly bypassable: number;
  readonly store: StoreState;
  /** Sidecars are still coming back after this operator started: silence says nothing. */
  readonly isSettling: boolean;
}

export interface Surroundings {
  readonly reportOf: ReportLookup;
  readonly keySetOf: (uri: string) => KeySetState;
  readonly store: StoreState;
  readonly isSettling: boolean;
}

/** Undefined for a policy that is gone. */
export function observePolicy(
  world: World,
  key: string,
  surroundings: Surroundings,
): PolicyObservation | undefined {
  const policy = world.policy(key);
  if (policy === undefined) return undefined;
  const views = world
    .podsOf(key)
    .filter(({ record }) => isLive(record))
    .toSorted((a, b) => (a.record.name < b.record.name ? -1 : 1));
  const bypasses = findingsOf(bypassesAround(world, key, views));
  const uri = policy.keySetUri;
  return {
    policy,
    keySet: uri === undefined ? undefined : surroundings.keySetOf(uri),
    pods: views.map((view) => observePod(world, key, view, surroundings)),
    conflicts: conflictsAround(world, policy, views),
    bypasses,
    bypassable: new Set(bypasses.flatMap(({ pods }) => pods)).size,
    store: surroundings.store,
    isSettling: surroundings.isSettling,
  };
}

function observePod(
  world: World,
  key: string,
  { record }: PodView,
  { reportOf }: Surroundings,
): ObservedPod {
  const match = matchOf(world, key, record.uid);
  const { name, uid, isRunning } = record;
  const wish = wishOf(record, world.namespaceLabels(record.namespace));
  const isInjected = record.injection !== undefined;
  return { name, uid, wish, isInjected, isRunning, match, report: reportOf(uid) };
}

/** Of a pod that the policy selects. */
function matchOf(world: World, key: string, uid: string): PolicyMatch {
  const pairing = world.pairingsOf(uid).get(key);
  assert(pairing !== undefined, 'pods and policies know each other both ways round');
  return pairing.match;
}

/** Ways around, of the pods the policy applies to; they are the same for pods of one kind. */
function bypassesAround(world: World, key: string, pods: readonly PodView[]): PodBypasses[] {
  const byKind = new Map<string, readonly Bypass[]>();
  return pods.flatMap(({ record, kind }) => {
    const match = matchOf(world, key, record.uid);
    if (!applies(match)) return [];
    const services = (): readonly ServiceRecord[] =>
      world.servicesFor(record.namespace, record.labels);
    const bypasses = byKind.get(kind) ?? bypassesOf(record, services());
    byKind.set(kind, bypasses);
    return bypasses.length === 0 ? [] : [{ pod: record, match, bypasses }];
  });
}

/** Conflicts that name this policy, among the policies of its pods; pods of one kind are looked at once. */
function conflictsAround(
  world: World,
  policy: PolicyRecord,
  pods: readonly PodView[],
): readonly Conflict[] {
  const name = `${policy.namespace}/${policy.name}/`;
  const seen = new Set<string>();
  const found = new Map<string, Conflict>();
  for (const pod of pods) {
    if (seen.has(pod.kind)) continue;
    seen.add(pod.kind);
    for (const conflict of world.conflicts.of(pod)) {
      if (conflict.rules.some((rule) => rule.startsWith(name))) {
        found.set(conflict.rules.join(' '), conflict);
      }
    }
  }
  return [...found.values()];
}
