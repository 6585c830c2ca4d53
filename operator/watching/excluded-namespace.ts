// Namespaces whose pods the webhook never sees, whatever they ask for: a cluster must be able to start without us.
const CLUSTERS_OWN: ReadonlySet<string> = new Set([
  ...['kube-system', 'kube-public', 'kube-node-lease'],
]);

/** `own`: where the operator runs. */
export function isExcludedNamespace(namespace: string, own: string): boolean {
  return namespace === own || CLUSTERS_OWN.has(namespace);
}
