// What a change of the world touches: keys to be looked at again, never more than what hangs together with it.

export interface Affected {
  /** Keys of policies whose status may read differently. */
  readonly policies: ReadonlySet<string>;
  /** Uids of pods whose bundle may be another one. */
  readonly pods: ReadonlySet<string>;
  /** Sharing groups whose number of pods changed; their bundles follow when that has settled. */
  readonly groups: ReadonlySet<string>;
}

/** Collects what one change touches. */
export class AffectedSet implements Affected {
  readonly policies: Set<string> = new Set<string>();
  readonly pods: Set<string> = new Set<string>();
  readonly groups: Set<string> = new Set<string>();

  addPolicies(keys: Iterable<string>): void {
    for (const key of keys) this.policies.add(key);
  }

  addPods(uids: Iterable<string>): void {
    for (const uid of uids) this.pods.add(uid);
  }
}
