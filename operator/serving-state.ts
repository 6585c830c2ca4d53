// What every replica holds and answers from: the world, what sidecars are told of it, how to reach the store, key sets.
// It passes each change on to whoever has to look again, and writes nothing.
import type { SidecarSettings } from '../contract/stream.ts';
import { createCelCompiler } from '../crds/cel-environment.ts';
import { secretResource } from './certificates/authority-secret.ts';
import type { Clock, Random } from './clock.ts';
import type { KubeObject } from './kube/object.ts';
import type { ReflectorContext } from './kube/reflector.ts';
import type { OperatorConfig } from './operator-settings.ts';
import type { Affected } from './policy/affected.ts';
import type { Surroundings } from './policy/policy-observation.ts';
import { World } from './policy/world.ts';
import { BundleProvision } from './policy-controllers/bundle-provision.ts';
import { openKeySetFetch } from './policy-controllers/key-set-fetch.ts';
import { KeySets } from './policy-controllers/key-sets.ts';
import { StoreSecret, type SecretObject } from './policy-controllers/store-secret.ts';
import { decodeReports } from './reports/report-codec.ts';
import { ReportDirectory } from './reports/report-directory.ts';
import {
  configMapResource,
  REPORTS_KEY,
  REPORTS_LABEL,
  type ConfigMap,
} from './reports/report-publisher.ts';
import { SidecarRegistry } from './stream/sidecar-registry.ts';
import { policiesBetween } from './stream/state-difference.ts';
import { ClusterWatch } from './watching/cluster-watch.ts';

export interface ServingStateOptions {
  readonly config: OperatorConfig;
  readonly reflectors: ReflectorContext;
  readonly clock: Clock;
  readonly random: Random;
  /** Name of this replica's own reports: they are known first-hand. */
  readonly ownReports: string;
}

export class ServingState implements AsyncDisposable {
  readonly world: World = new World(createCelCompiler());
  readonly watch: ClusterWatch;
  readonly provision: BundleProvision;
  readonly registry: SidecarRegistry;
  readonly #options: ServingStateOptions;
  readonly #directory: ReportDirectory;
  readonly #store: StoreSecret;
  readonly #keySets: KeySets;
  readonly #listeners = new Set<(policies: Iterable<string> | 'all') => void>();

  constructor(options: ServingStateOptions) {
    const { config, reflectors, clock, random } = options;
    this.#options = options;
    this.registry = new SidecarRegistry(() => clock.nowMs());
    this.#directory = new ReportDirectory((uid) => this.registry.get(uid));
    this.watch = new ClusterWatch({
      context: reflectors,
      world: this.world,
      namespaces: config.watchNamespaces,
      onAffected: (affected) => {
        this.#onAffected(affected);
      },
    });
    this.provision = new BundleProvision({
      world: this.world,
      clock,
      isSynced: () => this.watch.hasSynced,
      settings: settingsFrom(config, undefined),
    });
    this.#store = this.#openStore(config);
    this.#keySets = new KeySets({
      fetch: openKeySetFetch({
        allowedHosts: config.jwksHosts,
      }),
      clock,
      random,
      onKeys: (key, object) => {
        this.#onAffected(this.world.apply({ kind: 'KeySet', key, object }));
      },
      onState: () => {
        this.#tell('all');
      },
    });
    this.#followReports();
    this.registry.onChange((uid, before, after) => {
      this.#onReport(uid, policiesBetween(before, after));
    });
  }

  /** Resolves when every cache is filled; from then on sidecars are told. */
  async start(signal: AbortSignal): Promise<void> {
    this.watch.start();
    await this.watch.synced(signal);
    this.#store.synced();
    this.#keySets.keep(this.world.keySetUris());
    this.provision.changed('all');
    this.#tell('all');
  }

  /** `listener` is told of policies whose status may read differently. */
  onPolicies(listener: (policies: Iterable<string> | 'all') => void): Disposable {
    this.#listeners.add(listener);
    return {
      [Symbol.dispose]: () => {
        this.#listeners.delete(listener);
      },
    };
  }

  surroundings(): Omit<Surroundings, 'isSettling'> {
    return {
      reportOf: (uid) => this.#directory.reportOf(uid),
      keySetOf: (uri) => this.#keySets.stateOf(uri),
      store: this.#store.state,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.provision[Symbol.dispose]();
    await this.#keySets[Symbol.asyncDispose]();
    await this.watch[Symbol.asyncDispose]();
  }

  #openStore({ namespace, storeSecret }: OperatorConfig): StoreSecret {
    const store = new StoreSecret({
      name: storeSecret === undefined ? undefined : `${namespace}/${storeSecret}`,
      onChange: () => {
        this.provision.configure({ settings: settingsFrom(this.#options.config, store) });
        this.#tell('all');
      },
    });
    if (storeSecret !== undefined) {
      this.watch.add<SecretObject>({
        options: {
          resource: secretResource,
          namespaces: [namespace],
          fieldSelector: `metadata.name=${storeSecret}`,
        },
        onChange: ({ after }) => {
          store.apply(after);
        },
      });
    }
    return store;
  }

  #followReports(): void {
    const { config, ownReports } = this.#options;
    this.watch.add<ConfigMap>({
      options: {
        resource: configMapResource,
        namespaces: [config.namespace],
        labelSelector: `${REPORTS_LABEL}=true`,
      },
      onChange: ({ before, after }) => {
        const name = nameOf(after ?? before);
        if (name === ownReports) return;
        const text = after?.binaryData?.[REPORTS_KEY];
        const reports = text === undefined ? undefined : decodeReports(Buffer.from(text, 'base64'));
        const pods = this.#directory.setPeer(name, reports);
        this.#tell(pods.flatMap((uid) => [...this.world.pairingsOf(uid).keys()]));
      },
    });
  }

  #onAffected(affected: Affected): void {
    this.provision.changed(affected);
    if (affected.policies.size === 0) return;
    if (this.watch.hasSynced) this.#keySets.keep(this.world.keySetUris());
    this.#tell(affected.policies);
  }

  #onReport(podUid: string, changed: ReadonlySet<string> | 'all'): void {
    const keys = [...this.world.pairingsOf(podUid).keys()];
    this.#tell(
      changed === 'all'
        ? keys
        : keys.filter((key) => changed.has(this.world.policy(key)?.uid ?? '')),
    );
  }

  #tell(policies: Iterable<string> | 'all'): void {
    const keys = policies === 'all' ? 'all' : [...policies];
    if (keys.length === 0) return;
    for (const listener of this.#listeners) listener(keys);
  }
}

function settingsFrom(
  { deadline }: OperatorConfig,
  store: StoreSecret | undefined,
): SidecarSettings {
  return {
    ...(store?.settings === undefined ? {} : { store: store.settings }),
    ...(deadline === undefined ? {} : { deadlineMs: deadline }),
  };
}

function nameOf(object: KubeObject | undefined): string {
  return object?.metadata.name ?? '';
}
