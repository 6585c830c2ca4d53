// Every setting of `weir operator`, once: the command line, the environment, the chart's arguments and
// docs/configuration.md are made from this table.
import {
  list,
  one,
  parsePath,
  parseChoice,
  parseDuration,
  parseHostPort,
  parseInteger,
  parseSwitch,
  parseText,
  type HostPort,
  type Setting,
} from '../contract/setting.ts';
import { imageReference } from './injection/image-reference.ts';
import { WORKERS_MAX } from './injection/pod-settings.ts';
import { settingsOf, type SettingsTable } from '../contract/settings-reading.ts';

const dnsLabel = parseText(
  /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/,
  'a name of lower-case letters, digits and hyphens, such as weir-system',
);
const objectName = parseText(
  /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/,
  'the name of an object, such as weir-store',
);
const image = parseText(imageReference.pattern, `${imageReference.values}, such as weir:1.0`);
const quantity = parseText(
  /^(0|[1-9][0-9]{0,15})(\.[0-9]{1,3})?(m|k|Ki|M|Mi|G|Gi)?$/,
  'a Kubernetes quantity, such as 50m or 128Mi',
);
const hostName = parseText(/^(\*\.)?[A-Za-z0-9.-]{1,253}$/, 'a host, such as idp.example.com');

/** What `weir operator` was told; every field is parsed and within its bounds. Durations in ms. */
export interface OperatorConfig {
  readonly kubeconfig: string | undefined;
  readonly namespace: string;
  readonly podName: string | undefined;
  readonly podUid: string | undefined;
  readonly watchNamespaces: readonly string[];
  readonly webhook: HostPort;
  readonly stream: HostPort;
  readonly admin: HostPort;
  readonly service: string;
  readonly streamUrl: string | undefined;
  readonly webhookConfiguration: string;
  readonly certificates: 'own' | 'files';
  readonly certificateDir: string | undefined;
  readonly certificateNames: readonly string[];
  readonly manageCaBundle: boolean;
  readonly storeSecret: string | undefined;
  readonly deadline: number | undefined;
  readonly image: string;
  readonly redirectImage: string;
  readonly imagePullPolicy: 'Always' | 'IfNotPresent' | 'Never' | undefined;
  readonly imagePullSecrets: readonly string[];
  readonly mode: 'auto' | 'takeover' | 'redirect';
  readonly onNoConfig: 'deny' | 'allow';
  readonly drainSeconds: number;
  readonly sidecarWorkers: number;
  readonly sidecarLogLevel: 'error' | 'warn' | 'info' | 'debug';
  readonly sidecarCpuRequest: string;
  readonly sidecarCpuLimit: string;
  readonly sidecarMemoryRequest: string;
  readonly sidecarMemoryLimit: string;
  readonly jwksHosts: readonly string[];
  readonly evictUninjected: boolean;
  readonly leaderElect: boolean;
  readonly grace: number;
  readonly logLevel: 'error' | 'warn' | 'info' | 'debug';
}

const LEVELS = ['error', 'warn', 'info', 'debug'] as const;

