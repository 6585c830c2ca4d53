// A small API server for a whole operator: it keeps objects of any kind by their paths, serves lists and watches, takes
// creates, replaces, applies, JSON patches and deletes as the real one does where the operator depends on it, and
// answers reviews as the test says. It fails on command, which a real one will not. Validation, admission, field
// ownership and garbage collection are the real one's: test/cluster has it.
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { applyPatch, type Operation } from 'rfc6902';
import { listenOnLoopback, portOf } from './loopback.ts';

const TOKEN = 'token-of-the-operator';

/** An object as JSON: its shape is the test's. */
export type Json = Readonly<Record<string, unknown>>;

export interface StoredObject extends Json {
  readonly metadata: Json;
}

export interface SeenCall {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly contentType: string;
  readonly body: string;
}

/** What a call gets instead of its answer. `held`: nothing, until it is asked again or the client goes. */
export type Fault = number | 'reset' | 'held';

interface Place {
  /** `/api/v1` or `/apis/GROUP/VERSION`. */
  readonly root: string;
  readonly namespace: string | undefined;
  readonly plural: string;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

interface Change {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly key: string;
  readonly object: StoredObject;
}

interface Watch {
  readonly place: Place;
  readonly query: URLSearchParams;
  readonly response: ServerResponse;
}

export class ClusterStandIn implements AsyncDisposable {
  readonly calls: SeenCall[] = [];
  /** Asked before each answer. */
  fault: (call: SeenCall) => Fault | undefined = () => undefined;
  version: Json = { major: '1', minor: '36' };
  mayReviewTokens = true;
  readonly #server: Server;
  readonly #objects = new Map<string, StoredObject>();
  readonly #history: Change[] = [];
  readonly #watches = new Set<Watch>();
  readonly #tokens = new Map<string, Json>();
  #version = 100;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async open(): Promise<ClusterStandIn> {
    const server = createServer();
    const standIn = new ClusterStandIn(server);
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      void standIn.#handle(request, response);
    });
    await listenOnLoopback(server);
    return standIn;
  }

  get url(): string {
    return `http://127.0.0.1:${portOf(this.#server)}`;
  }

  /** Writes a kubeconfig with a token into the folder; answers its path. */
  async kubeconfig(folder: string): Promise<string> {
    const file = path.join(folder, 'kubeconfig');
    const named = (field: string, value: Json): Json => ({ name: 'it', [field]: value });
    const config = {
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'it' },
      clusters: [named('cluster', { server: this.url })],
      users: [named('user', { token: TOKEN })],
      contexts: [named('context', { cluster: 'it', user: 'it' })],
    };
    await writeFile(file, JSON.stringify(config));
    return file;
  }

  /** Creates or changes the object of that path and tells the watches. */
  put(key: string, object: Json): StoredObject {
    const before = this.#objects.get(key);
    const version = (this.#version += 1);
    const given = isJson(object['metadata']) ? object['metadata'] : {};
    const { namespace, name } = placeOf(key);
    const metadata = {
      ...{ name, ...(namespace === undefined ? {} : { namespace }), uid: `uid-${name ?? ''}` },
      ...{ creationTimestamp: '2026-01-01T00:00:00Z', ...given },
      resourceVersion: String(version),
    };
    const stored = { ...object, metadata };
    this.#objects.set(key, stored);
    const type = before === undefined ? 'ADDED' : 'MODIFIED';
    this.#tell({ version, type, key, object: stored });
    return stored;
  }

  remove(key: string): boolean {
    const object = this.#objects.get(key);
    if (object === undefined) return false;
    this.#objects.delete(key);
    this.#tell({ version: (this.#version += 1), type: 'DELETED', key, object });
    return true;
  }

  get(key: string): StoredObject | undefined {
    return this.#objects.get(key);
  }

  /** All of a collection, such as `/apis/events.k8s.io/v1/events`. */
  list(collection: string): readonly StoredObject[] {
    const place = placeOf(collection);
    return [...this.#objects].filter(([key]) => isIn(place, key)).map(([, object]) => object);
  }

  /** A token that a TokenReview knows as that pod's. */
  issue(pod: {
    readonly uid: string;
    readonly namespace: string;
    readonly audience: string;
  }): string {
    const token = `token-of-${pod.uid}`;
    this.#tokens.set(token, {
      authenticated: true,
      audiences: [pod.audience],
      user: {
        username: `system:serviceaccount:${pod.namespace}:default`,
        extra: { 'authentication.kubernetes.io/pod-uid': [pod.uid] },
      },
    });
    return token;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url);
    const { method = 'GET', headers } = request;
    const body = await text(request).catch(() => '');
    const contentType = headers['content-type'] ?? '';
    const call = { method, path: url.pathname, query: url.searchParams, contentType, body };
    this.calls.push(call);
    const fault = this.fault(call);
    if (fault === 'reset') response.destroy();
    else if (typeof fault === 'number') refuse(response, fault);
    else if (fault === undefined) this.#answer(call, headers.authorization, response);
  }

  #answer(call: SeenCall, authorization: string | undefined, response: ServerResponse): void {
    if (authorization !== `Bearer ${TOKEN}`) refuse(response, 401);
    else if (call.path === '/version') send(response, 200, this.version);
    else if (call.path.endsWith('reviews')) send(response, 201, this.#review(call));
    else if (call.method === 'GET') this.#read(call, response);
    else this.#write(call, response);
  }

  #review({ path: where, body }: SeenCall): Json {
    const asked = parse(body);
    if (!where.endsWith('/tokenreviews')) {
      return { ...asked, status: { allowed: this.mayReviewTokens } };
    }
    const token = isJson(asked['spec']) ? String(asked['spec']['token']) : '';
    return { ...asked, status: this.#tokens.get(token) ?? { authenticated: false } };
  }

  #read({ path: where, query }: SeenCall, response: ServerResponse): void {
    const place = placeOf(where);
    if (query.has('watch')) {
      this.#watch({ place, query, response });
    } else if (place.name === undefined) {
      const items = this.list(where).filter((object) => isSelected(object, query));
      send(response, 200, { kind: 'List', metadata: { resourceVersion: this.#now }, items });
    } else {
      const object = this.#objects.get(where);
      if (object === undefined) refuse(response, 404);
      else send(response, 200, object);
    }
  }

  get #now(): string {
    return String(this.#version);
  }

  #watch(watch: Watch): void {
    const { query, response } = watch;
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    const from = Number(query.get('resourceVersion'));
    for (const change of this.#history) if (change.version > from) notify(watch, change);
    this.#watches.add(watch);
    response.once('close', () => this.#watches.delete(watch));
  }

  #tell(change: Change): void {
    this.#history.push(change);
    for (const watch of this.#watches) notify(watch, change);
  }

  #write(call: SeenCall, response: ServerResponse): void {
    switch (call.method) {
      case 'POST':
        this.#create(call, response);
        break;
      case 'PUT':
        this.#replace(call, response);
        break;
      case 'PATCH':
        this.#patch(call, response);
        break;
      default:
        if (this.remove(call.path)) send(response, 200, { kind: 'Status', status: 'Success' });
        else refuse(response, 404);
    }
  }

  #create({ path: collection, body }: SeenCall, response: ServerResponse): void {
    const object = parse(body);
    const { name } = isJson(object['metadata']) ? object['metadata'] : {};
    const key = `${collection}/${String(name)}`;
    if (this.#objects.has(key)) refuse(response, 409);
    else send(response, 201, this.put(key, object));
  }

  #replace({ path: key, body }: SeenCall, response: ServerResponse): void {
    const object = parse(body);
    const before = this.#objects.get(key);
    const { resourceVersion } = isJson(object['metadata']) ? object['metadata'] : {};
    if (before === undefined) refuse(response, 404);
    else if (resourceVersion !== before.metadata['resourceVersion']) refuse(response, 409);
    else send(response, 200, this.put(key, object));
  }

  #patch({ path: where, contentType, body }: SeenCall, response: ServerResponse): void {
    const { subresource } = placeOf(where);
    const key = subresource === undefined ? where : where.slice(0, -subresource.length - 1);
    const before = this.#objects.get(key);
    if (contentType.startsWith('application/apply-patch')) {
      const given = parse(body);
      if (before === undefined && subresource !== undefined) refuse(response, 404);
      else send(response, 200, this.put(key, applied(before, given, subresource)));
    } else if (before === undefined) refuse(response, 404);
    else {
      const object = structuredClone<StoredObject>(before);
      // The checked boundary: what is no list of operations fails below.
      const errors = applyPatch(object, JSON.parse(body) as Operation[]);
      if (errors.some((error) => error !== null)) refuse(response, 422);
      else send(response, 200, this.put(key, object));
    }
  }
}

