// Whether a pod asked for a sidecar, judged by what the index keeps of it. One that has a sidecar did ask.
import { ADMISSION_LABEL, annotations } from '../../contract/names.ts';
import { optInOf } from '../injection/opt-in.ts';
import type { PodRecord } from './pod-record.ts';

export type Wish =
  | { readonly kind: 'asked' }
  /** A value that is none of ours asks for something, and whoever wrote it is told. */
  | { readonly kind: 'invalid'; readonly where: string; readonly given: string }
  | { readonly kind: 'none' };

export type Labels = Readonly<Record<string, string>>;

export function wishOf(
  { injection, inject, labels }: Pick<PodRecord, 'injection' | 'inject' | 'labels'>,
  namespaceLabels: Labels,
): Wish {
  if (injection !== undefined) return { kind: 'asked' };
  // The webhook never sees pods of such a namespace, and nothing they say is meant for us.
  if (namespaceLabels[ADMISSION_LABEL] === 'disabled') return { kind: 'none' };
  const written = inject === undefined ? {} : { [annotations.inject]: inject };
  const optIn = optInOf({ annotations: written, labels }, namespaceLabels);
  switch (optIn.kind) {
    case 'invalid':
      return optIn;
    case 'enabled':
    case 'required':
      return { kind: 'asked' };
    case 'disabled':
    case 'unsaid':
      return { kind: 'none' };
  }
}
