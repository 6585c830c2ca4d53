// What one replica of several does, as long as it leads: status and Events of policies, the watchdog, the CA in the
// webhook's configuration. Everything here starts from what the world is, so a new leader begins with all of it.
import prometheus, { type Registry } from 'prom-client';
import { keepCaBundle } from './certificates/ca-bundle.ts';
import type { CertificateSource } from './certificates/certificate-source.ts';
import type { Clock } from './clock.ts';
import type { KubeApi } from './kube/api.ts';
import type { Log } from './log.ts';
import type { OperatorConfig } from './operator-settings.ts';
import { openEvictor, openStatusWriter } from './policy-controllers/api-outlets.ts';
import type { EventSink } from './policy-controllers/outlets.ts';
import { PolicyStatusController } from './policy-controllers/policy-status.ts';
import { Watchdog } from './policy-controllers/watchdog.ts';
import { openController } from './runtime/controller.ts';
import { GatheredKeys } from './runtime/gathered-keys.ts';
import type { ControllerMetrics } from './runtime/runtime-metrics.ts';
import type { WorkQueue } from './runtime/work-queue.ts';
import type { ServingState } from './serving-state.ts';
import type { FailedCreations } from './watching/failed-creations.ts';
import { webhookConfigurationResource } from './webhook/configuration.ts';
import { isExcludedNamespace } from './watching/excluded-namespace.ts';

/** The watch says when somebody wipes the CA; this is for what a watch could miss. */
const CA_EVERY_MS = 60_000;
const ROUND = 'round';
/** Long beside the distance of two sidecars that take one push, and too short for a person who waits for a status. */
const GATHER_MS = 200;
/**
 * Between two looks at what keeps changing, as in a rollout. Short beside the 5 s between two writes of a status; a
 * policy of a thousand sidecars is looked at a few times while they take a push, not a thousand times.
 */
const GATHERINGS_APART_MS = 1_000;
const UNINJECTED_METRIC = 'weir_uninjected_pods';

export interface LeaderTasksOptions {
  readonly config: OperatorConfig;
  readonly api: KubeApi;
  readonly state: ServingState;
  readonly certificates: CertificateSource;
  readonly failedCreations: FailedCreations;
  /** Told when the webhook's configuration changes. */
  readonly onWebhookConfiguration: (listener: () => void) => Disposable;
  readonly isWebhookServing: () => boolean;
  readonly events: EventSink;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Registry;
  readonly controllerMetrics: ControllerMetrics;
}

/** Known to the leader only: it is there while this process leads. */
export function openUninjectedMetric(registry: Registry): prometheus.Gauge {
  return new prometheus.Gauge({
    name: UNINJECTED_METRIC,
    help: 'Pods that asked for a sidecar and have none; known to the leader.',
    registers: [registry],
  });
}

/** Runs until it is disposed. */
export class LeaderTasks implements AsyncDisposable {
  readonly #options: LeaderTasksOptions;
  readonly #stack = new AsyncDisposableStack();

  constructor(options: LeaderTasksOptions) {
    this.#options = options;
    const status = this.#openStatus();
    const watchdog = this.#openWatchdog();
    this.#follow(status, watchdog);
    if (options.config.manageCaBundle) this.#keepCaBundle();
    for (const { key } of options.state.world.policies()) status.add(key);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  #open(
    name: string,
    reconcile: Parameters<typeof openController>[1]['reconcile'],
    concurrency = 4,
  ): WorkQueue {
    const { clock, log, controllerMetrics: metrics } = this.#options;
    const queue = openController({ clock, log, metrics }, { name, reconcile, concurrency });
    this.#stack.use(queue);
    queue.start();
    return queue;
  }

  #openStatus(): WorkQueue {
    const { state, api, events, clock } = this.#options;
    const controller = new PolicyStatusController({
      world: state.world,
      surroundings: () => state.surroundings(),
      writer: openStatusWriter(api),
      events,
      clock,
    });
    return this.#open('policy-status', (key, signal) => controller.reconcile(key, signal));
  }

  #openWatchdog(): WorkQueue {
    const { state, api, events, clock, config, metrics, isWebhookServing } = this.#options;
    const uninjected = openUninjectedMetric(metrics);
    this.#stack.defer(() => {
      metrics.removeSingleMetric(UNINJECTED_METRIC);
    });
    const watchdog = new Watchdog({
      world: state.world,
      isExcluded: (namespace) => isExcludedNamespace(namespace, config.namespace),
      events,
      evictor: config.evictUninjected ? openEvictor(api) : undefined,
      isWebhookServing,
      quantities: [
        config.sidecarCpuRequest,
        config.sidecarCpuLimit,
        config.sidecarMemoryRequest,
        config.sidecarMemoryLimit,
      ],
      clock,
      onCount: (count) => {
        uninjected.set(count);
      },
    });
    const listening = this.#options.failedCreations.onFailure((event) => {
      watchdog.failed(event);
    });
    this.#stack.defer(() => {
      listening[Symbol.dispose]();
    });
    const queue = this.#open('watchdog', (_key, signal) => watchdog.round(signal), 1);
    queue.add(ROUND);
    return queue;
  }

  #follow(status: WorkQueue, watchdog: WorkQueue): void {
    const { state, clock } = this.#options;
    const gathered = new GatheredKeys({
      ...{ forMs: GATHER_MS, apartMs: GATHERINGS_APART_MS, clock },
      onKeys: (keys) => {
        for (const key of keys) status.add(key);
        watchdog.add(ROUND);
      },
    });
    const listening = state.onPolicies((policies) => {
      gathered.add(
        policies === 'all' ? [...state.world.policies()].map(({ key }) => key) : policies,
      );
    });
    this.#stack.defer(() => {
      listening[Symbol.dispose]();
      gathered[Symbol.dispose]();
    });
  }

  #keepCaBundle(): void {
    const { api, config, certificates, onWebhookConfiguration, log } = this.#options;
    const { webhookConfiguration: name } = config;
    const queue = this.#open(
      'ca-bundle',
      async (_key, signal) => {
        const { trust } = certificates.current();
        const resource = webhookConfigurationResource;
        const outcome = await keepCaBundle({ api, resource, name, trust, signal });
        if (outcome === 'written')
          log.info({ name }, 'wrote the CA into the webhook configuration');
        return { requeueAfterMs: CA_EVERY_MS };
      },
      1,
    );
    const again = (): void => {
      queue.add(name);
    };
    for (const listening of [onWebhookConfiguration(again), certificates.onChange(again)]) {
      this.#stack.defer(() => {
        listening[Symbol.dispose]();
      });
    }
    again();
  }
}
