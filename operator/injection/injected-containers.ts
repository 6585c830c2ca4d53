// The containers and volumes of ours. The sidecar needs no privilege at all and passes Pod Security's `restricted`;
// the container that writes redirect rules needs exactly one.
import { encodeAppProbes } from '../../contract/app-probe.ts';
import type { AppProbe } from '../../contract/app-probe.ts';
import { inPod, injected, STREAM_AUDIENCE } from '../../contract/names.ts';
import { graceSecondsOf, runningContainers } from './pod.ts';
import type { Container, ContainerPort, Lifecycle, PodSpec } from './pod.ts';
import type { InjectionConfig } from './injection-config.ts';
import type { InterceptionMode, MovedProbe, TakenPort } from './injection-status.ts';
import type { PodSettings } from './pod-settings.ts';
import { redirectResources, sidecarResources } from './sidecar-resources.ts';

/** Volumes and containers hold fields that the types of what is read do not name. */
type Plain = Readonly<Record<string, unknown>>;

export interface SidecarPlan {
  readonly spec: PodSpec;
  readonly config: InjectionConfig;
  readonly settings: PodSettings;
  readonly namespace: string;
  readonly mode: InterceptionMode;
  readonly isNative: boolean;
  readonly taken: readonly TakenPort[];
  readonly moved: readonly MovedProbe[];
  /** Done by the sidecar for the kubelet. */
  readonly appProbes: readonly AppProbe[];
  /** The sidecar's own port, for the kubelet and for scrapers. */
  readonly adminPort: number;
  /** How long an ordinary sidecar stays after the pod's deletion before it ends, in seconds. */
  readonly holdSeconds: number;
}

const DROP_ALL = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true } as const;
const SECCOMP = { seccompProfile: { type: 'RuntimeDefault' } } as const;
/** Of the image's own USER: set only where the pod would make us root. */
const OWN_USER = 65_532;
const TLS_MOUNT = { name: inPod.tlsVolume, mountPath: inPod.tlsPath, readOnly: true } as const;

export function sidecarContainer(plan: SidecarPlan): Container {
  const { config, settings, spec } = plan;
  const resources = sidecarResources(spec, settings, config.resources);
  const container: Container & Plain = {
    name: inPod.sidecar,
    image: settings.image,
    ...(config.imagePullPolicy === undefined ? {} : { imagePullPolicy: config.imagePullPolicy }),
    args: ['run'],
    env: environment(plan),
    ports: sidecarPorts(plan),
    ...(resources === undefined ? {} : { resources }),
    ...(plan.isNative ? { restartPolicy: 'Always' } : {}),
    startupProbe: { ...adminProbe('/healthz', plan), periodSeconds: 1, failureThreshold: 60 },
    readinessProbe: { ...adminProbe('/readyz', plan), periodSeconds: 2, failureThreshold: 2 },
    lifecycle: lifecycleOf(plan),
    securityContext: {
      ...{ runAsNonRoot: true, ...DROP_ALL, capabilities: { drop: ['ALL'] }, ...SECCOMP },
      ...(spec.securityContext?.runAsUser === 0 ? { runAsUser: OWN_USER } : {}),
    },
    terminationMessagePolicy: 'FallbackToLogsOnError',
    volumeMounts: [
      { name: inPod.identityVolume, mountPath: inPod.identityPath, readOnly: true },
      { name: inPod.cacheVolume, mountPath: inPod.cachePath },
      ...(settings.tlsSecret === undefined ? [] : [TLS_MOUNT]),
    ],
  };
  return container;
}

function adminProbe(
  path: string,
  { adminPort: port }: SidecarPlan,
): { readonly httpGet: { readonly port: number } & Plain } {
  return { httpGet: { path, port } };
}

// The app starts behind a sidecar that listens. A hook that fails restarts the container: `wait` never does.
function lifecycleOf({ isNative, holdSeconds, adminPort }: SidecarPlan): Lifecycle {
  // 127.0.0.1 is there in pods of every address family, and the admin listener takes it in all of them.
  const admin = ['--admin', `127.0.0.1:${adminPort}`];
  const hold = isNative || holdSeconds === 0 ? [] : ['--hold', `${holdSeconds}s`];
  return {
    postStart: { exec: { command: ['weir', 'wait', ...admin] } },
    preStop: { exec: { command: ['weir', 'drain', ...admin, ...hold] } },
  };
}

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: Plain;
}

