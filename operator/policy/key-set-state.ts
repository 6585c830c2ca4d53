// What became of fetching a key set. The last good keys are kept for ever; what failed since is said beside them.
import type { PublicKey } from '../../crds/key-set.ts';

export interface KeySetState {
  /** Undefined = never fetched. */
  readonly good: { readonly keys: readonly PublicKey[]; readonly fetchedAt: string } | undefined;
  /** Why the last attempt failed; undefined = it did not, or there was none yet. Never holds what was fetched. */
  readonly failure:
    | {
        /** `refused`: not asked, since the address may not be; `invalid`: what came is no key set. */
        readonly kind: 'refused' | 'unavailable' | 'invalid';
        readonly message: string;
      }
    | undefined;
}

export const NOT_FETCHED: KeySetState = { good: undefined, failure: undefined };
