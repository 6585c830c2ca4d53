// The MutatingWebhookConfiguration: who is asked about which pod, and what happens when nobody answers. The names of
// the entries are kept for ever: caBundles are written to them, dashboards count them, and the name of the required
// one is all that a person reads when the operator is away.
import { ADMISSION_LABEL, annotations } from '../../contract/names.ts';
import type { KubeObject, Resource } from '../kube/object.ts';
import { MUTATE_PATH } from './server.ts';

export const webhookConfigurationResource: Resource = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural: 'mutatingwebhookconfigurations',
  kind: 'MutatingWebhookConfiguration',
  isNamespaced: false,
};

export const WEBHOOK_CONFIGURATION = 'weir-inject';

/** Entry names, in the order of the configuration. */
export const webhookEntries = {
  enabled: 'enabled.inject.weir.dev',
  required: 'start-weir-operator-or-set-inject-to-enabled.required.inject.weir.dev',
  namespace: 'namespace.inject.weir.dev',
} as const;

/** How long a pod's creation may wait for us: an answer from memory takes milliseconds. */
const WEBHOOK_TIMEOUT_SECONDS = 3;

export type ClientConfig =
  | { readonly url: string; readonly caBundle?: string }
  | {
      readonly service: {
        readonly namespace: string;
        readonly name: string;
        readonly port: number;
        readonly path: string;
      };
      readonly caBundle?: string;
    };

export interface WebhookConfiguration extends KubeObject {
  readonly webhooks: readonly WebhookEntry[];
}

export interface WebhookEntry {
  readonly name: string;
  readonly clientConfig: ClientConfig;
}

export interface ConfigurationOptions {
  /** Of the operator itself: its own pods must start without it. */
  readonly operatorNamespace: string;
  readonly target:
    /** From outside the cluster: `https://host:port`. */
    | { readonly url: string }
    | {
        readonly service: {
          readonly namespace: string;
          readonly name: string;
          readonly port: number;
        };
      };
  /** PEM text. Absent in a chart, which must never own the field. */
  readonly caPem?: string;
}

/** As the chart installs it, and as tests and the development cluster do. */
export function webhookConfiguration(options: ConfigurationOptions): WebhookConfiguration {
  const clientConfig = clientConfigOf(options);
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name: WEBHOOK_CONFIGURATION },
    webhooks: [
      entry(webhookEntries.enabled, {
        ...{ clientConfig, failurePolicy: 'Ignore', matchConditions: [ASKED, NOT_REQUIRED] },
        namespaceSelector: anyNamespace(options),
      }),
      entry(webhookEntries.required, {
        ...{ clientConfig, failurePolicy: 'Fail', matchConditions: [REQUIRED] },
        namespaceSelector: anyNamespace(options),
      }),
      entry(webhookEntries.namespace, {
        ...{ clientConfig, failurePolicy: 'Ignore', matchConditions: [POD_SAYS_NOTHING] },
        namespaceSelector: {
          matchExpressions: [
            ...anyNamespace(options).matchExpressions,
            { key: annotations.inject, operator: 'Exists' },
            { key: annotations.inject, operator: 'NotIn', values: ['disabled'] },
          ],
        },
      }),
    ],
  };
}

function clientConfigOf({ target, caPem }: ConfigurationOptions): ClientConfig {
  const trust = caPem === undefined ? {} : { caBundle: encodeCaBundle(caPem) };
  if ('url' in target) return { url: `${target.url}${MUTATE_PATH}`, ...trust };
  return { service: { ...target.service, path: MUTATE_PATH }, ...trust };
}

/** As `clientConfig.caBundle` holds it. */
function encodeCaBundle(pem: string): string {
  return Buffer.from(pem).toString('base64');
}

interface Requirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

function anyNamespace({ operatorNamespace }: ConfigurationOptions): {
  readonly matchExpressions: readonly Requirement[];
} {
  const closed = ['kube-system', 'kube-public', 'kube-node-lease', operatorNamespace];
  return {
    matchExpressions: [
      { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: closed },
      { key: ADMISSION_LABEL, operator: 'NotIn', values: ['disabled'] },
    ],
  };
}

interface Particulars {
  readonly clientConfig: ClientConfig;
  readonly failurePolicy: 'Ignore' | 'Fail';
  readonly namespaceSelector: unknown;
  readonly matchConditions: readonly MatchCondition[];
}

function entry(name: string, particulars: Particulars): WebhookEntry & Particulars {
  const rule = {
    apiGroups: [''],
    apiVersions: ['v1'],
    operations: ['CREATE'],
    resources: ['pods'],
  };
  const rest = {
    ...{ admissionReviewVersions: ['v1'], sideEffects: 'NoneOnDryRun' },
    ...{ reinvocationPolicy: 'IfNeeded', matchPolicy: 'Equivalent' },
    timeoutSeconds: WEBHOOK_TIMEOUT_SECONDS,
    rules: [{ ...rule, scope: 'Namespaced' }],
    objectSelector: {
      matchExpressions: [{ key: 'app.kubernetes.io/part-of', operator: 'NotIn', values: ['weir'] }],
    },
  };
  return { name, ...particulars, ...rest };
}

interface MatchCondition {
  readonly name: string;
  readonly expression: string;
}

// Each expression is total: one that fails follows the failurePolicy, and with Fail it would refuse every pod of the
// cluster. `namespaceObject` compiles here and is empty at run time, so the namespace's label is in the selector.
const written = (otherwise: string): string =>
  `object.metadata.?annotations[?'${annotations.inject}'].orValue(object.metadata.?labels[?'${annotations.inject}'].orValue('${otherwise}'))`;

const ASKED: MatchCondition = {
  name: 'asked',
  expression: `${written('')} != '' && ${written('')} != 'disabled'`,
};
const NOT_REQUIRED: MatchCondition = {
  name: 'not-required',
  expression: `${written('')} != 'required'`,
};
const REQUIRED: MatchCondition = {
  name: 'required',
  expression: `${written('')} == 'required'`,
};
const POD_SAYS_NOTHING: MatchCondition = {
  name: 'pod-says-nothing',
  expression: `${written('')} == ''`,
};
