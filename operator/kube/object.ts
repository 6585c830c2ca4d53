// Objects of the Kubernetes API as they come over the wire: raw JSON, dates as text. Only the fields that we read.

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
}

export interface ObjectMeta {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly uid?: string;
  /** Opaque: compared for equality, never ordered. */
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
}

export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
}

/** What names an object in events and references. */
export interface ObjectReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly uid?: string;
}

/** A collection of the API. */
export interface Resource {
  /** Empty = the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
  /**
   * A CustomResourceDefinition gives its fields, and may give more at any time. The server then ends the watches of the
   * shape before, up to a second later, and what they brought meanwhile lacks the new fields.
   */
  readonly isCustom?: boolean;
}

/** `namespace/name`, or `name` for what is not namespaced: the key of queues and stores. */
export function keyOf({ metadata: { namespace, name = '' } }: KubeObject): string {
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}
