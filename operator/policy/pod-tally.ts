// The pods of a policy, sorted by what their sidecars make of it: what conditions and counts are made from.
import type { PolicyRefusal } from '../../contract/stream.ts';
import { applies } from './policy-match.ts';
import type { ObservedPod, PolicyObservation } from './policy-observation.ts';
import type { SidecarReport } from './sidecar-report.ts';

export interface ReportingPod extends ObservedPod {
  readonly report: SidecarReport;
}

export interface RefusingPod {
  readonly pod: ObservedPod;
  readonly refusal: PolicyRefusal;
}

export interface UnablePod {
  readonly pod: ObservedPod;
  /** What the policy uses that the sidecar does not know. */
  readonly features: readonly string[];
}

export interface PodTally {
  /** Pods that asked for a sidecar, or asked for something we do not understand. */
  readonly matched: readonly ObservedPod[];
  /** Pods the selector names that never asked. */
  readonly outside: readonly ObservedPod[];
  readonly injected: readonly ObservedPod[];
  readonly bare: readonly ObservedPod[];
  /** Sidecars that ought to run it: those that are there, on pods it applies to. */
  readonly expected: readonly ObservedPod[];
  /** Of these, sidecars that run the newest generation. */
  readonly programmed: readonly ReportingPod[];
  readonly rejected: readonly RefusingPod[];
  readonly tooOld: readonly UnablePod[];
  readonly storeDown: readonly ObservedPod[];
  /** Rules that count a proxy's address as the client's, sorted. */
  readonly behindProxy: readonly string[];
}

export function tallyPods({ policy, pods }: PolicyObservation): PodTally {
  const { uid, generation } = policy;
  const matched = pods.filter(({ wish }) => wish.kind !== 'none');
  const injected = matched.filter(({ isInjected }) => isInjected);
  // A pod that is not running yet has a sidecar when that has spoken.
  const expected = injected.filter(
    ({ isRunning, report, match }) => applies(match) && (isRunning || report !== undefined),
  );
  const reporting = expected.flatMap(reportingPod);
  const prefix = `${policy.namespace}/${policy.name}/`;
  return {
    matched,
    outside: pods.filter(({ wish }) => wish.kind === 'none'),
    injected,
    bare: matched.filter(({ isInjected }) => !isInjected),
    expected,
    programmed: reporting.filter(({ report }) => report.generations.get(uid) === generation),
    rejected: reporting.flatMap((pod) => refusing(pod, policy)),
    tooOld: reporting.flatMap((pod) => unable(pod, policy)),
    storeDown: reporting.filter(({ report }) => report.store === 'down'),
    behindProxy: [...new Set(reporting.flatMap(({ report }) => report.clientIpIsProxy))]
      .filter((rule) => rule.startsWith(prefix))
      .toSorted(),
  };
}

function reportingPod(pod: ObservedPod): ReportingPod[] {
  const { report } = pod;
  return report === undefined ? [] : [{ ...pod, report }];
}

function refusing(
  pod: ReportingPod,
  { uid, generation }: { readonly uid: string; readonly generation: number },
): RefusingPod[] {
  const refusal = pod.report.refusals.find(
    (one) => one.uid === uid && one.generation === generation,
  );
  return refusal === undefined ? [] : [{ pod, refusal }];
}

function unable(
  pod: ReportingPod,
  { uid, generation }: { readonly uid: string; readonly generation: number },
): UnablePod[] {
  const found = pod.report.tooOld.find((one) => one.uid === uid && one.generation === generation);
  return found === undefined ? [] : [{ pod, features: found.features }];
}
