// What the rest of the operator asks of the API server. The one implementation is client.ts; tests of pure parts
// bring their own.
import type { KubeObject, Resource } from './object.ts';

export interface ObjectName {
  /** Absent for what is not namespaced. */
  readonly namespace?: string;
  readonly name: string;
}

/** A refusal or failure of the API server; thrown by every call. */
export interface ApiFailure {
  /** HTTP status; 0 = no answer came. */
  readonly code: number;
  /** `Status.reason`, e.g. `NotFound`, `Conflict`, `Expired`; empty when there was none. */
  readonly reason: string;
  /** From `Retry-After` or `Status.details.retryAfterSeconds`. */
  readonly retryAfterMs?: number;
}

export interface KubeApi {
  get<Type extends KubeObject>(
    resource: Resource,
    name: ObjectName,
    signal: AbortSignal,
  ): Promise<Type>;
  create<Type extends KubeObject>(
    resource: Resource,
    object: Type,
    signal: AbortSignal,
  ): Promise<Type>;
  /** PUT: fails with code 409 when `metadata.resourceVersion` is not the current one. */
  replace<Type extends KubeObject>(
    resource: Resource,
    object: Type,
    signal: AbortSignal,
  ): Promise<Type>;
  /** Server-side apply with our field manager and force. `subresource` e.g. `status`. */
  apply<Type extends KubeObject>(
    resource: Resource,
    object: Type,
    options: { readonly subresource?: string; readonly signal: AbortSignal },
  ): Promise<Type>;
  /** RFC 6902. Code 422 when a `test` fails. */
  jsonPatch<Type extends KubeObject>(
    resource: Resource,
    name: ObjectName,
    options: { readonly operations: readonly JsonPatchOperation[]; readonly signal: AbortSignal },
  ): Promise<Type>;
  delete(resource: Resource, name: ObjectName, signal: AbortSignal): Promise<void>;
  /** POST to a path that is no collection: TokenReview, SelfSubjectAccessReview, pods/eviction. */
  post<Answer>(path: string, body: unknown, signal: AbortSignal): Promise<Answer>;
  /** GET of a path that is no object: `/version`, `/readyz`. */
  read<Answer>(path: string, signal: AbortSignal): Promise<Answer>;
}

export type JsonPatchOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };
