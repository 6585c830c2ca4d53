// The operator's Deployment and what belongs to it.
import {
  anyObject,
  choice,
  closed,
  duration,
  flag,
  imageValues,
  integer,
  labelName,
  listOf,
  logLevel,
  named,
  objectName,
  objects,
  orNull,
  placementValues,
  pullPolicyValue,
  quantity,
  resources,
  text,
  textMap,
  type ChartValue,
  type Section,
} from './value.ts';

/** What every container of the chart runs with: Pod Security `restricted`. */
export const RESTRICTED_CONTAINER: Readonly<Record<string, unknown>> = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
};
export const RESTRICTED_POD: Readonly<Record<string, unknown>> = {
  runAsNonRoot: true,
  seccompProfile: { type: 'RuntimeDefault' },
};

const port = integer(1, 65_535);

const settings: readonly ChartValue[] = [
  {
    path: 'operator.logLevel',
    value: 'info',
    schema: logLevel,
    about: '`error`, `warn`, `info` or `debug`',
  },
  {
    path: 'operator.grace',
    value: '30s',
    schema: named('^[1-9][0-9]{0,2}s$'),
    about:
      'From SIGTERM to the end, in whole seconds: sidecars are sent to another replica within it',
  },
  {
    path: 'operator.leaderElect',
    value: true,
    schema: flag,
    about: 'Let one replica write status, Events and certificates; `false` with one replica only',
  },
  {
    path: 'operator.evictUninjected',
    value: false,
    schema: flag,
    about:
      'Evict pods that asked for a sidecar and started without one; adds the right `pods/eviction`',
  },
  {
    path: 'operator.jwksHosts',
    value: [],
    schema: listOf(named('^(\\*\\.)?[A-Za-z0-9.-]{1,253}$')),
    about: 'Hosts that key sets may be fetched from (`*.example.com` allowed); empty: any',
  },
  {
    path: 'operator.streamUrl',
    value: '',
    schema: named('^(https://[^\\s/?#]+)?$'),
    about: 'Where sidecars find the operator, `https://HOST:PORT`; empty: its Service',
  },
  {
    path: 'operator.listenAddress',
    value: '[::]',
    schema: named('^(\\[[0-9A-Fa-f:.%]+\\]|[A-Za-z0-9._-]+)$'),
    about: 'Address of the three listeners; `0.0.0.0` on nodes where IPv6 is switched off',
  },
  { path: 'operator.ports.webhook', value: 9443, schema: port, about: 'For the API server' },
  { path: 'operator.ports.stream', value: 8443, schema: port, about: 'For sidecars' },
  {
    path: 'operator.ports.admin',
    value: 8080,
    schema: port,
    about: 'For the kubelet and Prometheus: `/healthz`, `/readyz`, `/metrics`',
  },
];

const workload: readonly ChartValue[] = [
  {
    path: 'operator.replicas',
    value: 2,
    schema: integer(1, 15),
    about: 'Each answers the webhook and holds streams; one of them writes',
  },
  ...imageValues('operator.image', { registry: 'weir.dev', repository: 'operator' }),
  pullPolicyValue('operator.image.pullPolicy'),
  ...settings,
  {
    path: 'operator.resources',
    value: { requests: { cpu: '100m', memory: '256Mi' }, limits: { memory: '512Mi' } },
    schema: resources,
    about:
      'No CPU limit: a throttled replica loses its Lease. 512 MiB hold a thousand sidecars, see docs/sizing.md',
  },
  {
    path: 'operator.nodeOptions',
    value: '',
    schema: text,
    about:
      '`NODE_OPTIONS`; `--max-semi-space-size=8` saves memory and costs processor time at each edit',
  },
  {
    path: 'operator.terminationGracePeriodSeconds',
    value: null,
    schema: orNull(integer(1, 3_600)),
    about: '`null`: `operator.grace` and 15 s more',
  },
  {
    path: 'operator.minReadySeconds',
    value: 5,
    schema: integer(0, 600),
    about: 'How long a new replica is ready before an old one goes, so that every node knows it',
  },
  {
    path: 'operator.revisionHistoryLimit',
    value: 3,
    schema: integer(0, 100),
    about: 'Old ReplicaSets to keep',
  },
  {
    path: 'operator.hostNetwork',
    value: false,
    schema: flag,
    about:
      'For clusters whose API server does not reach pods; replicas then need nodes of their own',
  },
  {
    path: 'operator.extraEnv',
    value: [],
    schema: {
      type: 'array',
      items: {
        ...closed({ name: named('^[A-Za-z_][A-Za-z0-9_]*$'), value: text, valueFrom: anyObject }),
        required: ['name'],
      },
    },
    about: 'Further variables, as a container has them, e.g. `HTTPS_PROXY`',
  },
  { path: 'operator.extraVolumes', value: [], schema: objects, about: 'Further volumes' },
  { path: 'operator.extraVolumeMounts', value: [], schema: objects, about: 'Where they are' },
];

