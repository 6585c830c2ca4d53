// The reflectors of everything that policies hang together with, feeding one world. Every replica has them: webhook,
// streams and status are all answered from here, and the API server is asked nothing else while it serves.
import type { KubeObject, Resource } from '../kube/object.ts';
import type { Change } from '../kube/object-store.ts';
import { Reflector, type ReflectorContext, type ReflectorOptions } from '../kube/reflector.ts';
import { policyResource } from '../policy-controllers/api-outlets.ts';
import type { Affected } from '../policy/affected.ts';
import type { World, WorldChange } from '../policy/world.ts';
import {
  jobResource,
  namespaceResource,
  podResource,
  replicaSetResource,
  serviceResource,
} from './resources.ts';
import { trimPod, trimToMetadata } from './trimmed-object.ts';

export interface ClusterWatchOptions {
  readonly context: ReflectorContext;
  readonly world: World;
  /** Empty = all. */
  readonly namespaces: readonly string[];
  /** Told of everything a change touches, at once. */
  readonly onAffected: (affected: Affected) => void;
}

/** Another reflector beside those of the world: a Secret, the replicas' reports. */
export interface ExtraWatch<Type extends KubeObject> {
  readonly options: ReflectorOptions<Type>;
  readonly onChange: (change: Change<Type>) => void;
}

type Watched = Pick<
  Reflector<KubeObject>,
  | 'resource'
  | 'start'
  | 'hasSynced'
  | 'synced'
  | 'isHealthy'
  | 'problem'
  | 'lastEventAgeMs'
  | typeof Symbol.asyncDispose
>;

export class ClusterWatch implements AsyncDisposable {
  readonly #options: ClusterWatchOptions;
  readonly #watched: Watched[] = [];

  constructor(options: ClusterWatchOptions) {
    this.#options = options;
    this.#feed('RateLimitPolicy', { resource: policyResource });
    this.#feed('Pod', { resource: podResource, transform: trimPod });
    this.#feed('Service', { resource: serviceResource });
    this.#feedMetadata('Namespace', namespaceResource);
    this.#feedMetadata('ReplicaSet', replicaSetResource);
    this.#feedMetadata('Job', jobResource);
  }

  /** Before `start`. */
  add<Type extends KubeObject>({ options, onChange }: ExtraWatch<Type>): void {
    const reflector = new Reflector<Type>(this.#options.context, options);
    reflector.onChange(onChange);
    this.#watched.push(reflector);
  }

  start(): void {
    for (const one of this.#watched) one.start();
  }

  get hasSynced(): boolean {
    return this.#watched.every(({ hasSynced }) => hasSynced);
  }

  async synced(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#watched.map((one) => one.synced(signal)));
  }

  /** For readiness: which caches are not filled, and why. */
  get problem(): string | undefined {
    const unsynced = this.#watched.filter(({ hasSynced }) => !hasSynced);
    if (unsynced.length === 0) return undefined;
    return unsynced
      .map(({ resource, problem }) => `${resource.plural}: ${problem ?? 'not listed yet'}`)
      .join('; ');
  }

  /** For liveness: what only a restart of the process can cure. */
  get deadlock(): string | undefined {
    const dead = this.#watched.filter(({ isHealthy }) => !isHealthy);
    if (dead.length === 0) return undefined;
    return `nothing heard of ${dead.map(({ resource }) => resource.plural).join(', ')}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#watched.map((one) => one[Symbol.asyncDispose]()));
  }

  #feed<Type extends KubeObject>(
    kind: WorldChange['kind'],
    options: Omit<ReflectorOptions<Type>, 'namespaces'>,
  ): void {
    const { namespaces, world, onAffected } = this.#options;
    this.add<Type>({
      options: { ...options, ...(namespaces.length === 0 ? {} : { namespaces }) },
      onChange: ({ key, after }) => {
        // The kind says which type of object the reflector brings.
        onAffected(world.apply({ kind, key, object: after } as WorldChange));
      },
    });
  }

  #feedMetadata(kind: WorldChange['kind'], resource: Resource): void {
    this.#feed(kind, { resource, isMetadataOnly: true, transform: trimToMetadata });
  }
}