const table: SettingsTable<OperatorConfig> = {
  kubeconfig: {
    placeholder: 'FILE',
    summary: "how to reach the API server; absent = KUBECONFIG, else the pod's own account",
    written: undefined,
    parse: parsePath,
    ...one,
  },
  namespace: {
    placeholder: 'NAME',
    summary: 'where the operator runs: its Lease and its Secrets are there',
    written: 'weir-system',
    parse: dnsLabel,
    ...one,
  },
  podName: {
    placeholder: 'NAME',
    summary: 'the pod the operator runs in; absent = the name of the host',
    written: undefined,
    parse: objectName,
    ...one,
  },
  podUid: {
    placeholder: 'UID',
    summary: 'its uid: what the operator writes for itself goes away with it',
    written: undefined,
    parse: parseText(/^[0-9a-f-]{36}$/, 'the uid of a pod'),
    ...one,
  },
  watchNamespaces: {
    placeholder: 'NAME',
    summary: 'namespaces to work in; absent = all',
    written: undefined,
    parse: dnsLabel,
    ...list,
  },
  webhook: {
    placeholder: 'ADDR:PORT',
    summary: 'where the API server asks about new pods',
    written: '[::]:9443',
    parse: parseHostPort(0),
    ...one,
  },
  stream: {
    placeholder: 'ADDR:PORT',
    summary: 'where sidecars hold their streams',
    written: '[::]:8443',
    parse: parseHostPort(0),
    ...one,
  },
  admin: {
    placeholder: 'ADDR:PORT',
    summary: 'where to serve /healthz, /readyz and /metrics',
    written: '[::]:8080',
    parse: parseHostPort(0),
    ...one,
  },
  service: {
    placeholder: 'NAME',
    summary: 'the Service in front of the operator; its name is in the certificates',
    written: 'weir-operator',
    parse: dnsLabel,
    ...one,
  },
  streamUrl: {
    placeholder: 'URL',
    summary: 'where sidecars find the stream; absent = https://SERVICE.NAMESPACE.svc:8443',
    written: undefined,
    parse: parseText(/^https:\/\/[^\s/?#]+$/, 'https://HOST:PORT'),
    ...one,
  },
  webhookConfiguration: {
    placeholder: 'NAME',
    summary: 'the MutatingWebhookConfiguration whose caBundle the operator keeps',
    written: 'weir-inject',
    parse: objectName,
    ...one,
  },
  certificates: {
    placeholder: 'own|files',
    summary: 'an own CA in a Secret, or files that somebody else renews (cert-manager)',
    written: 'own',
    parse: parseChoice(['own', 'files']),
    ...one,
  },
  certificateDir: {
    placeholder: 'DIR',
    summary: 'folder with tls.crt, tls.key and ca.crt; for --certificates files',
    written: undefined,
    parse: parsePath,
    ...one,
  },
  certificateNames: {
    placeholder: 'NAME',
    summary: 'further names and addresses for the own certificate, beside those of the Service',
    written: undefined,
    parse: parseText(/^[A-Za-z0-9.:_-]{1,253}$/, 'a DNS name or an address'),
    ...list,
  },
  manageCaBundle: {
    placeholder: 'true|false',
    summary: 'write the CA into the webhook configuration; false when cert-manager does',
    written: 'true',
    parse: parseSwitch,
    ...one,
  },
  storeSecret: {
    placeholder: 'NAME',
    summary: 'the Secret that says how sidecars reach the store; absent = there is no store',
    written: undefined,
    parse: objectName,
    ...one,
  },
  deadline: {
    placeholder: 'DURATION',
    summary: "how long a sidecar's decision may wait for the store; absent = the sidecar's own",
    written: undefined,
    parse: parseDuration,
    ...one,
  },
  image: {
    placeholder: 'IMAGE',
    summary: 'image of the sidecar',
    written: 'weir.dev/sidecar:0.1.0',
    parse: image,
    ...one,
  },
  redirectImage: {
    placeholder: 'IMAGE',
    summary: 'image that writes the redirect rules; that of the sidecar has not what it takes',
    written: 'weir.dev/redirect-init:0.1.0',
    parse: image,
    ...one,
  },
  imagePullPolicy: {
    placeholder: 'POLICY',
    summary: "Always, IfNotPresent or Never; absent = the cluster's default",
    written: undefined,
    parse: parseChoice(['Always', 'IfNotPresent', 'Never']),
    ...one,
  },
  imagePullSecrets: {
    placeholder: 'NAME',
    summary: 'Secrets to pull the images with; they must exist beside the pods',
    written: undefined,
    parse: objectName,
    ...list,
  },
  mode: {
    placeholder: 'MODE',
    summary: 'auto, takeover or redirect, for pods that do not say',
    written: 'auto',
    parse: parseChoice(['auto', 'takeover', 'redirect']),
    ...one,
  },
  onNoConfig: {
    placeholder: 'deny|allow',
    summary: 'what a sidecar does that has never heard of any policy, for pods that do not say',
    written: 'deny',
    parse: parseChoice(['deny', 'allow']),
    ...one,
  },
  drainSeconds: {
    placeholder: 'N',
    summary: 'how long an app without a preStop hook of its own sleeps before it ends; 0 = not',
    written: '5',
    parse: parseInteger(0, 3_600),
    ...one,
  },
  sidecarLogLevel: {
    placeholder: 'LEVEL',
    summary: 'error, warn, info or debug, for pods that do not say',
    written: 'info',
    parse: parseChoice(LEVELS),
    ...one,
  },
  sidecarWorkers: {
    placeholder: 'N',
    summary:
      'worker processes of a sidecar, behind a parent that restarts them; 0 = one process, for pods that do not say',
    written: '0',
    parse: parseInteger(0, WORKERS_MAX),
    ...one,
  },
  sidecarCpuRequest: {
    placeholder: 'QUANTITY',
    summary: 'CPU request of a sidecar',
    written: '20m',
    parse: quantity,
    ...one,
  },
  sidecarCpuLimit: {
    placeholder: 'QUANTITY',
    summary: 'CPU limit of a sidecar whose app has one',
    written: '1',
    parse: quantity,
    ...one,
  },
  sidecarMemoryRequest: {
    placeholder: 'QUANTITY',
    summary: 'memory request of a sidecar',
    written: '128Mi',
    parse: quantity,
    ...one,
  },
  sidecarMemoryLimit: {
    placeholder: 'QUANTITY',
    summary: 'memory limit of a sidecar',
    written: '256Mi',
    parse: quantity,
    ...one,
  },
  jwksHosts: {
    placeholder: 'HOST',
    summary: 'hosts that key sets may be fetched from (*.example.com allowed); absent = any',
    written: undefined,
    parse: hostName,
    ...list,
  },
  evictUninjected: {
    placeholder: 'true|false',
    summary: 'evict pods that asked for a sidecar and started without one',
    written: 'false',
    parse: parseSwitch,
    ...one,
  },
  leaderElect: {
    placeholder: 'true|false',
    summary: 'let one replica of several write status, Events and certificates',
    written: 'true',
    parse: parseSwitch,
    ...one,
  },
  grace: {
    placeholder: 'DURATION',
    summary: 'time from SIGTERM to the end; sidecars are sent to another replica within it',
    written: '30s',
    parse: parseDuration,
    ...one,
  },
  logLevel: {
    placeholder: 'LEVEL',
    summary: 'error, warn, info or debug',
    written: 'info',
    parse: parseChoice(LEVELS),
    ...one,
  },
};

/** The settings in the order in which help and docs list them. */
export const operatorSettings: readonly Setting<unknown>[] = settingsOf(table);
