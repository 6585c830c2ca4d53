// The client of the API server: raw JSON over one keep-alive agent. It promises a deadline for every call, ApiError for
// every refusal, and objects without managedFields.
import prometheus, { type Registry } from 'prom-client';
import { FIELD_MANAGER } from '../../contract/names.ts';
import { systemClock, type Clock } from '../clock.ts';
import { localFailure, type ApiRequest } from './api-error.ts';
import type { JsonPatchOperation, KubeApi, ObjectName } from './api.ts';
import { admitObject, isRecord, type ArrivalOptions } from './arrival.ts';
import { openClientMetrics } from './client-metrics.ts';
import type {
  Collection,
  KubeCollections,
  ListPage,
  PageRequest,
  WatchRequest,
} from './collection.ts';
import { Connection, type Call } from './connection.ts';
import { openClusterAccess, type ClusterAccess } from './credentials.ts';
import type { KubeObject, Resource } from './object.ts';
import { apiVersionOf, collectionPath, homePath, nameOf, objectPath } from './resource-path.ts';

const JSON_TYPE = 'application/json';
const JSON_PATCH_TYPE = 'application/json-patch+json';
/** JSON is YAML. */
const APPLY_TYPE = 'application/apply-patch+yaml';
/** As long as the API server itself tries: a list of everything may take it. */
const LIST_DEADLINE_MS = 60_000;
const METADATA_LIST = `application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=1,${JSON_TYPE}`;
const METADATA_WATCH = `application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=1,${JSON_TYPE}`;

export interface KubeClient extends KubeApi, KubeCollections, AsyncDisposable {
  /** Of the pod's account or the kubeconfig's context. */
  readonly namespace: string;
  /** For people: which API server this is. */
  readonly server: string;
}

export interface KubeClientOptions {
  /** Path of a kubeconfig; absent: `KUBECONFIG`, then the pod's account, then `~/.kube/config`. */
  readonly kubeConfig?: string;
  readonly metrics?: Registry;
  readonly clock?: Clock;
  /** For one call; absent: 30 s. */
  readonly deadlineMs?: number;
}

/** Throws WeirError KUBE_CONFIG_INVALID. Nothing is asked of the server yet. */
export async function openKubeClient(options: KubeClientOptions = {}): Promise<KubeClient> {
  const { kubeConfig, clock = systemClock } = options;
  const access = await openClusterAccess({
    clock,
    ...(kubeConfig !== undefined && { kubeConfig }),
  });
  return clientOf(access, options);
}

/** A client of a server that the caller knows how to get into. */
export function clientOf(access: ClusterAccess, options: KubeClientOptions = {}): KubeClient {
  const { clock = systemClock, metrics = new prometheus.Registry(), deadlineMs } = options;
  return new Client(
    access,
    new Connection({
      access,
      clock,
      metrics: openClientMetrics(metrics),
      ...(deadlineMs !== undefined && { deadlineMs }),
    }),
  );
}

class Client implements KubeClient {
  readonly namespace: string;
  readonly server: string;
  readonly #connection: Connection;

  constructor(access: ClusterAccess, connection: Connection) {
    this.namespace = access.namespace;
    this.server = access.server.href;
    this.#connection = connection;
  }

  get<Type extends KubeObject>(
    resource: Resource,
    name: ObjectName,
    signal: AbortSignal,
  ): Promise<Type> {
    return this.#object({ method: 'GET', path: objectPath(resource, name) }, { resource }, signal);
  }

  create<Type extends KubeObject>(
    resource: Resource,
    object: Type,
    signal: AbortSignal,
  ): Promise<Type> {
    const call = {
      method: 'POST',
      path: `${homePath(resource, object)}?fieldManager=${FIELD_MANAGER}`,
      body: { contentType: JSON_TYPE, text: textOf(resource, object) },
    };
    return this.#object(call, { resource }, signal);
  }

  replace<Type extends KubeObject>(
    resource: Resource,
    object: Type,
    signal: AbortSignal,
  ): Promise<Type> {
    const call = {
      method: 'PUT',
      path: `${objectPath(resource, nameOf(object))}?fieldManager=${FIELD_MANAGER}`,
      body: { contentType: JSON_TYPE, text: textOf(resource, object) },
    };
    return this.#object(call, { resource }, signal);
  }

  apply<Type extends KubeObject>(
    resource: Resource,
    object: Type,
    { subresource, signal }: { readonly subresource?: string; readonly signal: AbortSignal },
  ): Promise<Type> {
    const below = subresource === undefined ? '' : `/${subresource}`;
    const path = `${objectPath(resource, nameOf(object))}${below}`;
    const call = {
      method: 'PATCH',
      path: `${path}?fieldManager=${FIELD_MANAGER}&force=true`,
      body: { contentType: APPLY_TYPE, text: textOf(resource, object) },
    };
    return this.#object(call, { resource }, signal);
  }

