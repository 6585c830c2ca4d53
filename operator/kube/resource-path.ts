// Where a collection and its objects are found on the API server.
import type { ObjectName } from './api.ts';
import type { KubeObject, Resource } from './object.ts';

/** `group/version` as objects carry it; the core group has no name. */
export function apiVersionOf({ group, version }: Resource): string {
  return group === '' ? version : `${group}/${version}`;
}

/** Without a namespace: of the whole cluster. */
export function collectionPath(resource: Resource, namespace?: string): string {
  const root = resource.group === '' ? '/api' : '/apis';
  const within = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${root}/${apiVersionOf(resource)}${within}/${resource.plural}`;
}

/** Throws a TypeError (a bug of the caller) when name or namespace are not what the resource needs. */
export function objectPath(resource: Resource, { namespace, name }: ObjectName): string {
  if (name === '') throw new TypeError(`a ${resource.kind} without a name`);
  return `${collectionPath(resource, namespaceFor(resource, namespace))}/${encodeURIComponent(name)}`;
}

/** The collection that an object is created in. */
export function homePath(resource: Resource, { metadata }: KubeObject): string {
  return collectionPath(resource, namespaceFor(resource, metadata.namespace));
}

export function nameOf({ metadata: { namespace, name = '' } }: KubeObject): ObjectName {
  return namespace === undefined ? { name } : { namespace, name };
}

function namespaceFor(resource: Resource, namespace: string | undefined): string | undefined {
  if (!resource.isNamespaced) return undefined;
  if (namespace === undefined || namespace === '') {
    throw new TypeError(`a ${resource.kind} without a namespace`);
  }
  return namespace;
}
