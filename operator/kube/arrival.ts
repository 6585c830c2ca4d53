// What happens to every object that arrives: it is checked to be one, told its own kind (items of lists do not say),
// and loses managedFields, which nobody reads and which often are half of it.
import type { KubeObject, Resource } from './object.ts';
import { apiVersionOf } from './resource-path.ts';

export interface ArrivalOptions<Type extends KubeObject> {
  readonly resource: Resource;
  /** Keeps what is read of an object; must keep name, namespace, uid and resourceVersion. */
  readonly transform?: (object: Type) => Type;
  /** Keeps `metadata` only, even when the server sends more. */
  readonly isMetadataOnly?: boolean;
}

/** `undefined` for what is no object of the API: metadata with a name is the least. */
export function admitObject<Type extends KubeObject>(
  value: unknown,
  { resource, transform, isMetadataOnly = false }: ArrivalOptions<Type>,
): Type | undefined {
  if (!isRecord(value)) return undefined;
  const { metadata } = value;
  if (!isRecord(metadata) || !isName(metadata['name'])) return undefined;
  const known = {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: withoutManagedFields(metadata),
  };
  // The checked boundary: the schema of the fields below metadata is the API server's promise.
  const object = (isMetadataOnly ? known : { ...value, ...known }) as unknown as Type;
  return transform === undefined ? object : transform(object);
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function withoutManagedFields(metadata: Readonly<Record<string, unknown>>): unknown {
  return Object.fromEntries(Object.entries(metadata).filter(([key]) => key !== 'managedFields'));
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}