  jsonPatch<Type extends KubeObject>(
    resource: Resource,
    name: ObjectName,
    options: { readonly operations: readonly JsonPatchOperation[]; readonly signal: AbortSignal },
  ): Promise<Type> {
    const call = {
      method: 'PATCH',
      path: `${objectPath(resource, name)}?fieldManager=${FIELD_MANAGER}`,
      body: { contentType: JSON_PATCH_TYPE, text: JSON.stringify(options.operations) },
    };
    return this.#object(call, { resource }, options.signal);
  }

  async delete(resource: Resource, name: ObjectName, signal: AbortSignal): Promise<void> {
    await this.#connection.exchange({ method: 'DELETE', path: objectPath(resource, name) }, signal);
  }

  post<Answer>(path: string, body: unknown, signal: AbortSignal): Promise<Answer> {
    const text = JSON.stringify(body);
    return this.#json({ method: 'POST', path, body: { contentType: JSON_TYPE, text } }, signal);
  }

  read<Answer>(path: string, signal: AbortSignal): Promise<Answer> {
    return this.#json({ method: 'GET', path }, signal);
  }

  async listPage<Type extends KubeObject>(
    collection: Collection,
    page: PageRequest,
    signal: AbortSignal,
  ): Promise<ListPage<Type>> {
    const call = {
      method: 'GET',
      path: pathOf(collection, { limit: page.limit?.toString(), continue: page.continueToken }),
      accept: collection.isMetadataOnly === true ? METADATA_LIST : JSON_TYPE,
      deadlineMs: LIST_DEADLINE_MS,
    };
    return readPage(call, await this.#json<unknown>(call, signal), collection);
  }

  openWatch(
    collection: Collection,
    { resourceVersion, timeoutSeconds }: WatchRequest,
    signal: AbortSignal,
  ): Promise<AsyncIterable<Uint8Array>> {
    const path = pathOf(collection, {
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion,
      timeoutSeconds: String(timeoutSeconds),
    });
    const accept = collection.isMetadataOnly === true ? METADATA_WATCH : JSON_TYPE;
    return this.#connection.stream({ method: 'GET', path, accept }, signal);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#connection[Symbol.asyncDispose]();
  }

  async #object<Type extends KubeObject>(
    call: Call,
    arrival: ArrivalOptions<Type>,
    signal: AbortSignal,
  ): Promise<Type> {
    const object = admitObject(await this.#json<unknown>(call, signal), arrival);
    if (object === undefined) throw unreadable(call, `no ${arrival.resource.kind} came back`);
    return object;
  }

  async #json<Answer>(call: Call, signal: AbortSignal): Promise<Answer> {
    const text = await this.#connection.exchange(call, signal);
    // /readyz and its like answer in plain words.
    if (!/^\s*[[{]/.test(text)) return text as Answer;
    try {
      return JSON.parse(text) as Answer;
    } catch (cause) {
      throw localFailure(call, 'Unreadable', { message: 'the answer is no JSON', cause });
    }
  }
}

function textOf(resource: Resource, object: KubeObject): string {
  return JSON.stringify({ ...object, apiVersion: apiVersionOf(resource), kind: resource.kind });
}

function pathOf(
  { resource, namespace, labelSelector, fieldSelector }: Collection,
  query: Readonly<Record<string, string | undefined>>,
): string {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries({ ...query, labelSelector, fieldSelector })) {
    if (value !== undefined) parameters.set(key, value);
  }
  return `${collectionPath(resource, namespace)}?${parameters.toString()}`;
}

function readPage<Type extends KubeObject>(
  call: ApiRequest,
  body: unknown,
  collection: Collection,
): ListPage<Type> {
  if (!isRecord(body)) throw unreadable(call, 'no list came back');
  const { metadata, items } = body;
  if (!isRecord(metadata) || typeof metadata['resourceVersion'] !== 'string') {
    throw unreadable(call, 'the list has no resourceVersion');
  }
  const token = metadata['continue'];
  return {
    resourceVersion: metadata['resourceVersion'],
    ...(typeof token === 'string' && token !== '' && { continueToken: token }),
    items: readItems(call, items, (item) => admitObject<Type>(item, collection)),
  };
}

/** What is no list must not read as an empty one: everything known would be deleted. A Go server's nil slice is null. */
function readItems<Type extends KubeObject>(
  call: ApiRequest,
  items: unknown,
  admit: (item: unknown) => Type | undefined,
): readonly Type[] {
  if (items === null) return [];
  if (!Array.isArray(items)) throw unreadable(call, 'the list has no items');
  return items.map((item: unknown) => {
    const object = admit(item);
    if (object === undefined) throw unreadable(call, 'an item of the list has no name');
    return object;
  });
}

function unreadable(call: ApiRequest, message: string): Error {
  return localFailure(call, 'Unreadable', { message });
}
