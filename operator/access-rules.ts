// What the operator may do, as RBAC rules: what it really calls, and nothing else. The chart, the development cluster and
// the tests are made from or compared with this list, and docs/rbac.md says why each is needed.
import type { OperatorConfig } from './operator-settings.ts';

export interface AccessRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

type ClusterSettings = Pick<OperatorConfig, 'webhookConfiguration' | 'evictUninjected'>;

/** In every namespace that is watched. */
export function watchedRules({ evictUninjected }: ClusterSettings): readonly AccessRule[] {
  const rules: AccessRule[] = [
    { apiGroups: ['weir.dev'], resources: ['ratelimitpolicies'], verbs: ['list', 'watch'] },
    { apiGroups: ['weir.dev'], resources: ['ratelimitpolicies/status'], verbs: ['patch'] },
    { apiGroups: [''], resources: ['pods', 'services'], verbs: ['list', 'watch'] },
    { apiGroups: ['apps'], resources: ['replicasets'], verbs: ['list', 'watch'] },
    { apiGroups: ['batch'], resources: ['jobs'], verbs: ['list', 'watch'] },
    {
      apiGroups: ['events.k8s.io'],
      resources: ['events'],
      verbs: ['create', 'patch', 'list', 'watch'],
    },
  ];
  if (!evictUninjected) return rules;
  return [...rules, { apiGroups: [''], resources: ['pods/eviction'], verbs: ['create'] }];
}

/** What has no namespace. */
export function clusterRules({ webhookConfiguration }: ClusterSettings): readonly AccessRule[] {
  return [
    { apiGroups: [''], resources: ['namespaces'], verbs: ['list', 'watch'] },
    { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
    {
      apiGroups: ['authorization.k8s.io'],
      resources: ['selfsubjectaccessreviews'],
      verbs: ['create'],
    },
    {
      apiGroups: ['admissionregistration.k8s.io'],
      resources: ['mutatingwebhookconfigurations'],
      resourceNames: [webhookConfiguration],
      verbs: ['get', 'list', 'watch', 'patch'],
    },
  ];
}

/** In the operator's own namespace. Creation cannot be bound to a name. */
export function ownRules({
  storeSecret,
}: Pick<OperatorConfig, 'storeSecret'>): readonly AccessRule[] {
  const rules: AccessRule[] = [
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
    {
      apiGroups: ['coordination.k8s.io'],
      resources: ['leases'],
      resourceNames: ['weir-operator'],
      verbs: ['get', 'update'],
    },
    { apiGroups: [''], resources: ['secrets'], verbs: ['create'] },
    {
      apiGroups: [''],
      resources: ['secrets'],
      resourceNames: ['weir-ca'],
      verbs: ['get', 'update'],
    },
    {
      apiGroups: [''],
      resources: ['configmaps'],
      verbs: ['create', 'patch', 'delete', 'list', 'watch'],
    },
  ];
  if (storeSecret === undefined) return rules;
  return [
    ...rules,
    {
      apiGroups: [''],
      resources: ['secrets'],
      resourceNames: [storeSecret],
      verbs: ['list', 'watch'],
    },
  ];
}
