// The objects a reflector knows, and what a new list changes about them. One partition per stream, so that a relist of
// one namespace deletes nothing of another.
import { isDeepStrictEqual } from 'node:util';
import { keyOf, type KubeObject } from './object.ts';

/** What handlers are told. Both: changed; only `after`: new; only `before`: gone, with the last that was known of it. */
export interface Change<Type extends KubeObject> {
  /** See `keyOf`. */
  readonly key: string;
  readonly before?: Type;
  readonly after?: Type;
}

/** What readers may do. */
export interface Store<Type extends KubeObject> {
  get(key: string): Type | undefined;
  list(): IterableIterator<Type>;
  readonly size: number;
}

export class Partition<Type extends KubeObject> implements Store<Type> {
  readonly #objects = new Map<string, Type>();

  get(key: string): Type | undefined {
    return this.#objects.get(key);
  }

  list(): IterableIterator<Type> {
    return this.#objects.values();
  }

  get size(): number {
    return this.#objects.size;
  }

  /** Makes the store what was listed, and yields the difference, deletions first. Each is in force when yielded. */
  *replace(listed: readonly Type[]): Generator<Change<Type>, void, undefined> {
    const known = new Set(listed.map(keyOf));
    for (const [key, before] of this.#objects) {
      if (known.has(key)) continue;
      this.#objects.delete(key);
      yield { key, before };
    }
    for (const object of listed) {
      const change = this.set(object) ?? this.#reshape(object);
      if (change !== undefined) yield change;
    }
  }

  /** `undefined` when that version is known already. */
  set(after: Type): Change<Type> | undefined {
    const key = keyOf(after);
    const before = this.#objects.get(key);
    if (before !== undefined && isSameVersion(before, after)) return undefined;
    this.#objects.set(key, after);
    return before === undefined ? { key, after } : { key, before, after };
  }

  /**
   * The same version may be served in another shape once its CustomResourceDefinition has gained a field: a watch from
   * before the change brought it without.
   */
  #reshape(after: Type): Change<Type> | undefined {
    const key = keyOf(after);
    const before = this.#objects.get(key);
    if (before === undefined || isDeepStrictEqual(before, after)) return undefined;
    this.#objects.set(key, after);
    return { key, before, after };
  }

  /** `last` is what the server sent of it. `undefined` when it was not known: nobody heard of it, nobody misses it. */
  delete(last: Type): Change<Type> | undefined {
    const key = keyOf(last);
    return this.#objects.delete(key) ? { key, before: last } : undefined;
  }
}

/** One store to readers. */
export class PartitionedStore<Type extends KubeObject> implements Store<Type> {
  readonly #partitions: ReadonlyMap<string, Partition<Type>>;

  /** Keyed by namespace; the one of the whole cluster by ''. */
  constructor(partitions: ReadonlyMap<string, Partition<Type>>) {
    this.#partitions = partitions;
  }

  get(key: string): Type | undefined {
    const whole = this.#partitions.get('');
    if (whole !== undefined) return whole.get(key);
    return this.#partitions.get(key.slice(0, Math.max(key.indexOf('/'), 0)))?.get(key);
  }

  *list(): Generator<Type, undefined, undefined> {
    for (const partition of this.#partitions.values()) yield* partition.list();
    return undefined;
  }

  get size(): number {
    return this.#partitions.values().reduce((sum, { size }) => sum + size, 0);
  }
}

/** The version alone could repeat when an object is made anew in a restored etcd. */
function isSameVersion({ metadata: one }: KubeObject, { metadata: other }: KubeObject): boolean {
  return one.resourceVersion === other.resourceVersion && one.uid === other.uid;
}
