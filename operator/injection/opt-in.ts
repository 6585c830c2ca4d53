// Whether a pod asks for a sidecar. The annotation beats the pod's label, which beats the namespace's label.
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
  const said = [
    { where: `metadata.annotations[${key}]`, given: written[key] },
    { where: `metadata.labels[${key}]`, given: labels[key] },
    { where: `metadata.labels[${key}] of the namespace`, given: namespaceLabels[key] },
  ].find(({ given }) => given !== undefined && given !== '');
  if (said?.given === undefined) return { kind: 'unsaid' };
  const { where, given } = said;
  const kind = KINDS.find((one) => one === given);
  return kind === undefined ? { kind: 'invalid', where, given } : { kind };
}
