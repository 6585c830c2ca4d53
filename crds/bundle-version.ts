// The bundle of a workload and its version. Apart from the compiler, so that a sidecar that is handed compiled policies
// loads nothing of it.
import { BUNDLE_FORMAT } from '../contract/bundle.ts';
import type { Bundle, CompiledPolicy } from '../contract/bundle.ts';
import { hashOf, stableJson } from './content-hash.ts';

/** The bundle of a workload. Its version is a hash of its content: the same policies, the same version, anywhere. */
export function bundleOf(policies: readonly CompiledPolicy[]): Bundle {
  const sorted = policies.toSorted((a, b) => compareText(identityOf(a), identityOf(b)));
  return { format: BUNDLE_FORMAT, version: hashOf(stableJson(sorted)), policies: sorted };
}

function identityOf({ namespace, name, uid }: CompiledPolicy): string {
  return `${namespace}/${name}/${uid}`;
}

// By code unit, the same in every locale.
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
