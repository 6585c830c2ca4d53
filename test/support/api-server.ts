// A small API server for what a real one will not do on command: it keeps ConfigMaps, pages lists and serves watches as
// the API does, and misbehaves when told to.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { clientOf, type KubeClient } from '../../operator/kube/client.ts';
import type { KubeObject, Resource } from '../../operator/kube/object.ts';
import { listenOnLoopback, portOf } from './loopback.ts';

export const configMaps: Resource = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  isNamespaced: true,
};

export interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** What the next request of a kind gets instead of the usual answer; each is used once. */
export type Misbehaviour =
  | { readonly kind: 'status'; readonly code: number; readonly headers?: Record<string, string> }
  /** A watch that sends these bytes and ends. */
  | { readonly kind: 'bytes'; readonly text: string }
  /** A watch that sends nothing for ever. */
  | { readonly kind: 'silence' }
  /** The connection is cut after these bytes of a started answer. */
  | { readonly kind: 'reset'; readonly text: string }
  /** Not answered until `release` is called. */
  | { readonly kind: 'held'; readonly release: Promise<void> };

export interface SeenRequest {
  readonly method: string;
  readonly url: URL;
  readonly kind: 'list' | 'watch' | 'other';
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  /** The client's: equal for requests over one connection. */
  readonly port: number | undefined;
}

interface HistoryEntry {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: StoredObject;
}

interface StoredObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly namespace: string; readonly name: string };
}

interface OpenWatch {
  readonly response: ServerResponse;
  readonly namespace: string | undefined;
  /** Open, and told nothing. */
  readonly isSilent: boolean;
}

const STATUS_REASONS: Readonly<Record<number, string>> = { 404: 'NotFound', 410: 'Expired' };