const pods: readonly ChartValue[] = [
  { path: 'operator.podLabels', value: {}, schema: textMap, about: 'Further labels of the pods' },
  {
    path: 'operator.podAnnotations',
    value: {},
    schema: textMap,
    about: 'Further annotations of the pods',
  },
  {
    path: 'operator.podSecurityContext',
    value: RESTRICTED_POD,
    schema: anyObject,
    about: 'The image has a numeric user, and any other will do',
  },
  {
    path: 'operator.securityContext',
    value: RESTRICTED_CONTAINER,
    schema: anyObject,
    about: 'Of the container; passes Pod Security `restricted`',
  },
  ...placementValues('operator'),
  {
    path: 'operator.topologySpreadConstraints',
    value: [
      {
        ...{ maxSkew: 1, topologyKey: 'kubernetes.io/hostname' },
        whenUnsatisfiable: 'ScheduleAnyway',
      },
    ],
    schema: objects,
    about: 'Without a `labelSelector` of their own they get that of the replicas',
  },
  {
    path: 'operator.podDisruptionBudget.enabled',
    value: true,
    schema: flag,
    about: 'Made for more than one replica only: with one it would block every drain',
  },
  {
    path: 'operator.podDisruptionBudget.maxUnavailable',
    value: 1,
    schema: { type: ['integer', 'string'], pattern: '^([1-9][0-9]?|100)%$', minimum: 1 },
    about: 'A number or a percentage',
  },
];

export const operatorSection: Section = {
  name: 'The operator',
  values: [
    ...workload,
    ...pods,
    {
      path: 'service.annotations',
      value: {},
      schema: textMap,
      about: 'Annotations of its Service',
    },
    {
      path: 'serviceAccount.create',
      value: true,
      schema: flag,
      about: 'Make its ServiceAccount',
    },
    {
      path: 'serviceAccount.name',
      value: '',
      schema: objectName,
      about: "Empty: the operator's name, or `default` when none is made",
    },
    { path: 'serviceAccount.annotations', value: {}, schema: textMap, about: 'Its annotations' },
    {
      path: 'rbac.create',
      value: true,
      schema: flag,
      about: 'Make its roles and bindings (docs/rbac.md)',
    },
    {
      path: 'rbac.aggregate',
      value: true,
      schema: flag,
      about: 'Let who may `view` or `edit` a namespace do so with its policies',
    },
    {
      path: 'watchNamespaces',
      value: [],
      schema: listOf({ ...labelName, minLength: 1 }),
      about: 'Namespaces to work in, with a Role in each of them; empty: all, with a ClusterRole',
    },
  ],
};

const sidecarResources: readonly ChartValue[] = (
  [
    ['requests.cpu', '20m', 'CPU request of a sidecar'],
    ['requests.memory', '128Mi', 'Memory request of a sidecar'],
    ['limits.cpu', '1', 'CPU limit of a sidecar whose app has one'],
    ['limits.memory', '256Mi', 'Memory limit of a sidecar'],
  ] as const
).map(([path, value, about]) => ({
  path: `sidecar.resources.${path}`,
  value,
  schema: quantity,
  about,
}));

export const sidecarSection: Section = {
  name: 'Sidecars: what pods get that say nothing else by annotation',
  values: [
    ...imageValues('sidecar.image', { registry: 'weir.dev', repository: 'sidecar' }),
    pullPolicyValue('sidecar.image.pullPolicy'),
    {
      path: 'sidecar.imagePullSecrets',
      value: [],
      schema: listOf(named('^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$')),
      about: 'Names of Secrets that injected pods pull with; they must exist beside those pods',
    },
    {
      path: 'sidecar.mode',
      value: 'auto',
      schema: choice(['auto', 'takeover', 'redirect']),
      about: '`auto`, `takeover` or `redirect` (docs/injection.md)',
    },
    {
      path: 'sidecar.onNoConfig',
      value: 'deny',
      schema: choice(['deny', 'allow']),
      about: 'What a sidecar does that has never heard of any policy',
    },
    {
      path: 'sidecar.drainSeconds',
      value: 5,
      schema: integer(0, 3_600),
      about: 'How long an app without a `preStop` hook of its own sleeps before it ends; 0: not',
    },
    {
      path: 'sidecar.workers',
      value: 0,
      schema: integer(0, 16),
      about:
        'Worker processes behind a parent that restarts a crashed one at once (some 45 MiB more); 0: one process, which the kubelet restarts',
    },
    {
      path: 'sidecar.logLevel',
      value: 'info',
      schema: logLevel,
      about: '`error`, `warn`, `info` or `debug`',
    },
    {
      path: 'sidecar.storeDeadline',
      value: '',
      schema: duration,
      about: "How long a decision may wait for the store, e.g. `50ms`; empty: the sidecar's own",
    },
    ...sidecarResources,
    ...imageValues('redirectInit.image', { registry: 'weir.dev', repository: 'redirect-init' }),
  ],
};
