// Which policy is about which pod, both ways round, and how many pods share each bucket. Kept up to date pair by pair.
import { GroupedKeys } from './grouped-keys.ts';
import type { PolicyMatch } from './policy-match.ts';

export interface Pairing {
  readonly match: PolicyMatch;
  /** Group whose buckets this pod shares, while it is live and has a sidecar that runs the policy. */
  readonly group?: string;
}

export class MatchIndex {
  readonly #byPod = new Map<string, Map<string, Pairing>>();
  readonly #byPolicy = new GroupedKeys();
  readonly #groups = new GroupedKeys();

  /** By policy key. */
  ofPod(uid: string): ReadonlyMap<string, Pairing> {
    return this.#byPod.get(uid) ?? NO_PAIRINGS;
  }

  /** Uids. */
  podsOf(policyKey: string): ReadonlySet<string> {
    return this.#byPolicy.of(policyKey);
  }

  /** Pods that share the buckets of a group. */
  sizeOf(group: string): number {
    return this.#groups.of(group).size;
  }

  /** Sets what one policy is to one pod; undefined = nothing. Answers the groups that gained or lost it. */
  set(policyKey: string, uid: string, pairing: Pairing | undefined): readonly string[] {
    const before = this.#byPod.get(uid)?.get(policyKey);
    this.#store(policyKey, uid, pairing);
    const from = before?.group;
    const to = pairing?.group;
    this.#groups.move(uid, from, to);
    return from === to ? [] : [from, to].filter((group) => group !== undefined);
  }

  #store(policyKey: string, uid: string, pairing: Pairing | undefined): void {
    const pairings = this.#byPod.get(uid) ?? new Map<string, Pairing>();
    if (pairing === undefined) {
      pairings.delete(policyKey);
      this.#byPolicy.remove(policyKey, uid);
    } else {
      pairings.set(policyKey, pairing);
      this.#byPolicy.add(policyKey, uid);
    }
    if (pairings.size === 0) this.#byPod.delete(uid);
    else this.#byPod.set(uid, pairings);
  }
}

const NO_PAIRINGS: ReadonlyMap<string, Pairing> = new Map();
