// How many pods share a bucket, as sidecars are told. A rollout of 1 000 pods would change the number 2 000 times,
// and each change is a push to all of them; so it is told when it has been quiet for a while, or at the latest when
// it is old. A sidecar needs it only while the store is away.

/** Longer than a pod of a rollout takes to follow the one before. */
export const QUIET_MS = 5_000;
/** A rollout that goes on for long is told about all the same. */
export const LATEST_MS = 30_000;

interface Count {
  readonly told: number;
  /** Undefined = nothing new to tell. */
  readonly change:
    { readonly size: number; readonly firstAt: number; readonly lastAt: number } | undefined;
}

export class ReplicaCounts {
  readonly #counts = new Map<string, Count>();
  #revision = 0;

  /** Rises when `told` may answer otherwise. */
  get revision(): number {
    return this.#revision;
  }

  /** What sidecars are told of a group; the first time, that is its size. */
  told(group: string, size: number): number {
    const known = this.#counts.get(group);
    if (known !== undefined) return known.told;
    if (size > 0) this.#counts.set(group, { told: size, change: undefined });
    return size;
  }

  /** Notes the size of a group at `nowMs`. */
  observe(group: string, size: number, nowMs: number): void {
    const known = this.#counts.get(group);
    if (known === undefined) return;
    if (size === 0) {
      this.#counts.delete(group);
      this.#revision += 1;
    } else if (size === known.told) this.#counts.set(group, { told: size, change: undefined });
    else if (size !== known.change?.size) {
      const firstAt = known.change?.firstAt ?? nowMs;
      this.#counts.set(group, { told: known.told, change: { size, firstAt, lastAt: nowMs } });
    }
  }

  /** Groups whose size is to be told now; from here on `told` answers the new one. */
  settle(nowMs: number): readonly string[] {
    const settled: string[] = [];
    for (const [group, { change }] of this.#counts) {
      if (change === undefined || dueAt(change) > nowMs) continue;
      this.#counts.set(group, { told: change.size, change: undefined });
      settled.push(group);
      this.#revision += 1;
    }
    return settled;
  }

  /** When `settle` will have something to say; undefined = not before the next change. */
  nextDueAt(): number | undefined {
    const due = [...this.#counts.values()].flatMap(({ change }) =>
      change === undefined ? [] : [dueAt(change)],
    );
    return due.length === 0 ? undefined : Math.min(...due);
  }
}

function dueAt({ firstAt, lastAt }: { readonly firstAt: number; readonly lastAt: number }): number {
  return Math.min(lastAt + QUIET_MS, firstAt + LATEST_MS);
}