function environment(plan: SidecarPlan): readonly Variable[] {
  const { config, settings, spec } = plan;
  const listeners = listenersOf(plan);
  const host = settings.upstreamHost.includes(':')
    ? `[${settings.upstreamHost}]`
    : settings.upstreamHost;
  const grace = graceSecondsOf(spec) - (plan.isNative ? 0 : plan.holdSeconds);
  const values = {
    WEIR_OPERATOR: config.operatorUrl,
    WEIR_OPERATOR_CA: config.operatorCa,
    WEIR_OPERATOR_TOKEN: `${inPod.identityPath}/${inPod.tokenFile}`,
    WEIR_SEED: `${inPod.identityPath}/${inPod.seedFile}`,
    WEIR_CONFIG_CACHE: inPod.cachePath,
    WEIR_ON_NO_CONFIG: settings.onNoConfig,
    WEIR_LISTEN: listeners.map(({ listen }) => `[::]:${listen}`).join(','),
    WEIR_UPSTREAM: listeners.map(({ port }) => `${host}:${port}`).join(','),
    WEIR_ADMIN: `[::]:${plan.adminPort}`,
    WEIR_LOG_LEVEL: settings.logLevel,
    ...(settings.workers === 0
      ? {}
      : { WEIR_WORKERS: String(settings.workers), WEIR_SUPERVISE: 'true' }),
    ...tlsVariables(plan, listeners),
    ...(plan.appProbes.length === 0 ? {} : { WEIR_APP_PROBES: encodeAppProbes(plan.appProbes) }),
    // A duration is at least a second; the kubelet ends the process when the pod's own time is over.
    WEIR_GRACE: `${Math.min(Math.max(1, grace), GRACE_SECONDS_MAX)}s`,
  };
  return [
    ...Object.entries(values).map(([name, value]) => ({ name, value })),
    fromPod('WEIR_POD_NAMESPACE', 'metadata.namespace'),
    fromPod('WEIR_POD_NAME', 'metadata.name'),
    fromPod('WEIR_POD_UID', 'metadata.uid'),
  ];
}

/** Names of the files under `inPod.tlsPath`, whatever the keys of the Secret are called. */
const TLS_FILES = { cert: 'tls.crt', key: 'tls.key', clientCa: 'client-ca.crt' } as const;

function tlsVariables(
  plan: SidecarPlan,
  listeners: readonly TakenPort[],
): Readonly<Record<string, string>> {
  const { taken, settings } = plan;
  const { tlsSecret, tlsClientCa } = settings;
  if (tlsSecret === undefined) return {};
  const { cert, key, clientCa } = TLS_FILES;
  return {
    WEIR_TLS_CERT: `${inPod.tlsPath}/${cert}`,
    WEIR_TLS_KEY: `${inPod.tlsPath}/${key}`,
    ...(tlsClientCa === undefined ? {} : { WEIR_TLS_CLIENT_CA: `${inPod.tlsPath}/${clientCa}` }),
    WEIR_UPSTREAM_PROTOCOL: listeners.map(({ listen }) => protocolOf(taken, listen)).join(','),
  };
}

/** Of which HTTP/2 alone is spoken, by its name; gRPC-Web is mostly HTTP/1.1. */
const HTTP2_PORT = /^(h2c|http2|grpc)(-|$)(?!web)/;

// A port that speaks both may have two names. Others may speak HTTP/2 too; who offers nothing else gets it from them.
function protocolOf(taken: readonly TakenPort[], listen: number): 'h2' | 'auto' {
  const names = taken.filter((one) => one.listen === listen).map(({ name = '' }) => name);
  return names.every((name) => HTTP2_PORT.test(name)) ? 'h2' : 'auto';
}

/** One for each of the sidecar's ports. */
function listenersOf({ taken }: SidecarPlan): readonly TakenPort[] {
  return [...new Map(taken.map((one) => [one.listen, one])).values()];
}

