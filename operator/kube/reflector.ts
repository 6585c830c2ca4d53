// A local copy of a collection that is always on its way to the server's state. It promises: every change is told once,
// in order per object; a deletion missed while away is told with the last known object; nothing a handler or the server
// does ends it. It refuses to interpret versions: they are compared for equality only.
import type { Collection } from './collection.ts';
import { CollectionFollower, type FollowerContext } from './collection-follower.ts';
import { keyOf, type KubeObject, type Resource } from './object.ts';
import { Partition, PartitionedStore, type Change, type Store } from './object-store.ts';

export interface ReflectorOptions<Type extends KubeObject> {
  readonly resource: Resource;
  /** One stream each; absent: one stream of the whole cluster. Repeated names count once. */
  readonly namespaces?: readonly string[];
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly isMetadataOnly?: boolean;
  /** Keeps only what is read, for memory; must keep name, namespace, uid and resourceVersion. */
  readonly transform?: (object: Type) => Type;
}

/** `collections`: the client. The rest is shared by all reflectors of a process. */
export type ReflectorContext = FollowerContext;

/** Must return at once; what it throws is logged and counted, and the reflector goes on. */
export type ChangeHandler<Type extends KubeObject> = (change: Change<Type>) => void;

export class Reflector<Type extends KubeObject> implements AsyncDisposable {
  readonly store: Store<Type>;
  readonly resource: Resource;
  readonly #context: ReflectorContext;
  readonly #handlers = new Set<ChangeHandler<Type>>();
  readonly #followers: readonly CollectionFollower<Type>[];
  readonly #unlisted: Set<string>;
  readonly #synced = Promise.withResolvers<undefined>();
  readonly #end = new AbortController();
  #running: Promise<unknown> | undefined;

  constructor(context: ReflectorContext, options: ReflectorOptions<Type>) {
    const scopes = new Set(options.resource.isNamespaced ? (options.namespaces ?? ['']) : ['']);
    const partitions = new Map([...scopes].map((scope) => [scope, new Partition<Type>()]));
    this.#context = context;
    this.resource = options.resource;
    this.store = new PartitionedStore(partitions);
    this.#unlisted = new Set(scopes);
    this.#followers = [...partitions].map(
      ([scope, partition]) =>
        new CollectionFollower(context, {
          collection: collectionOf(options, scope),
          partition,
          transform: (object) => this.#shape(object, options.transform),
          onChange: (change) => {
            this.#tell(change);
          },
          onListed: () => {
            this.#listed(scope);
          },
        }),
    );
    context.metrics.count(options.resource.plural, () => this.store.size);
    if (scopes.size === 0) this.#synced.resolve(undefined);
  }

  /** What is held already is told to a late handler at once, as new. Disposing the answer ends it. */
  onChange(handler: ChangeHandler<Type>): Disposable {
    this.#handlers.add(handler);
    for (const after of this.store.list()) this.#tellOne(handler, { key: keyOf(after), after });
    return {
      [Symbol.dispose]: () => {
        this.#handlers.delete(handler);
      },
    };
  }

  /** Once; more calls do nothing. */
  start(): void {
    const { signal } = this.#end;
    this.#running ??= Promise.all(this.#followers.map((follower) => follower.run(signal)));
  }

  /** Every namespace has been listed once. */
  get hasSynced(): boolean {
    return this.#unlisted.size === 0;
  }

  /** Resolves when synced; rejects with the signal's reason. */
  async synced(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const aborted = Promise.withResolvers<never>();
    const abort = (): void => {
      aborted.reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
    };
    signal.addEventListener('abort', abort, { once: true });
    try {
      await Promise.race([this.#synced.promise, aborted.promise]);
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  /** Since the quietest stream last heard from the server. */
  get lastEventAgeMs(): number {
    return Math.max(0, ...this.#followers.map(({ silentForMs }) => silentForMs));
  }

  /** For liveness: false only when a restart of the process is the one thing that could help. */
  get isHealthy(): boolean {
    return this.#followers.every(({ isAlive }) => isAlive);
  }

  /** For readiness and people: why it is not synced or not up to date. */
  get problem(): string | undefined {
    return this.#followers.map(({ problem }) => problem).find((problem) => problem !== undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await this.#running;
  }

  #listed(scope: string): void {
    this.#unlisted.delete(scope);
    if (this.hasSynced) this.#synced.resolve(undefined);
  }

  /** An object that our own code cannot shape costs memory; without it we would miss what it says. */
  #shape(object: Type, transform: ((object: Type) => Type) | undefined): Type {
    if (transform === undefined) return object;
    try {
      return transform(object);
    } catch (error) {
      this.#failed(keyOf(object), error);
      return object;
    }
  }

  #tell(change: Change<Type>): void {
    for (const handler of this.#handlers) this.#tellOne(handler, change);
  }

  #tellOne(handler: ChangeHandler<Type>, change: Change<Type>): void {
    try {
      handler(change);
    } catch (error) {
      this.#failed(change.key, error);
    }
  }

  #failed(key: string, error: unknown): void {
    const { plural } = this.resource;
    this.#context.metrics.handlerFailed(plural);
    this.#context.log.error({ resource: plural, key, err: error }, 'handler failed');
  }
}

function collectionOf<Type extends KubeObject>(
  { resource, labelSelector, fieldSelector, isMetadataOnly }: ReflectorOptions<Type>,
  scope: string,
): Collection {
  return {
    resource,
    ...(scope !== '' && { namespace: scope }),
    ...(labelSelector !== undefined && { labelSelector }),
    ...(fieldSelector !== undefined && { fieldSelector }),
    ...(isMetadataOnly !== undefined && { isMetadataOnly }),
  };
}
