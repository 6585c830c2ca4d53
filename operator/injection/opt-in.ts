// Whether a pod asks for a sidecar. The annotation beats the pod's label, which beats the namespace's label: the same
// order as in the conditions of the webhook's entries, which decide whether we are asked at all.
import { annotations } from '../../contract/names.ts';
import type { PodMetadata } from './pod.ts';

export type OptIn =
  /** `required`: better no pod than one without a sidecar. */
  | { readonly kind: 'enabled' | 'required' | 'disabled' | 'unsaid' }
  /** `where` names the field. */
  | { readonly kind: 'invalid'; readonly where: string; readonly given: string };

const KINDS = ['enabled', 'required', 'disabled'] as const;

export function optInOf(
  { annotations: written = {}, labels = {} }: PodMetadata,
  namespaceLabels: Readonly<Record<string, string>>,
): OptIn {
  const key = annotations.inject;
  const onPod = written[key] ?? labels[key] ?? '';
  // An empty value is as good as none.
  const given = onPod === '' ? (namespaceLabels[key] ?? '') : onPod;
  if (given === '') return { kind: 'unsaid' };
  const kind = KINDS.find((one) => one === given);
  if (kind !== undefined) return { kind };
  return { kind: 'invalid', where: whereOf(onPod !== '', written[key] !== undefined), given };
}

function whereOf(isOnPod: boolean, isAnnotation: boolean): string {
  const key = annotations.inject;
  if (!isOnPod) return `metadata.labels[${key}] of the namespace`;
  return isAnnotation ? `metadata.annotations[${key}]` : `metadata.labels[${key}]`;
}
