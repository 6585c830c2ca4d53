// The collections the operator reads. RBAC follows from this list and from the writes of the outlets.
import type { Resource } from '../kube/object.ts';

function core(plural: string, kind: string): Resource {
  return { group: '', version: 'v1', plural, kind, isNamespaced: true };
}

export const podResource: Resource = core('pods', 'Pod');
export const serviceResource: Resource = core('services', 'Service');
export const namespaceResource: Resource = {
  ...core('namespaces', 'Namespace'),
  isNamespaced: false,
};
export const replicaSetResource: Resource = {
  group: 'apps',
  version: 'v1',
  plural: 'replicasets',
  kind: 'ReplicaSet',
  isNamespaced: true,
};
export const jobResource: Resource = {
  group: 'batch',
  version: 'v1',
  plural: 'jobs',
  kind: 'Job',
  isNamespaced: true,
};
