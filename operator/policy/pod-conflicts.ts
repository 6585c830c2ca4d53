// Conflicts among the policies of a pod. Every policy of a pod asks for them, each time its status is looked at, so they
// are found once for each kind of pod and each state of the world.
import { ConflictSearch, type Conflict } from '../../crds/conflicts.ts';
import type { PodView, World } from './world.ts';

export class PodConflicts {
  readonly #world: Pick<World, 'revision' | 'pairingsOf' | 'policy'>;
  readonly #search = new ConflictSearch();
  /** Of the world's state at `#revision`. */
  readonly #byKind = new Map<string, readonly Conflict[]>();
  #revision = 0;

  constructor(world: Pick<World, 'revision' | 'pairingsOf' | 'policy'>) {
    this.#world = world;
  }

  of({ record, kind }: PodView): readonly Conflict[] {
    const { revision } = this.#world;
    if (revision !== this.#revision) this.#byKind.clear();
    this.#revision = revision;
    const known = this.#byKind.get(kind);
    if (known !== undefined) return known;
    const keys = [...this.#world.pairingsOf(record.uid).keys()].toSorted();
    const found = this.#search.among(
      keys.flatMap((key) => this.#world.policy(key)?.good?.compiled ?? []),
    );
    this.#byKind.set(kind, found);
    return found;
  }
}