export class ApiServerStandIn implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  readonly listScript: Misbehaviour[] = [];
  readonly watchScript: Misbehaviour[] = [];
  /** The largest number of watches that were open at once. */
  mostWatches = 0;
  readonly #server: Server;
  readonly #objects = new Map<string, StoredObject>();
  readonly #watches = new Set<OpenWatch>();
  #history: HistoryEntry[] = [];
  #version = 100;
  #compactedTo = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async open(): Promise<ApiServerStandIn> {
    const server = createServer();
    const standIn = new ApiServerStandIn(server);
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      void standIn.#handle(request, response);
    });
    await listenOnLoopback(server);
    return standIn;
  }

  get url(): URL {
    return new URL(`http://127.0.0.1:${portOf(this.#server)}`);
  }

  client(options: { readonly token?: string; readonly deadlineMs?: number } = {}): KubeClient {
    const { token = 'secret-token', ...rest } = options;
    const headers = { authorization: `Bearer ${token}` };
    const access = {
      server: this.url,
      namespace: 'default',
      credentials: () => Promise.resolve({ headers, tls: {} }),
      forget: () => undefined,
    };
    return clientOf(access, rest);
  }

  get openWatches(): number {
    return this.#watches.size;
  }

  count(kind: SeenRequest['kind']): number {
    return this.requests.filter((request) => request.kind === kind).length;
  }

  /** Creates or changes an object and tells the watches. */
  put(namespace: string, name: string, value: string): void {
    const key = `${namespace}/${name}`;
    const type = this.#objects.has(key) ? 'MODIFIED' : 'ADDED';
    const version = (this.#version += 1);
    const object = storedObject(namespace, name, { value, version });
    this.#objects.set(key, object);
    this.#record({ version, type, object });
  }

  remove(namespace: string, name: string): void {
    const key = `${namespace}/${name}`;
    if (!this.#objects.delete(key)) return;
    const version = (this.#version += 1);
    const object = storedObject(namespace, name, { value: 'gone', version });
    this.#record({ version, type: 'DELETED', object });
  }

  bookmark(): void {
    const version = (this.#version += 1);
    const object = { kind: 'ConfigMap', metadata: { resourceVersion: String(version) } };
    for (const { response } of this.#watches) send(response, { type: 'BOOKMARK', object });
  }

  /** The server forgets what led to now: watches and tokens from before are too old. */
  compact(): void {
    this.#compactedTo = this.#version;
    this.#history = [];
  }

  /** Ends every watch as a server does at its timeout. */
  endWatches(): void {
    for (const { response } of this.#watches) response.end();
  }

  cutWatches(): void {
    for (const { response } of this.#watches) response.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url);
    const body = await textOf(request);
    const kind = kindOf(request.method, url);
    const { method = 'GET', headers } = request;
    this.requests.push({ method, url, kind, headers, body, port: request.socket.remotePort });
    if (kind === 'list') await this.#list(url, response);
    else if (kind === 'watch') await this.#watch(url, response);
    else if (method === 'GET') this.#get(url, response);
    else answer(response, 200, JSON.parse(body || '{}'));
  }

  #get(url: URL, response: ServerResponse): void {
    const [, namespace = '', name = ''] =
      /namespaces\/([^/]+)\/configmaps\/([^/]+)$/.exec(url.pathname) ?? [];
    const object = this.#objects.get(`${namespace}/${name}`);
    if (object === undefined) status(response, 404);
    else answer(response, 200, object);
  }

  async #list(url: URL, response: ServerResponse): Promise<void> {
    if (await misbehave(this.listScript.shift(), response)) return;
    const limit = Number(url.searchParams.get('limit') ?? Number.POSITIVE_INFINITY);
    const token = url.searchParams.get('continue');
    const [at, start] = (token ?? `${this.#version}:0`).split(':').map(Number);
    if (at === undefined || start === undefined || at < this.#compactedTo) {
      status(response, 410);
      return;
    }
    const namespace = namespaceOf(url);
    const all = [...this.#objects.values()].filter(
      ({ metadata }) => namespace === undefined || metadata.namespace === namespace,
    );
    const end = start + limit;
    answer(response, 200, {
      kind: 'ConfigMapList',
      metadata: {
        resourceVersion: String(at),
        ...(end < all.length && { continue: `${at}:${end}` }),
      },
      // Items of a list do not say what they are.
      items: all.slice(start, end).map(({ metadata, ...object }) => ({
        ...object,
        metadata,
        kind: undefined,
        apiVersion: undefined,
      })),
    });
  }

  async #watch(url: URL, response: ServerResponse): Promise<void> {
    const script = this.watchScript.shift();
    this.#track({ response, namespace: namespaceOf(url), isSilent: script?.kind === 'silence' });
    if (await misbehave(script, response)) return;
    const from = Number(url.searchParams.get('resourceVersion'));
    if (from < this.#compactedTo) {
      status(response, 410);
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    const namespace = namespaceOf(url);
    for (const { version, type, object } of this.#history) {
      const isMeant = namespace === undefined || object.metadata.namespace === namespace;
      if (version > from && isMeant) send(response, { type, object });
    }
  }

  #track(watch: OpenWatch): void {
    this.#watches.add(watch);
    this.mostWatches = Math.max(this.mostWatches, this.#watches.size);
    watch.response.once('close', () => this.#watches.delete(watch));
  }

  #record(entry: HistoryEntry): void {
    this.#history.push(entry);
    for (const { response, namespace, isSilent } of this.#watches) {
      if (namespace !== undefined && namespace !== entry.object.metadata.namespace) continue;
      if (response.headersSent && !isSilent)
        send(response, { type: entry.type, object: entry.object });
    }
  }
}

function kindOf(method: string | undefined, url: URL): SeenRequest['kind'] {
  if (method !== 'GET' || !url.pathname.endsWith('/configmaps')) return 'other';
  return url.searchParams.has('watch') ? 'watch' : 'list';
}

function namespaceOf(url: URL): string | undefined {
  return /\/namespaces\/([^/]+)\//.exec(url.pathname)?.[1];
}

function storedObject(
  namespace: string,
  name: string,
  { value, version }: { readonly value: string; readonly version: number },
): StoredObject {
  const managedFields = [{ manager: 'somebody', fieldsV1: { 'f:data': {} } }];
  const resourceVersion = String(version);
  const metadata = { namespace, name, uid: `uid-${name}`, resourceVersion, managedFields };
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { value } };
  return object;
}

/** True when the script has answered. */
async function misbehave(
  script: Misbehaviour | undefined,
  response: ServerResponse,
): Promise<boolean> {
  if (script === undefined) return false;
  switch (script.kind) {
    case 'held':
      await script.release;
      return false;
    case 'status':
      status(response, script.code, script.headers);
      return true;
    case 'bytes':
      response.writeHead(200).end(script.text);
      return true;
    case 'silence':
      response.writeHead(200).flushHeaders();
      return true;
    case 'reset':
      response.writeHead(200).write(script.text, () => response.destroy());
      return true;
  }
}

function status(response: ServerResponse, code: number, headers = {}): void {
  const reason = STATUS_REASONS[code] ?? '';
  const body = { kind: 'Status', status: 'Failure', code, reason, message: `it is ${code}` };
  answer(response, code, body, headers);
}

function answer(response: ServerResponse, code: number, body: unknown, headers = {}): void {
  response.writeHead(code, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

function send(response: ServerResponse, event: unknown): void {
  response.write(`${JSON.stringify(event)}\n`);
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk as Buffer));
  return Buffer.concat(chunks).toString('utf8');
}
