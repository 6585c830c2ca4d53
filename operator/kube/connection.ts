// One keep-alive agent to one API server. HTTP/1.1 on purpose: each watch has a connection of its own, so that a full
// one stops no other. A new agent is made when CA or client certificate change; the old one ends with its last request.
import { Agent, ProxyAgent, type Dispatcher } from 'undici';
import type { Clock } from '../clock.ts';
import { failureOf, isApiError, localFailure, type ApiRequest } from './api-error.ts';
import type { ClusterAccess, TlsIdentity } from './credentials.ts';
import type { ClientMetrics } from './client-metrics.ts';

/** A call that takes longer is lost: nothing but a list is slow on a server that is well. */
const CALL_DEADLINE_MS = 30_000;
/** A half-open connection is found in 40 s: 30 s of silence, then Node's 10 probes a second apart. */
const KEEP_ALIVE_PROBE_MS = 30_000;
/** The API server keeps an idle connection for 3 minutes: we let go first. */
const KEEP_IDLE_MS = 60_000;
/** An unpaged list of 10 000 pods has about 100 MB. V8 takes no string over 512 MB. */
const MOST_BODY_BYTES = 256 * 1024 * 1024;

export interface CallBody {
  readonly contentType: string;
  readonly text: string;
}

export interface Call extends ApiRequest {
  readonly accept?: string;
  readonly body?: CallBody;
  /** In place of the connection's own. */
  readonly deadlineMs?: number;
}

export interface ConnectionOptions {
  readonly access: ClusterAccess;
  readonly clock: Clock;
  readonly metrics: ClientMetrics;
  /** For one call, and for the head of a watch. */
  readonly deadlineMs?: number;
}

interface Agents {
  readonly identity: string;
  readonly dispatcher: Dispatcher;
}

export class Connection implements AsyncDisposable {
  readonly #options: ConnectionOptions;
  readonly #all = new Set<Dispatcher>();
  #current: Agents | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** The whole body of a success. Throws ApiError, or the signal's reason when that ended it. */
  async exchange(call: Call, signal: AbortSignal): Promise<string> {
    using deadline = this.#deadline(call, signal);
    try {
      const { body } = await this.#send(call, deadline.signal);
      return await readText(body);
    } catch (error) {
      throw this.#failure(call, error, { signal, hasExpired: deadline.hasExpired() });
    }
  }

  /** The body as it comes. The deadline is for the head only. */
  async stream(call: Call, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    using deadline = this.#deadline(call, signal);
    try {
      const ended = AbortSignal.any([deadline.signal, signal]);
      const { body } = await this.#send(call, ended);
      return body;
    } catch (error) {
      throw this.#failure(call, error, { signal, hasExpired: deadline.hasExpired() });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#current = undefined;
    await Promise.all([...this.#all].map((dispatcher) => dispatcher.destroy()));
    this.#all.clear();
  }

  async #send(call: Call, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const { access, metrics } = this.#options;
    const { headers, tls } = await access.credentials();
    signal.throwIfAborted();
    const answer = await this.#dispatcher(tls).request({
      origin: access.server.origin,
      path: `${access.server.pathname.replace(/\/$/, '')}${call.path}`,
      method: methodOf(call.method),
      headers: { ...headers, ...headersOf(call) },
      ...(call.body !== undefined && { body: call.body.text }),
      signal,
    });
    metrics.answered(String(answer.statusCode), call.method, access.server.host);
    if (answer.statusCode >= 200 && answer.statusCode < 300) return answer;
    if (answer.statusCode === 401) access.forget();
    const retryAfter = answer.headers['retry-after'];
    throw failureOf(call, {
      code: answer.statusCode,
      ...(typeof retryAfter === 'string' && { retryAfter }),
      body: await readText(answer.body),
    });
  }

  #dispatcher(tls: TlsIdentity): Dispatcher {
    const identity = JSON.stringify(tls);
    if (this.#current?.identity === identity) return this.#current.dispatcher;
    this.#retire(this.#current?.dispatcher);
    const dispatcher = openDispatcher(tls, this.#options.access.proxy);
    this.#all.add(dispatcher);
    this.#current = { identity, dispatcher };
    return dispatcher;
  }

  #retire(dispatcher: Dispatcher | undefined): void {
    if (dispatcher === undefined) return;
    const end = (): void => {
      this.#all.delete(dispatcher);
    };
    dispatcher.close().then(end, end);
  }

  #deadline(call: Call, signal: AbortSignal): Deadline {
    const { clock, deadlineMs = CALL_DEADLINE_MS } = this.#options;
    return new Deadline(clock, call.deadlineMs ?? deadlineMs, signal);
  }

  #failure(
    call: Call,
    error: unknown,
    { signal, hasExpired }: { readonly signal: AbortSignal; readonly hasExpired: boolean },
  ): unknown {
    if (isApiError(error)) return error;
    if (signal.aborted) return signal.reason;
    this.#options.metrics.answered('<error>', call.method, this.#options.access.server.host);
    const message = error instanceof Error ? error.message : String(error);
    return hasExpired
      ? localFailure(call, 'Timeout', { message: 'no answer in time', cause: error })
      : localFailure(call, 'Unreachable', { message, cause: error });
  }
}

/** Aborts when the time is up or the outer signal does; disposing it ends the timer, not what it guarded. */
class Deadline implements Disposable {
  readonly #controller = new AbortController();
  readonly #timer: Disposable;
  readonly #outer: AbortSignal;
  readonly #abort: () => void;
  #hasExpired = false;

  constructor(clock: Clock, ms: number, outer: AbortSignal) {
    this.#outer = outer;
    this.#abort = () => {
      this.#controller.abort(outer.reason);
    };
    this.#timer = clock.after(ms, () => {
      this.#hasExpired = true;
      this.#controller.abort();
    });
    if (outer.aborted) this.#abort();
    else outer.addEventListener('abort', this.#abort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  hasExpired(): boolean {
    return this.#hasExpired;
  }

  [Symbol.dispose](): void {
    this.#timer[Symbol.dispose]();
    this.#outer.removeEventListener('abort', this.#abort);
  }
}

function openDispatcher(tls: TlsIdentity, proxy: string | undefined): Dispatcher {
  const connect = { ...tls, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_PROBE_MS };
  // Deadlines are ours; a watch may be silent for minutes.
  const common = {
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: KEEP_IDLE_MS,
    keepAliveMaxTimeout: KEEP_IDLE_MS,
  };
  if (proxy === undefined) return new Agent({ ...common, connect });
  return new ProxyAgent({ ...common, uri: proxy, requestTls: connect });
}

function headersOf({ accept = 'application/json', body }: Call): Readonly<Record<string, string>> {
  return {
    accept,
    'user-agent': 'weir-operator',
    ...(body !== undefined && { 'content-type': body.contentType }),
  };
}

function methodOf(text: string): Dispatcher.HttpMethod {
  const methods: readonly Dispatcher.HttpMethod[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
  const method = methods.find((known) => known === text);
  if (method === undefined) throw new TypeError(`method ${text}`);
  return method;
}

async function readText(body: AsyncIterable<unknown>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    if (!Buffer.isBuffer(chunk)) throw new TypeError('a body of bytes was expected');
    bytes += chunk.length;
    if (bytes > MOST_BODY_BYTES) throw new RangeError(`more than ${MOST_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
