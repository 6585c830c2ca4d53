// What the operator may do, as RBAC rules: what it really calls, and nothing else. The chart, the development cluster and
// the tests are made from or compared with this list, and docs/rbac.md says why each is needed.
import type { OperatorConfig } from './operator-settings.ts';

export interface AccessRule {
  /** What it is needed for, as a sentence without a full stop. */
  readonly reason: string;
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

type ClusterSettings = Pick<
  OperatorConfig,
  'webhookConfiguration' | 'manageCaBundle' | 'evictUninjected'
>;

/** In every namespace that is watched. */
export function watchedRules({ evictUninjected }: ClusterSettings): readonly AccessRule[] {
  const rules: AccessRule[] = [
    {
      reason: 'the policies',
      apiGroups: ['weir.dev'],
      resources: ['ratelimitpolicies'],
      verbs: ['list', 'watch'],
    },
    {
      reason: 'their status, by the replica that leads',
      apiGroups: ['weir.dev'],
      resources: ['ratelimitpolicies/status'],
      verbs: ['patch'],
    },
    {
      reason:
        'which pods a policy selects, whose token a sidecar shows, and which Services lead around a sidecar',
      apiGroups: [''],
      resources: ['pods', 'services'],
      verbs: ['list', 'watch'],
    },
    {
      reason: 'the Deployment behind a pod (metadata only)',
      apiGroups: ['apps'],
      resources: ['replicasets'],
      verbs: ['list', 'watch'],
    },
    {
      reason: 'the CronJob behind a pod (metadata only)',
      apiGroups: ['batch'],
      resources: ['jobs'],
      verbs: ['list', 'watch'],
    },
    {
      reason:
        'Events on policies, Services and owners of pods; those of controllers that could not create an injected pod',
      apiGroups: ['events.k8s.io'],
      resources: ['events'],
      verbs: ['create', 'patch', 'list', 'watch'],
    },
  ];
  if (!evictUninjected) return rules;
  return [
    ...rules,
    {
      reason:
        'evicting pods that started without the sidecar they asked for; only with --evict-uninjected',
      apiGroups: [''],
      resources: ['pods/eviction'],
      verbs: ['create'],
    },
  ];
}

/** What has no namespace. */
export function clusterRules({
  webhookConfiguration,
  manageCaBundle,
}: ClusterSettings): readonly AccessRule[] {
  return [
    {
      reason: 'the label weir.dev/inject and the Pod Security level of a namespace (metadata only)',
      apiGroups: [''],
      resources: ['namespaces'],
      verbs: ['list', 'watch'],
    },
    {
      reason: 'whether the token that a sidecar shows is that of its pod',
      apiGroups: ['authentication.k8s.io'],
      resources: ['tokenreviews'],
      verbs: ['create'],
    },
    {
      reason: 'asking at the start whether tokens may be reviewed',
      apiGroups: ['authorization.k8s.io'],
      resources: ['selfsubjectaccessreviews'],
      verbs: ['create'],
    },
    {
      reason: manageCaBundle
        ? 'keeping the CA in the webhook configuration'
        : 'whether the webhook configuration trusts the certificate',
      apiGroups: ['admissionregistration.k8s.io'],
      resources: ['mutatingwebhookconfigurations'],
      resourceNames: [webhookConfiguration],
      verbs: manageCaBundle ? ['get', 'list', 'watch', 'patch'] : ['list', 'watch'],
    },
  ];
}

/** In the operator's own namespace. Creation cannot be bound to a name. */
export function ownRules({
  storeSecret,
  certificates,
}: Pick<OperatorConfig, 'storeSecret' | 'certificates'>): readonly AccessRule[] {
  const rules: AccessRule[] = [
    {
      reason: 'the Lease of the replica that leads; creation cannot be bound to a name',
      apiGroups: ['coordination.k8s.io'],
      resources: ['leases'],
      verbs: ['create'],
    },
    {
      reason: 'renewing and releasing it',
      apiGroups: ['coordination.k8s.io'],
      resources: ['leases'],
      resourceNames: ['weir-operator'],
      verbs: ['get', 'update'],
    },
    ...(certificates === 'own' ? OWN_AUTHORITY : []),
    {
      reason: 'what each replica tells the others of its sidecars',
      apiGroups: [''],
      resources: ['configmaps'],
      verbs: ['create', 'patch', 'delete', 'list', 'watch'],
    },
  ];
  if (storeSecret === undefined) return rules;
  return [
    ...rules,
    {
      reason: 'how sidecars reach the store',
      apiGroups: [''],
      resources: ['secrets'],
      resourceNames: [storeSecret],
      verbs: ['list', 'watch'],
    },
  ];
}

/** Not where somebody else makes the certificates. */
const OWN_AUTHORITY: readonly AccessRule[] = [
  {
    reason: 'the Secret of the own CA; creation cannot be bound to a name',
    apiGroups: [''],
    resources: ['secrets'],
    verbs: ['create'],
  },
  {
    reason: 'rotating the own CA',
    apiGroups: [''],
    resources: ['secrets'],
    resourceNames: ['weir-ca'],
    verbs: ['get', 'update'],
  },
];

/** As RBAC objects hold it. */
export function withoutReason(rule: AccessRule): Omit<AccessRule, 'reason'> {
  const { apiGroups, resources, verbs, resourceNames } = rule;
  return { apiGroups, resources, verbs, ...(resourceNames === undefined ? {} : { resourceNames }) };
}
