// What sidecars are told, for the stream server: bundles from the world, settings of the store, the CA to trust. A
// change of the world is passed on at once; the mere number of pods when it has settled.
import type { SidecarSettings } from '../../contract/stream.ts';
import type { Affected } from '../policy/affected.ts';
import { PodBundles, type PodBundle } from '../policy/pod-bundle.ts';
import type { PodRecord } from '../policy/pod-record.ts';
import { ReplicaCounts } from '../policy/replica-counts.ts';
import type { World } from '../policy/world.ts';
import type { Clock } from '../clock.ts';
import type {
  BundleProvider,
  PodDirectory,
  PodIdentity,
  Provision,
} from '../stream/bundle-provider.ts';

export interface BundleProvisionOptions {
  readonly world: World;
  readonly clock: Clock;
  /** False until every cache is: a half-read world would take limits back. */
  readonly isSynced: () => boolean;
  readonly settings: SidecarSettings;
  /** PEM; absent = sidecars keep what they trust. */
  readonly ca?: string;
}

type Listener = (pods: ReadonlySet<string> | 'all') => void;

export class BundleProvision implements BundleProvider, PodDirectory, Disposable {
  readonly #options: BundleProvisionOptions;
  readonly #bundles: PodBundles;
  readonly #counts = new ReplicaCounts();
  readonly #listeners = new Set<Listener>();
  #settings: SidecarSettings;
  #ca: string | undefined;
  #timer: Disposable | undefined;

  constructor(options: BundleProvisionOptions) {
    this.#options = options;
    const { world } = options;
    const counts = this.#counts;
    this.#bundles = new PodBundles(world, {
      get revision() {
        return counts.revision;
      },
      sizeOf: (group) => counts.told(group, world.groupSize(group)),
    });
    this.#settings = options.settings;
    this.#ca = options.ca;
  }

  bundleFor(podUid: string): Provision | undefined {
    if (!this.#options.isSynced()) return undefined;
    const made = this.#bundles.bundleFor(podUid);
    if (made === undefined) return undefined;
    const ca = this.#ca === undefined ? {} : { ca: this.#ca };
    return { ...made, settings: this.#settings, ...ca };
  }

  /** The rules a pod would start with; undefined while the caches are not filled. */
  bundleForNew(pod: PodRecord, workload: string): PodBundle | undefined {
    return this.#options.isSynced() ? this.#bundles.bundleForNew(pod, workload) : undefined;
  }

  find(podUid: string): PodIdentity | undefined {
    const pod = this.#options.world.pod(podUid)?.record;
    if (pod?.injection === undefined) return undefined;
    const { namespace, name, isTerminal } = pod;
    return { namespace, name, isTerminal };
  }

  onChange(listener: Listener): Disposable {
    this.#listeners.add(listener);
    return {
      [Symbol.dispose]: () => {
        this.#listeners.delete(listener);
      },
    };
  }

  /** To be called with what every change of the world answered, and when the caches have synced. */
  changed(affected: Affected | 'all'): void {
    if (affected === 'all') {
      this.#tell('all');
      return;
    }
    const { world, clock } = this.#options;
    for (const group of affected.groups) {
      this.#counts.observe(group, world.groupSize(group), clock.nowMs());
    }
    if (affected.groups.size > 0) this.#arm();
    if (affected.pods.size > 0) this.#tell(affected.pods);
  }

  /** The store's settings or the CA are others now. */
  configure(change: { readonly settings?: SidecarSettings; readonly ca?: string }): void {
    this.#settings = change.settings ?? this.#settings;
    this.#ca = change.ca ?? this.#ca;
    this.#tell('all');
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
  }

  #arm(): void {
    const { clock } = this.#options;
    this.#timer?.[Symbol.dispose]();
    const dueMs = this.#counts.nextDueAt();
    if (dueMs === undefined) return;
    this.#timer = clock.after(Math.max(0, dueMs - clock.nowMs()), () => {
      this.#settle();
    });
  }

  #settle(): void {
    const { world, clock } = this.#options;
    const settled = this.#counts.settle(clock.nowMs());
    const pods = new Set(settled.flatMap((group) => [...world.podsInGroup(group)]));
    this.#arm();
    if (pods.size > 0) this.#tell(pods);
  }

  #tell(pods: ReadonlySet<string> | 'all'): void {
    for (const listener of this.#listeners) listener(pods);
  }
}