/** What the setting takes at most: a day. */
const GRACE_SECONDS_MAX = 86_400;

function fromPod(name: string, fieldPath: string): Variable {
  return { name, valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath } } };
}

function sidecarPorts(plan: SidecarPlan): readonly ContainerPort[] {
  const { mode, spec, adminPort } = plan;
  const names = runningContainers(spec).flatMap(({ ports = [] }) => ports.map(({ name }) => name));
  // For scrapers that go by name; whoever has the name already keeps it.
  const admin = names.includes(inPod.metricsPort) ? {} : { name: inPod.metricsPort };
  return [
    ...listenersOf(plan).map(({ name, listen }) => ({
      ...(mode === 'takeover' && name !== undefined ? { name } : {}),
      ...{ containerPort: listen, protocol: 'TCP' },
    })),
    { ...admin, containerPort: adminPort, protocol: 'TCP' },
  ];
}

/** The init container that writes the rules: a port of the app to the sidecar's, a probe's port to the app's. */
export function redirectContainer(plan: SidecarPlan, image: string): Container {
  const { spec, config, taken, moved } = plan;
  const resources = redirectResources(spec);
  const forwards = new Map(taken.map(({ port, listen }) => [port, listen]));
  const container: Container & Plain = {
    name: inPod.redirectInit,
    image,
    ...(config.imagePullPolicy === undefined ? {} : { imagePullPolicy: config.imagePullPolicy }),
    // Every image of ours begins with `weir`, so that one image may serve for both containers.
    args: [
      'redirect',
      ...[...forwards].flatMap(([port, listen]) => ['--forward', `${port}:${listen}`]),
      ...moved.flatMap(({ port, probe }) => ['--probe', `${probe}:${port}`]),
    ],
    ...(resources === undefined ? {} : { resources }),
    // Without uid 0 the capability is not effective; nothing else of root's is left.
    securityContext: {
      ...{ runAsUser: 0, runAsNonRoot: false, ...DROP_ALL, ...SECCOMP },
      capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] },
    },
    terminationMessagePolicy: 'FallbackToLogsOnError',
    // An empty folder where the app's token would be added, which would also call the webhook once more.
    volumeMounts: [{ name: inPod.cacheVolume, mountPath: inPod.identityPath, readOnly: true }],
  };
  return container;
}

/** The kubelet renews the token when four fifths of this have passed. */
const TOKEN_SECONDS = 3_600;
/** Two bundles of the largest size, of which one is being written. */
const CACHE_SIZE = '16Mi';

/** No `defaultMode`: with one, the seed could not be read by every user id. */
export function injectedVolumes(
  settings: PodSettings,
): readonly ({ readonly name: string } & Plain)[] {
  const token = {
    audience: STREAM_AUDIENCE,
    expirationSeconds: TOKEN_SECONDS,
    path: inPod.tokenFile,
  };
  const seed = {
    path: inPod.seedFile,
    fieldRef: { apiVersion: 'v1', fieldPath: `metadata.annotations['${injected.seed}']` },
  };
  return [
    {
      name: inPod.identityVolume,
      projected: { sources: [{ serviceAccountToken: token }, { downwardAPI: { items: [seed] } }] },
    },
    { name: inPod.cacheVolume, emptyDir: { medium: 'Memory', sizeLimit: CACHE_SIZE } },
    ...(settings.tlsSecret === undefined ? [] : [tlsVolume(settings.tlsSecret, settings)]),
  ];
}

// Only what is needed is mounted. A key that the Secret has not holds the pod back, and the kubelet names it.
function tlsVolume(
  secretName: string,
  { tlsClientCa }: PodSettings,
): { readonly name: string } & Plain {
  const items = [
    { key: 'tls.crt', path: TLS_FILES.cert },
    { key: 'tls.key', path: TLS_FILES.key },
    ...(tlsClientCa === undefined ? [] : [{ key: tlsClientCa, path: TLS_FILES.clientCa }]),
  ];
  return { name: inPod.tlsVolume, secret: { secretName, items } };
}
