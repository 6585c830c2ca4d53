// Names that a user, the operator, the webhook and the sidecar must spell alike. A name here is never changed:
// manifests of users, charts and running pods hold it.

/** Written by users on pods (annotation or label) or namespaces (label `weir.dev/inject`). */
export const annotations = {
  inject: 'weir.dev/inject',
  ports: 'weir.dev/ports',
  mode: 'weir.dev/mode',
  native: 'weir.dev/native',
  upstreamHost: 'weir.dev/upstream-host',
  drainSeconds: 'weir.dev/drain-seconds',
  probes: 'weir.dev/probes',
  onNoConfig: 'weir.dev/on-no-config',
  image: 'weir.dev/image',
  logLevel: 'weir.dev/log-level',
  workers: 'weir.dev/workers',
  tlsSecret: 'weir.dev/tls-secret',
  tlsClientCa: 'weir.dev/tls-client-ca',
  cpuRequest: 'weir.dev/cpu-request',
  cpuLimit: 'weir.dev/cpu-limit',
  memoryRequest: 'weir.dev/memory-request',
  memoryLimit: 'weir.dev/memory-limit',
} as const;

/** Written by the webhook on injected pods. */
export const injected = {
  /** Label, value `true`: what the operator's pod watch and PodMonitors select. */
  label: 'weir.dev/injected',
  /** Annotation: JSON, see `InjectionStatus` in operator/injection. */
  status: 'weir.dev/status',
  /** Annotation: the seed bundle, gzip + base64; absent when there is none. */
  seed: 'weir.dev/seed',
  /** Annotation: why the seed was left out, in words. */
  seedOmitted: 'weir.dev/seed-omitted',
} as const;

/** On a namespace, value `disabled`: the webhook never looks at its pods. */
export const ADMISSION_LABEL = 'weir.dev/admission-webhooks';

/** Names inside an injected pod. */
export const inPod = {
  sidecar: 'weir',
  redirectInit: 'weir-redirect',
  identityVolume: 'weir-identity',
  cacheVolume: 'weir-cache',
  /** Mounted over the place of the app's own token, so that no plugin adds that one to our container. */
  identityPath: '/var/run/secrets/kubernetes.io/serviceaccount',
  tokenFile: 'token',
  seedFile: 'seed',
  cachePath: '/var/lib/weir',
  /** Holds the certificate that clients are shown, where the pod asks for TLS. */
  tlsVolume: 'weir-tls',
  tlsPath: '/var/run/secrets/weir.dev/tls',
  /** Name of the admin port, for scrapers that go by name. */
  metricsPort: 'weir-metrics',
} as const;

/** Ports of a sidecar in a pod. */
export const ports = {
  /** The first port it takes requests on; one more for each further port of the app. */
  firstListen: 15_100,
  admin: 15_090,
  /** The first port a moved probe is sent to. */
  firstProbe: 15_300,
} as const;

/** Audience of the token a sidecar shows to the operator. */
export const STREAM_AUDIENCE = 'weir.dev/stream';

/** Field manager of everything the operator applies. */
export const FIELD_MANAGER = 'weir-operator';