function applied(
  before: StoredObject | undefined,
  given: Json,
  subresource: string | undefined,
): Json {
  if (before !== undefined && subresource !== undefined) {
    return { ...before, [subresource]: given[subresource] };
  }
  const metadata = isJson(given['metadata']) ? given['metadata'] : {};
  return { ...before, ...given, metadata: { ...before?.metadata, ...metadata } };
}

function notify({ place, query, response }: Watch, { type, key, object }: Change): void {
  if (!isIn(place, key) || !isSelected(object, query)) return;
  response.write(`${JSON.stringify({ type, object })}\n`);
}

function isIn(collection: Place, key: string): boolean {
  const { root, namespace, plural, subresource } = placeOf(key);
  const isMeant = collection.namespace === undefined || collection.namespace === namespace;
  const isSame = root === collection.root && plural === collection.plural;
  return isSame && isMeant && subresource === undefined;
}

function isSelected(object: StoredObject, query: URLSearchParams): boolean {
  const terms = (name: string): string[] => query.get(name)?.split(',') ?? [];
  const { labels } = object.metadata;
  return (
    terms('labelSelector').every((term) => isTerm(isJson(labels) ? labels : {}, term)) &&
    terms('fieldSelector').every((term) =>
      isTerm({ ...object, 'metadata.name': object.metadata['name'] }, term),
    )
  );
}

function isTerm(fields: Json, term: string): boolean {
  const [name = '', value = ''] = term.split('=');
  return fields[name] === value;
}

function placeOf(where: string): Place {
  const found =
    /^(\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(
      where,
    );
  const [, root = '', namespace, plural = '', name, subresource] = found ?? [];
  return { root, namespace, plural, name, subresource };
}

function refuse(response: ServerResponse, code: number): void {
  const message = `the stand-in says ${code}`;
  send(response, code, { kind: 'Status', status: 'Failure', code, reason: '', message });
}

function send(response: ServerResponse, code: number, body: Json): void {
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

function parse(body: string): Json {
  const value: unknown = JSON.parse(body);
  return isJson(value) ? value : {};
}

export function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
