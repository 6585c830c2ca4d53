// Every value of charts/weir, in the order of values.yaml.
import {
  operatorSection,
  RESTRICTED_CONTAINER,
  RESTRICTED_POD,
  sidecarSection,
} from './operator-values.ts';
import {
  anyObject,
  choice,
  closed,
  flag,
  imageValues,
  integer,
  labelName,
  listOf,
  named,
  objectName,
  objects,
  placementValues,
  pullPolicyValue,
  resources,
  registryName,
  secretNames,
  text,
  textMap,
  type ChartValue,
  type Section,
} from './value.ts';

const general: Section = {
  name: 'General',
  values: [
    {
      path: 'global.imageRegistry',
      value: '',
      schema: registryName,
      about: 'Registry of every image, in place of their own (docs/private-registries.md)',
    },
    {
      path: 'nameOverride',
      value: '',
      schema: labelName,
      about: '`app.kubernetes.io/name`; empty: the chart’s name',
    },
    {
      path: 'fullnameOverride',
      value: '',
      schema: named('^([a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?)?$'),
      about: 'What the names of objects begin with; empty: the release’s name, with `weir` in it',
    },
    { path: 'commonLabels', value: {}, schema: textMap, about: 'Labels of every object' },
    {
      path: 'imagePullSecrets',
      value: [],
      schema: secretNames,
      about: 'Secrets that the pods of this release pull with: `[{name: …}]`',
    },
    {
      path: 'crds.enabled',
      value: true,
      schema: flag,
      about: 'Install the CustomResourceDefinition; `false` when somebody else does',
    },
    {
      path: 'crds.keep',
      value: true,
      schema: flag,
      about: 'Leave it, and so every policy, when the release is uninstalled',
    },
  ],
};

const redis: Section = {
  name: 'The store: exactly one of embedded, url, existingSecret; or none',
  values: [
    {
      path: 'redis.embedded.enabled',
      value: true,
      schema: flag,
      about: 'A small Redis to try Weir with: no copy, no persistence, no password',
    },
    ...imageValues('redis.embedded.image', {
      ...{ registry: 'docker.io', repository: 'library/redis', tag: '7.2' },
    }),
    pullPolicyValue('redis.embedded.image.pullPolicy'),
    {
      path: 'redis.embedded.command',
      value: ['redis-server'],
      schema: { type: 'array', items: text },
      about: 'What the container starts; the name of the configuration file is its argument',
    },
    {
      path: 'redis.embedded.maxMemory',
      value: '128mb',
      schema: named('^[1-9][0-9]{0,8}(kb|mb|gb)$'),
      about: '`maxmemory`. When it is full, the failure mode decides: a bucket is never evicted',
    },
    {
      path: 'redis.embedded.resources',
      value: { requests: { cpu: '50m', memory: '64Mi' }, limits: { memory: '256Mi' } },
      schema: resources,
      about: 'Keep the limit well above `maxMemory`',
    },
    {
      path: 'redis.embedded.podSecurityContext',
      value: { ...RESTRICTED_POD, runAsUser: 999, runAsGroup: 999 },
      schema: anyObject,
      about:
        'The image begins as root, so a user is named; on OpenShift set `runAsUser` and `runAsGroup` to `null`',
    },
    {
      path: 'redis.embedded.securityContext',
      value: RESTRICTED_CONTAINER,
      schema: anyObject,
      about: 'Of the container',
    },
    ...placementValues('redis.embedded'),
    {
      path: 'redis.url',
      value: '',
      // Its form is looked at in the templates: a schema that refuses it would print it, password and all.
      schema: text,
      about: 'An external store; a password in it is readable in the release, so rather:',
    },
    {
      path: 'redis.existingSecret',
      value: '',
      schema: objectName,
      about: 'A Secret of the release’s namespace (docs/operator-configuration.md has its keys)',
    },
    {
      path: 'redis.secretName',
      value: '',
      schema: objectName,
      about:
        'Name of the Secret that the chart makes for the two others; empty: the release’s, with `-store-made-by-chart`',
    },
  ],
};

const webhook: Section = {
  name: 'The webhook that injects sidecars',
  values: [
    {
      path: 'webhookConfiguration.name',
      value: 'weir-inject',
      schema: { ...objectName, minLength: 1 },
      about: 'One per cluster and release: another release needs another name',
    },
    {
      path: 'webhookConfiguration.annotations',
      value: {},
      schema: textMap,
      about: 'Its annotations',
    },
    {
      path: 'webhookConfiguration.timeoutSeconds',
      value: 3,
      schema: integer(1, 30),
      about: 'How long the creation of a pod that asks may wait for an answer',
    },
    {
      path: 'webhookConfiguration.namespaceSelector',
      value: [],
      schema: objects,
      about: 'Further `matchExpressions` that a namespace must meet',
    },
    {
      path: 'webhookConfiguration.matchConditions',
      value: [],
      schema: objects,
      about:
        'Further conditions (CEL) of a pod. One that fails on a pod refuses it: write `object.?a.?b.orValue(…)`',
    },
    {
      path: 'webhookConfiguration.entries.enabled',
      value: true,
      schema: flag,
      about: 'Ask about pods with `weir.dev/inject: enabled`; they start bare while nobody answers',
    },
    {
      path: 'webhookConfiguration.entries.required',
      value: true,
      schema: flag,
      about:
        'Ask about pods with `weir.dev/inject: required`; they are refused while nobody answers',
    },
    {
      path: 'webhookConfiguration.entries.namespace',
      value: true,
      schema: flag,
      about: 'Ask about pods that say nothing, in namespaces labelled `weir.dev/inject`',
    },
  ],
};

