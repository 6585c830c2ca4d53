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
  const listeners = [...new Map(plan.taken.map(({ listen, port }) => [listen, port]))];
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
    WEIR_LISTEN: listeners.map(([listen]) => `[::]:${listen}`).join(','),
    WEIR_UPSTREAM: listeners.map(([, port]) => `${host}:${port}`).join(','),
    WEIR_ADMIN: `[::]:${plan.adminPort}`,
    WEIR_LOG_LEVEL: settings.logLevel,
    ...(settings.workers === 0
      ? {}
      : { WEIR_WORKERS: String(settings.workers), WEIR_SUPERVISE: 'true' }),
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

/** What the setting takes at most: a day. */
const GRACE_SECONDS_MAX = 86_400;

function fromPod(name: string, fieldPath: string): Variable {
  return { name, valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath } } };
}

function sidecarPorts({ mode, taken, spec, adminPort }: SidecarPlan): readonly ContainerPort[] {
  const names = runningContainers(spec).flatMap(({ ports = [] }) => ports.map(({ name }) => name));
  // For scrapers that go by name; whoever has the name already keeps it.
  const admin = names.includes(inPod.metricsPort) ? {} : { name: inPod.metricsPort };
  const listeners = [...new Map(taken.map((one) => [one.listen, one])).values()];
  return [
    ...listeners.map(({ name, listen }) => ({
      ...(mode === 'takeover' && name !== undefined ? { name } : {}),
      ...{ containerPort: listen, protocol: 'TCP' },
    })),
    { ...admin, containerPort: adminPort, protocol: 'TCP' },
  ];
}

/** The init container that writes the rules: a port of the app to the sidecar's, a probe's port to the app's. */
export function redirectContainer({ spec, config, taken, moved }: SidecarPlan): Container {
  const resources = redirectResources(spec);
  const forwards = new Map(taken.map(({ port, listen }) => [port, listen]));
  const container: Container & Plain = {
    name: inPod.redirectInit,
    image: config.redirectImage,
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
export function injectedVolumes(): readonly ({ readonly name: string } & Plain)[] {
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
  ];
}
