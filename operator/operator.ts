// The parts of one operator process, opened in order and joined. Every replica answers the webhook and holds streams
// from its own caches; the one that leads writes status, Events, the CA and the webhook's configuration.
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { Registry } from 'prom-client';
import { formatHostPort } from '../contract/setting.ts';
import { openAdminServer } from './admin/server.ts';
import type { CertificateSource, ServingIdentity } from './certificates/certificate-source.ts';
import { openCertificates } from './certificates-choice.ts';
import { pause, systemClock, type Clock, type Random } from './clock.ts';
import { injectionConfigOf } from './injection-settings.ts';
import type { KubeApi } from './kube/api.ts';
import { openKubeClient, type KubeClient } from './kube/client.ts';
import { openReflectorMetrics } from './kube/reflector-metrics.ts';
import { LeaderTasks } from './leader-tasks.ts';
import type { Log } from './log.ts';
import type { OperatorConfig } from './operator-settings.ts';
import { Readiness } from './readiness.ts';
import { ReportPublisher } from './reports/report-publisher.ts';
import { openEventRecorder, type EventRecorder } from './runtime/events.ts';
import { LeaderElection } from './runtime/lease.ts';
import { openControllerMetrics } from './runtime/runtime-metrics.ts';
import { serverMinor } from './server-version.ts';
import { ServingState } from './serving-state.ts';
import { FAREWELL_OVER_MS, openStreamServer, type StreamServer } from './stream/server.ts';
import { AdmissionView } from './watching/admission-view.ts';
import { FailedCreations } from './watching/failed-creations.ts';
import { WebhookWatch } from './watching/webhook-watch.ts';
import { openWebhookServer, type WebhookServer } from './webhook/server.ts';

const LEASE = 'weir-operator';
const OBJECT_NAME_MAX = 253;
/** For a Service to stop sending new connections here after readiness has gone. */
const UNREADY_MS = 5_000;

export interface OperatorOptions {
  readonly config: OperatorConfig;
  readonly log: Log;
  /** Of the product. */
  readonly version: string;
  /** Called once when this process led and does not any more: it has to end. */
  readonly onLost: () => void;
}

export interface Operator extends AsyncDisposable {
  /** Where it serves; port 0 resolved. */
  readonly addresses: { readonly webhook: string; readonly stream: string; readonly admin: string };
  /** Resolves once every cache is filled. */
  synced(signal: AbortSignal): Promise<void>;
  /** Not ready any more, sidecars sent to another replica, the Lease given away. Takes at most the grace period. */
  stop(): Promise<void>;
}

interface Base {
  readonly config: OperatorConfig;
  readonly version: string;
  readonly replica: string;
  /** Of the API server. */
  readonly minor: number;
  readonly client: KubeClient;
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Registry;
  readonly events: EventRecorder;
  readonly state: ServingState;
  readonly certificates: CertificateSource;
  readonly leadership: Leadership;
}

/** Certificates have to know who leads before there is an election. */
interface Leadership {
  election: LeaderElection | undefined;
}

