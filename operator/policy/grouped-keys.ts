// Keys by what they have in common, e.g. pods by namespace; an empty group is forgotten.

export class GroupedKeys {
  readonly #groups = new Map<string, Set<string>>();

  of(group: string): ReadonlySet<string> {
    return this.#groups.get(group) ?? NONE;
  }

  add(group: string, key: string): void {
    const keys = this.#groups.get(group);
    if (keys === undefined) this.#groups.set(group, new Set([key]));
    else keys.add(key);
  }

  remove(group: string, key: string): void {
    const keys = this.#groups.get(group);
    keys?.delete(key);
    if (keys?.size === 0) this.#groups.delete(group);
  }

  /** Moves `key` from one group to another; undefined = no group. */
  move(key: string, from: string | undefined, to: string | undefined): void {
    if (from === to) return;
    if (from !== undefined) this.remove(from, key);
    if (to !== undefined) this.add(to, key);
  }

  groups(): Iterable<string> {
    return this.#groups.keys();
  }
}

const NONE: ReadonlySet<string> = new Set();
