// Pods as people write them, and stranger ones: all of them valid to the API server before injection.
import * as fc from 'fast-check';
import type {
  InjectionConfig,
  PodSurroundings,
} from '../../operator/injection/injection-config.ts';
import { readPod, type Pod } from '../../operator/injection/pod.ts';

/** Settings of an operator on Kubernetes 1.36. */
export function injectionConfig(changes: Partial<InjectionConfig> = {}): InjectionConfig {
  return {
    version: '1.2.3',
    image: 'registry.test/weir:1.2.3',
    redirectImage: 'registry.test/weir-redirect:1.2.3',
    imagePullSecrets: [],
    operatorUrl: 'https://weir-operator.weir-system.svc:9444',
    operatorCa: '-----BEGIN CERTIFICATE-----\nTUlJ\n-----END CERTIFICATE-----\n',
    serverMinor: 36,
    resources: {
      requests: { cpu: '50m', memory: '96Mi' },
      limits: { memory: '256Mi' },
      cpuLimit: '500m',
    },
    mode: 'auto',
    onNoConfig: 'deny',
    logLevel: 'info',
    drainSeconds: 5,
    workers: 0,
    ...changes,
  };
}

export function surroundings(changes: Partial<PodSurroundings> = {}): PodSurroundings {
  return { namespace: 'shop', namespaceLabels: {}, services: [], ...changes };
}

/** Reads what a test wrote as the webhook reads what it is sent; throws when it is no pod. */
export function podOf(value: unknown): Pod {
  const read = readPod(value);
  if (read.kind === 'unreadable') throw new Error(read.problem);
  return read.pod;
}

/** One container with a named port, and what the test adds to it. */
export function simplePod(
  changes: {
    readonly annotations?: Readonly<Record<string, string>>;
    readonly container?: Readonly<Record<string, unknown>>;
    readonly spec?: Readonly<Record<string, unknown>>;
    readonly metadata?: Readonly<Record<string, unknown>>;
  } = {},
): Pod {
  return podOf({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'api',
      namespace: 'shop',
      labels: { app: 'api' },
      annotations: { 'weir.dev/inject': 'enabled', ...changes.annotations },
      ...changes.metadata,
    },
    spec: {
      containers: [
        {
          name: 'app',
          image: 'registry.test/app:1',
          ports: [{ name: 'http', containerPort: 8080 }],
          ...changes.container,
        },
      ],
      ...changes.spec,
    },
  });
}

const PORT_NAMES = [
  ...['http-admin', 'h2c', 'grpc', 'grpc-internal', 'web', 'metrics', 'app-http', 'https'],
  ...['app-http-2', 'http-abcdefghij', 'http-abcdefghik', 'app-http-abcdef', 'weir-metrics', 'x'],
];
const PORT_NUMBERS = [80, 443, 3000, 8081, 9090, 15_090, 15_100, 15_101, 15_300, 65_535, 1];

type Plain = Readonly<Record<string, unknown>>;

interface PortSeed {
  readonly named: boolean;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP' | undefined;
  readonly isOnHost: boolean;
}

const portSeed: fc.Arbitrary<PortSeed> = fc.record({
  named: fc.boolean(),
  protocol: fc.constantFrom('TCP', undefined, undefined, 'UDP', 'SCTP'),
  isOnHost: fc.integer({ min: 0, max: 7 }).map((one) => one === 0),
});

/** Which handler a container has, and how it names the port: resolved once the ports are known. */
const handlerSeed = fc.record({
  kind: fc.constantFrom('httpGet', 'httpGet', 'tcpSocket', 'grpc', 'exec', undefined),
  byName: fc.boolean(),
  index: fc.nat(3),
  elsewhere: fc.constantFrom(undefined, undefined, undefined, undefined, 5_000),
});
type HandlerSeed = typeof handlerSeed extends fc.Arbitrary<infer Value> ? Value : never;