/** Throws KUBE_CONFIG_INVALID, CERTIFICATE_INVALID, LISTEN_FAILED; waits for the API server as long as it takes. */
export async function openOperator(
  options: OperatorOptions,
  signal: AbortSignal,
): Promise<Operator> {
  await using stack = new AsyncDisposableStack();
  const base = await openBase(options, stack, signal);
  const { config, state, metrics, clock } = base;
  const webhookWatch = new WebhookWatch(state.watch, config.webhookConfiguration);
  const [webhook, stream] = await openServers(base, stack);
  const readiness = stack.use(new Readiness({ ...base, webhookWatch, stream }));
  const admin = stack.use(
    await openAdminServer({
      ...config.admin,
      live: [{ name: 'watches', problem: () => state.watch.deadlock }],
      ready: readiness.checks,
      metrics,
    }),
  );
  const publisher = openPublisher(base, stack);
  const leader = stack.use(
    lead(base, { webhookWatch, isWebhookServing: () => readiness.isReady, onLost: options.onLost }),
  );
  const synced = state.start(signal).then(() => {
    leader.start();
  });
  // Whoever waits hears of it; nobody has to.
  synced.catch(() => undefined);
  const open = stack.move();
  const streamAddress = `https://${formatHostPort(stream.address)}`;
  return {
    addresses: { webhook: webhook.url, stream: streamAddress, admin: admin.url },
    synced: () => synced,
    async stop() {
      readiness.stop();
      webhook.drain();
      const shareMs = config.grace / 6;
      await pause(clock, Math.min(UNREADY_MS, shareMs), new AbortController().signal);
      await Promise.all([
        stream.stop(Math.min(FAREWELL_OVER_MS, 2 * shareMs)),
        webhook[Symbol.asyncDispose](),
      ]);
      await publisher?.[Symbol.asyncDispose]();
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

async function openBase(
  { config, log, version }: OperatorOptions,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Base> {
  const metrics = new Registry();
  const [clock, random] = [systemClock, Math.random];
  const replica = config.podName ?? hostname();
  const client = stack.use(
    await openKubeClient({
      ...{ metrics, clock },
      ...(config.kubeconfig === undefined ? {} : { kubeConfig: config.kubeconfig }),
    }),
  );
  const minor = await serverMinor({ client, clock, log }, signal);
  const common = { config, api: client, clock, random, log, metrics };
  const events = stack.use(openEventRecorder({ ...common, instance: replica }));
  const state = stack.use(
    new ServingState({
      ...{ config, clock, random, ownReports: reportsName(replica) },
      reflectors: {
        collections: client,
        clock,
        random,
        log,
        metrics: openReflectorMetrics(metrics),
      },
    }),
  );
  const leadership: Leadership = { election: undefined };
  const isLeader = (): boolean => !config.leaderElect || leadership.election?.isLeading === true;
  const certificates = stack.use(await openCertificates({ ...common, isLeader }, signal));
  const base = {
    ...common,
    version,
    replica,
    minor,
    client,
    events,
    state,
    certificates,
    leadership,
  };
  trustNewAuthorities(base);
  return base;
}

async function openServers(
  base: Base,
  stack: AsyncDisposableStack,
): Promise<readonly [WebhookServer, StreamServer]> {
  const webhook = stack.use(await openWebhook(base));
  const stream = stack.use(await openStream(base));
  renewCertificates(base, webhook, stream);
  return [webhook, stream];
}

function openPublisher(base: Base, stack: AsyncDisposableStack): ReportPublisher | undefined {
  const { config, api, state, clock, log, replica } = base;
  // A single replica has nobody to tell.
  if (!config.leaderElect) return undefined;
  return stack.use(
    new ReportPublisher({
      ...{ api, registry: state.registry, clock, log },
      ...{ namespace: config.namespace, name: reportsName(replica), owner: ownerOf(config) },
    }),
  );
}

function reportsName(replica: string): string {
  return `weir-reports-${replica}`.slice(0, OBJECT_NAME_MAX);
}

/** Sidecars trust the CA that they were injected with; a new one reaches them before it signs. */
function trustNewAuthorities({ state, certificates }: Base): void {
  const tell = ({ trust }: ServingIdentity): void => {
    state.provision.configure({ ca: trust });
  };
  tell(certificates.current());
  certificates.onChange(tell);
}

async function openWebhook(base: Base): Promise<WebhookServer> {
  const { config, version, minor, state, certificates, events, log, metrics } = base;
  const view = new AdmissionView({
    world: state.world,
    bundleForNew: (pod, workload) => state.provision.bundleForNew(pod, workload),
  });
  return openWebhookServer({
    ...{ ...config.webhook, certificate: certificates.current(), world: view },
    config: () =>
      injectionConfigOf(config, { version, minor, trust: certificates.current().trust }),
    events: {
      record: ({ about, reason, message }) => {
        const type = 'Warning';
        events.record({ regarding: about, type, reason, action: 'Inject', note: message });
      },
    },
    ...{ log, metrics },
  });
}

function openStream({
  config,
  client,
  state,
  certificates,
  log,
  metrics,
}: Base): Promise<StreamServer> {
  return openStreamServer({
    ...{ listen: config.stream, tls: certificates.current(), api: client, log, metrics },
    ...{ pods: state.provision, provider: state.provision, registry: state.registry },
  });
}

/** A certificate that cannot be served is a bug of its source: the old one stays, and the log says so. */
function renewCertificates(
  { certificates, log }: Base,
  webhook: WebhookServer,
  stream: StreamServer,
): void {
  certificates.onChange((identity) => {
    webhook.setCertificate(identity);
    stream.reload(identity);
    log.info(
      { notAfter: new Date(identity.notAfterMs).toISOString() },
      'serving a new certificate',
    );
  });
}

interface Leading extends AsyncDisposable {
  start(): void;
}

interface LeadOptions {
  readonly webhookWatch: WebhookWatch;
  readonly isWebhookServing: () => boolean;
  readonly onLost: () => void;
}

function lead(base: Base, { webhookWatch, isWebhookServing, onLost }: LeadOptions): Leading {
  const { api, config, clock, random, log, metrics, replica, state, leadership } = base;
  const failedCreations = new FailedCreations(state.watch, config.watchNamespaces);
  const controllerMetrics = openControllerMetrics(metrics);
  let tasks: LeaderTasks | undefined;
  const begin = (): void => {
    tasks ??= new LeaderTasks({
      ...{ ...base, failedCreations, controllerMetrics, isWebhookServing },
      onWebhookConfiguration: (listener) => webhookWatch.onChange(listener),
    });
  };
  if (config.leaderElect) {
    leadership.election = new LeaderElection({
      ...{ api, clock, random, log, metrics, onLeading: begin, onLost },
      lease: { namespace: config.namespace, name: LEASE },
      identity: `${replica}_${randomUUID()}`,
    });
  }
  const { election } = leadership;
  return {
    start: () => {
      if (election === undefined) begin();
      else election.start();
    },
    [Symbol.asyncDispose]: async () => {
      // Writes end before the Lease is given away: the next leader must not meet a late one of ours.
      await tasks?.[Symbol.asyncDispose]();
      await election?.[Symbol.asyncDispose]();
    },
  };
}

function ownerOf({ podName, podUid }: OperatorConfig): ReportPublisherOwner {
  if (podName === undefined || podUid === undefined) return undefined;
  return { apiVersion: 'v1', kind: 'Pod', name: podName, uid: podUid };
}

type ReportPublisherOwner = ConstructorParameters<typeof ReportPublisher>[0]['owner'];
