// Which pods a policy is about, and which ports of them: a policy names ports as the author of the pod template wrote
// them, and in takeover mode the sidecar holds those names now.
import type { CompiledPolicy } from '../../contract/bundle.ts';
import { matchesLabels } from '../../crds/label-match.ts';
import type { RateLimitPolicy } from '../../crds/policy.ts';
import type { PodRecord } from './pod-record.ts';
import type { PolicyRecord } from './policy-record.ts';

export interface PolicyMatch {
  /** Container ports of the app it is restricted to, ascending; absent = all. */
  readonly ports?: readonly number[];
  /** Names and numbers of `spec.ports` that the sidecar of this pod does not stand before. */
  readonly missing: readonly (string | number)[];
}

/** The document that decides about pods: that of the version in force, else the newest one that is valid in form. */
export function decidingDocument({ good, document }: PolicyRecord): RateLimitPolicy | undefined {
  return good?.document ?? document;
}

/** Undefined when the policy does not select the pod. */
export function matchPolicy(policy: PolicyRecord, pod: PodRecord): PolicyMatch | undefined {
  const document = decidingDocument(policy);
  if (document === undefined || policy.namespace !== pod.namespace) return undefined;
  const { selector, ports } = document.spec;
  if (!matchesLabels(selector, pod.labels)) return undefined;
  return ports === undefined ? { missing: [] } : resolvePorts(ports, pod);
}

/** Whether the sidecar of the pod is to run the policy. */
export function applies({ ports }: PolicyMatch): boolean {
  return ports === undefined || ports.length > 0;
}

function resolvePorts(
  wanted: readonly (string | number)[],
  { injection }: PodRecord,
): PolicyMatch & { readonly ports: readonly number[] } {
  const taken = injection?.ports ?? [];
  const found = new Set<number>();
  const missing: (string | number)[] = [];
  for (const one of wanted) {
    const ports = taken.filter(({ name, port }) => one === name || one === port);
    if (ports.length === 0) missing.push(one);
    for (const { port } of ports) found.add(port);
  }
  return { ports: [...found].toSorted((a, b) => a - b), missing };
}

/** Pods that share a bucket, by this key; undefined where each pod has its own. */
export function sharingGroup(
  { scope }: Pick<CompiledPolicy, 'scope'>,
  policyKey: string,
  workload: string,
): string | undefined {
  switch (scope) {
    case 'Policy':
      return `${policyKey}|`;
    case 'Workload':
      return `${policyKey}|${workload}`;
    case 'Pod':
      return undefined;
  }
}