const containerSeed = fc.record({
  ports: fc.array(portSeed, { maxLength: 3 }),
  readinessProbe: handlerSeed,
  livenessProbe: handlerSeed,
  startupProbe: handlerSeed,
  preStop: handlerSeed,
  postStart: handlerSeed,
  sleeps: fc.boolean(),
  limits: fc.constantFrom('none', 'memory', 'both', 'guaranteed'),
  restricted: fc.boolean(),
  variables: fc.nat(3),
});
type ContainerSeed = typeof containerSeed extends fc.Arbitrary<infer Value> ? Value : never;

interface OpenPort {
  readonly name?: string;
  readonly containerPort: number;
  readonly protocol?: string;
  readonly hostPort?: number;
}

const LIMITS: Readonly<Record<string, Plain>> = {
  none: {},
  memory: { requests: { memory: '32Mi' }, limits: { memory: '64Mi' } },
  both: { requests: { cpu: '10m', memory: '32Mi' }, limits: { cpu: '1', memory: '64Mi' } },
  guaranteed: { limits: { cpu: '1', memory: '64Mi' } },
};

/** What Pod Security's `restricted` asks of each container. */
const RESTRICTED: Plain = {
  runAsNonRoot: true,
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
};

function handlerOf(seed: HandlerSeed, ports: readonly OpenPort[]): Plain | undefined {
  const { kind, elsewhere, byName, index } = seed;
  if (kind === undefined) return undefined;
  const tcp = ports.filter(({ protocol = 'TCP' }) => protocol === 'TCP');
  const port: OpenPort = tcp[index % Math.max(1, tcp.length)] ?? { containerPort: 4_000 };
  const number = elsewhere ?? port.containerPort;
  const asked = byName && elsewhere === undefined ? (port.name ?? number) : number;
  const actions = {
    httpGet: { path: '/ready', port: asked },
    tcpSocket: { port: asked },
    grpc: { port: number },
    exec: { command: ['true'] },
  };
  return { [kind]: actions[kind] };
}

function present(parts: Readonly<Record<string, Plain | undefined>>): Plain {
  return Object.fromEntries(Object.entries(parts).filter(([, part]) => part !== undefined));
}

function containerOf(seed: ContainerSeed, name: string, ports: readonly OpenPort[]): Plain {
  // Only probes may ask by gRPC.
  const hook = (one: HandlerSeed): Plain | undefined =>
    one.kind === 'grpc' ? undefined : handlerOf(one, ports);
  const preStop = seed.sleeps ? { sleep: { seconds: SLEEP_SECONDS } } : hook(seed.preStop);
  const lifecycle = present({ preStop, postStart: hook(seed.postStart) });
  return {
    ...{ name, image: 'registry.test/app:1', resources: LIMITS[seed.limits] ?? {} },
    ...(ports.length === 0 ? {} : { ports }),
    ...present({
      readinessProbe: handlerOf(seed.readinessProbe, ports),
      livenessProbe: handlerOf(seed.livenessProbe, ports),
      startupProbe: handlerOf(seed.startupProbe, ports),
      lifecycle: Object.keys(lifecycle).length === 0 ? undefined : lifecycle,
      securityContext: seed.restricted ? RESTRICTED : undefined,
    }),
    env: Array.from({ length: seed.variables }, (_, index) => ({
      name: `V${index}`,
      value: String(index),
    })),
  };
}

const annotationChoices = fc.record(
  {
    'weir.dev/mode': fc.constantFrom('auto', 'takeover', 'redirect'),
    'weir.dev/native': fc.constantFrom('auto', 'true', 'false'),
    'weir.dev/drain-seconds': fc.constantFrom('0', '1', '7', '300'),
    'weir.dev/workers': fc.constantFrom('0', '1', '16'),
    'weir.dev/ports': fc.constantFrom('http', 'http', '8080'),
    'weir.dev/probes': fc.constantFrom('kubelet', 'sidecar'),
    'weir.dev/tls-secret': fc.constantFrom('api-tls', 'api.shop.example'),
    'weir.dev/memory-request': fc.constantFrom('64Mi', '1Gi'),
    'weir.dev/cpu-limit': fc.constantFrom('20m', '2'),
    'cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes': fc.constantFrom('a,b', ''),
    'kubectl.kubernetes.io/default-container': fc.constant('c0'),
  },
  { requiredKeys: [] },
);