const certificates: Section = {
  name: 'Certificates of the webhook and of the stream',
  values: [
    {
      path: 'certificates.mode',
      value: 'own',
      schema: choice(['own', 'cert-manager', 'files']),
      about: '`own`: the operator keeps a CA; `cert-manager`; `files`: a Secret that you bring',
    },
    {
      path: 'certificates.names',
      value: [],
      schema: listOf(named('^[A-Za-z0-9.:_-]{1,253}$')),
      about: 'Further names for the certificate, beside those of the Service',
    },
    {
      path: 'certificates.certManager.issuerRef',
      value: {},
      schema: {
        ...closed({ name: { ...objectName, minLength: 1 }, kind: text, group: text }),
        // All or nothing.
        dependencies: { kind: ['name'], group: ['name'] },
      },
      about: 'An Issuer of yours with a CA (`name`, `kind`, `group`); empty: one is made',
    },
    {
      path: 'certificates.certManager.duration',
      value: '2160h',
      schema: named('^[1-9][0-9]{0,5}h$'),
      about: 'How long the certificate is good',
    },
    {
      path: 'certificates.files.secretName',
      value: '',
      schema: objectName,
      about: 'Holds `tls.crt`, `tls.key` and `ca.crt`',
    },
    {
      path: 'certificates.files.manageCaBundle',
      value: true,
      schema: flag,
      about: 'Write its `ca.crt` into the webhook configuration; `false` when somebody else does',
    },
  ],
};

const monitoring: Section = {
  name: 'Monitoring; resources of the Prometheus Operator only where it is installed',
  values: [
    ...['serviceMonitor', 'podMonitor'].flatMap((kind): readonly ChartValue[] => [
      {
        path: `monitoring.${kind}.enabled`,
        value: false,
        schema: flag,
        about: kind === 'podMonitor' ? 'Scrape the sidecars' : 'Scrape the operator',
      },
      {
        path: `monitoring.${kind}.interval`,
        value: '30s',
        schema: named('^[1-9][0-9]{0,3}(s|m)$'),
        about: 'How often',
      },
      { path: `monitoring.${kind}.labels`, value: {}, schema: textMap, about: 'Its labels' },
    ]),
    {
      path: 'monitoring.prometheusRule.enabled',
      value: false,
      schema: flag,
      about: 'Alerts for the operator, the sidecars, and the API server’s view of the webhook',
    },
    { path: 'monitoring.prometheusRule.labels', value: {}, schema: textMap, about: 'Its labels' },
    {
      path: 'monitoring.dashboard.enabled',
      value: false,
      schema: flag,
      about: 'A ConfigMap with a Grafana dashboard',
    },
    {
      path: 'monitoring.dashboard.labels',
      value: { grafana_dashboard: '1' },
      schema: textMap,
      about: 'What Grafana’s sidecar looks for',
    },
    {
      path: 'monitoring.dashboard.annotations',
      value: {},
      schema: textMap,
      about: 'Such as the folder',
    },
  ],
};

const peers = 'as a NetworkPolicy has them';
const network: Section = {
  name: 'NetworkPolicy',
  values: [
    {
      path: 'networkPolicy.enabled',
      value: false,
      schema: flag,
      about: 'Limit who reaches the operator and the embedded Redis',
    },
    {
      path: 'networkPolicy.metricsFrom',
      value: [],
      schema: objects,
      about: `Who may scrape the operator, ${peers}; empty: everybody`,
    },
    {
      path: 'networkPolicy.streamFrom',
      value: [],
      schema: objects,
      about: `Who may hold a stream, ${peers}; empty: every injected pod`,
    },
    {
      path: 'networkPolicy.egress',
      value: [],
      schema: objects,
      about:
        'Rules for what the operator may reach; empty: everything. It needs the API server, DNS and the hosts of key sets',
    },
  ],
};

const test: Section = {
  name: '`helm test`',
  values: [
    {
      path: 'test.enabled',
      value: true,
      schema: flag,
      about: 'Have the test pod and its rights made when `helm test` runs',
    },
    {
      path: 'test.namespace',
      value: '',
      schema: labelName,
      about:
        'Where the dry run asks for a pod, a namespace that the webhook serves; empty: the first of `watchNamespaces`, else `default`',
    },
    {
      path: 'test.timeoutSeconds',
      value: 60,
      schema: integer(1, 600),
      about: 'How long it tries',
    },
    {
      path: 'test.resources',
      value: { requests: { cpu: '50m', memory: '64Mi' }, limits: { memory: '256Mi' } },
      schema: resources,
      about: 'Of the test pod',
    },
  ],
};

export const chartSections: readonly Section[] = [
  general,
  operatorSection,
  sidecarSection,
  redis,
  webhook,
  certificates,
  monitoring,
  network,
  test,
];