/**
 * Pods that ask for a sidecar (`enabled` or `required`), with ports, probes, hooks, init containers, native sidecars
 * and resources of many kinds. Every name and port of one pod is its own. Raw JSON.
 */
export function podArbitrary(): fc.Arbitrary<Plain> {
  return fc
    .record({
      first: containerSeed,
      others: fc.array(containerSeed, { maxLength: 3 }),
      inits: fc.array(fc.record({ seed: containerSeed, stays: fc.boolean() }), { maxLength: 2 }),
      names: fc.shuffledSubarray(PORT_NAMES, { minLength: PORT_NAMES.length }),
      numbers: fc.shuffledSubarray(PORT_NUMBERS, { minLength: PORT_NUMBERS.length }),
      inject: fc.constantFrom('enabled', 'required'),
      annotations: annotationChoices,
      isGenerated: fc.boolean(),
      spec: fc.record(
        {
          terminationGracePeriodSeconds: fc.constantFrom(0, 1, 9, 10, 30, 3_600),
          restartPolicy: fc.constantFrom('Always', 'Always', 'Always', 'Never', 'OnFailure'),
          automountServiceAccountToken: fc.boolean(),
          shareProcessNamespace: fc.boolean(),
          imagePullSecrets: fc.constantFrom([], [{ name: 'theirs' }]),
          securityContext: fc.constantFrom({}, { runAsUser: 1000 }, { fsGroup: 2000 }),
          volumes: fc.constantFrom([], [{ name: 'tmp', emptyDir: {} }]),
        },
        { requiredKeys: [] },
      ),
    })
    .map((drawn) => buildPod(drawn));
}

interface Drawn {
  readonly first: ContainerSeed;
  readonly others: readonly ContainerSeed[];
  readonly inits: readonly { readonly seed: ContainerSeed; readonly stays: boolean }[];
  readonly names: readonly string[];
  readonly numbers: readonly number[];
  readonly inject: string;
  readonly annotations: Plain;
  readonly isGenerated: boolean;
  readonly spec: Plain;
}

/** The API server wants a sleep shorter than the grace period. */
const SLEEP_SECONDS = 3;

function canSleep({ terminationGracePeriodSeconds = 30 }: Plain): boolean {
  return Number(terminationGracePeriodSeconds) > SLEEP_SECONDS;
}

function buildPod({
  first,
  others,
  inits,
  inject,
  annotations,
  isGenerated,
  spec,
  ...drawn
}: Drawn): Plain {
  const names = [...drawn.names];
  const numbers = [...drawn.numbers];
  const portsOf = (seed: ContainerSeed): OpenPort[] =>
    seed.ports.flatMap(({ named, protocol, isOnHost }) => {
      const containerPort = numbers.pop();
      const name = named ? names.pop() : undefined;
      if (containerPort === undefined) return [];
      return [
        {
          ...(name === undefined ? {} : { name }),
          containerPort,
          ...(protocol === undefined ? {} : { protocol }),
          ...(isOnHost ? { hostPort: containerPort } : {}),
        },
      ];
    });
  // Most apps name their port http: without one such most pods would only be refused.
  const http = { name: 'http', containerPort: 8080 };
  const sleepless = canSleep(spec) ? {} : { sleeps: false };
  const containers = [first, ...others].map((seed, index) =>
    containerOf(
      { ...seed, ...sleepless },
      `c${index}`,
      index === 0 ? [...portsOf(seed), http] : portsOf(seed),
    ),
  );
  const initContainers = inits.map(({ seed, stays }, index) => {
    const container = containerOf(
      { ...seed, ...sleepless },
      `i${index}`,
      stays ? portsOf(seed) : [],
    );
    if (stays) return { ...container, restartPolicy: 'Always' };
    // The API server takes no probes and hooks of a container that must end.
    const { name, image, env, resources } = container;
    return { name, image, env, resources };
  });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...(isGenerated ? { generateName: 'api-7d9f-' } : { name: 'api' }),
      labels: { app: 'api' },
      annotations: { 'weir.dev/inject': inject, ...annotations },
    },
    spec: { ...spec, containers, ...(initContainers.length === 0 ? {} : { initContainers }) },
  };
}
