// The TLS HTTP/2 server that sidecars hold their streams to. It lets in who proves to be a pod, one stream per pod, up
// to a bound; it notices who has gone silent; and when it stops it sends its sidecars away one after the other.
import {
  createSecureServer,
  type Http2SecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { WeirError } from '../../contract/errors.ts';
import { STREAM_PATH } from '../../contract/stream.ts';
import { systemClock } from '../clock.ts';
import type { KubeApi } from '../kube/api.ts';
import { type Authentication, Authenticator } from './authentication.ts';
import type { BundleProvider, PodDirectory, PodIdentity } from './bundle-provider.ts';
import { HandshakeLine } from './handshake-line.ts';
import { PeerConnections } from './peer-connections.ts';
import { PolicyTexts } from './policy-texts.ts';
import type { SidecarRegistry } from './sidecar-registry.ts';
import type { SessionReport } from './session.ts';
import { SidecarStream } from './sidecar-stream.ts';
import { StreamMetrics } from './stream-metrics.ts';

/** ~115 kB a stream (measured): 5 000 are 575 MB, where a second replica is the better answer. */
const CLIENTS_MAX = 5_000;
/** Connections that may be open beyond the clients: those being let in or sent away. */
const SPARE_CONNECTIONS = 256;
const HANDSHAKE_WITHIN_MS = 10_000;
const SWEEP_EVERY_MS = 1_000;
/** Over how long a replica that stops sends its sidecars away. */
export const FAREWELL_OVER_MS = 10_000;
/** For who finds a replica full or stopping: another one may have room by then. */
const RETRY_AFTER_MS = 5_000;
/** Two sidecars with one pod's token, or one whose pod has gone: not at once again. */
const REPLACED_RETRY_MS = 10_000;
/** The first bytes of a sidecar and its token; nothing else is asked for. */
const HEADER_LIST_MAX = 32_768;

export interface TlsMaterial {
  /** PEM texts; `cert` with its chain. */
  readonly key: string;
  readonly cert: string;
}

export interface StreamServerOptions {
  readonly listen: { readonly host: string; readonly port: number };
  readonly tls: TlsMaterial;
  readonly api: Pick<KubeApi, 'post'>;
  readonly pods: PodDirectory;
  readonly provider: BundleProvider;
  readonly registry: SidecarRegistry;
  readonly metrics: Registry;
  readonly log: Logger;
  /** Absent = CLIENTS_MAX. */
  readonly maxClients?: number;
  /** In [0, 1). Absent = Math.random. */
  readonly random?: () => number;
  /** Monotonic. Absent = performance.now. */
  readonly nowMs?: () => number;
}

export interface StreamServer extends AsyncDisposable {
  /** Port 0 resolved. */
  readonly address: { readonly host: string; readonly port: number };
  /** Sidecars with a live stream. */
  readonly clients: number;
  /** New connections are served with this from now on. Throws what Node finds wrong with it; the old stays then. */
  reload(tls: TlsMaterial): void;
  /** Undefined when tokens may be reviewed, else what is missing: for readiness. Rejects when nobody answers. */
  whyNotReady(signal: AbortSignal): Promise<string | undefined>;
  /** Lets nobody in any more, says bye to everybody within `overMs`, and closes. */
  stop(overMs?: number): Promise<void>;
}

/** Throws LISTEN_FAILED. */
export async function openStreamServer(options: StreamServerOptions): Promise<StreamServer> {
  const server = new Server(options);
  await server.listen();
  return server;
}

class Server implements StreamServer {
  address: { host: string; port: number } = { host: '', port: 0 };
  readonly #options: StreamServerOptions;
  readonly #random: () => number;
  readonly #nowMs: () => number;
  /** What listens; each connection is given to `#http` when it is its turn. */
  readonly #front: NetServer;
  readonly #line = new HandshakeLine(systemClock);
  /** Connections without a TLS session yet. */
  readonly #strangers = new Map<string, Socket>();
  readonly #http: Http2SecureServer;
  readonly #metrics: StreamMetrics;
  readonly #authenticator: Authenticator;
  readonly #texts = new PolicyTexts();
  readonly #connections = new PeerConnections();
  readonly #live = new Map<string, SidecarStream>();
  readonly #changes: Disposable;
  #sweeping: NodeJS.Timeout | undefined;
  #isStopping = false;

  constructor(options: StreamServerOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#nowMs = options.nowMs ?? ((): number => performance.now());
    this.#metrics = new StreamMetrics(options.metrics);
    this.#authenticator = new Authenticator({
      api: options.api,
      pods: options.pods,
      nowMs: this.#nowMs,
      wallClockMs: () => Date.now(),
      onReview: (result) => {
        this.#metrics.countReview(result);
      },
    });
    this.#http = createSecureServer({
      ...options.tls,
      minVersion: 'TLSv1.2',
      allowHTTP1: false,
      handshakeTimeout: HANDSHAKE_WITHIN_MS,
      settings: { enablePush: false, maxConcurrentStreams: 4, maxHeaderListSize: HEADER_LIST_MAX },
    });
    this.#front = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => {
      this.#onConnection(socket);
    });
    this.#front.maxConnections = (options.maxClients ?? CLIENTS_MAX) + SPARE_CONNECTIONS;
    this.#http.on('secureConnection', (socket: Socket) => {
      this.#leave(peerOf(socket));
    });
    this.#http.on('session', (session) => {
      this.#connections.add(session);
    });
    this.#http.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      void this.#onStream(stream, headers);
    });
    // A handshake that fails is the client's to report: it says why it does not trust us.
    this.#http.on('sessionError', ignore);
    this.#http.on('tlsClientError', ignore);
    this.#changes = options.provider.onChange((pods) => {
      this.#onChange(pods);
    });
  }

  get clients(): number {
    return this.#live.size;
  }

  async listen(): Promise<void> {
    const { host, port } = this.#options.listen;
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    this.#front.once('error', reject);
    this.#front.listen({ host, port }, () => {
      resolve(undefined);
    });
    await promise.catch((cause: unknown) => {
      throw new WeirError('LISTEN_FAILED', { host, port }, { cause });
    });
    this.#front.off('error', reject);
    this.#front.on('error', (error) => {
      this.#options.log.error({ event: 'stream-server', err: error }, 'the stream server failed');
    });
    const { port: bound } = this.#front.address() as AddressInfo; // a TCP server has no other address
    this.address = { host, port: bound };
    this.#sweeping = setInterval(() => {
      this.#sweep();
    }, SWEEP_EVERY_MS).unref();
  }

  reload({ key, cert }: TlsMaterial): void {
    this.#http.setSecureContext({ key, cert, minVersion: 'TLSv1.2' });
  }

  whyNotReady(signal: AbortSignal): Promise<string | undefined> {
    return this.#authenticator.whyNotAllowed(signal);
  }

  async stop(overMs: number = FAREWELL_OVER_MS): Promise<void> {
    this.#isStopping = true;
    const streams = [...this.#live.values()];
    const stepMs = overMs / Math.max(1, streams.length);
    let waitMs = 0;
    for (const stream of streams) {
      stream.end('Shutdown');
      waitMs += stepMs;
      if (waitMs < 10) continue;
      await pause(waitMs);
      waitMs = 0;
    }
    await this.#close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    await this.#close();
  }

  async #close(): Promise<void> {
    clearInterval(this.#sweeping);
    this.#changes[Symbol.dispose]();
    if (!this.#front.listening) return;
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.#front.close(() => {
      resolve(undefined);
    });
    for (const socket of this.#strangers.values()) socket.destroy();
    await this.#connections.closeAll(promise);
  }

  #onConnection(socket: Socket): void {
    const peer = peerOf(socket);
    // A connection that broke says so by its end.
    socket.on('error', ignore);
    socket.once('close', () => {
      this.#leave(peer);
    });
    this.#strangers.set(peer, socket);
    this.#line.add(peer, () => {
      this.#http.emit('connection', socket);
    });
  }

  #leave(peer: string): void {
    this.#strangers.delete(peer);
    this.#line.leave(peer);
  }

  #onChange(pods: ReadonlySet<string> | 'all'): void {
    if (pods === 'all') for (const stream of this.#live.values()) stream.onChange();
    else for (const podUid of pods) this.#live.get(podUid)?.onChange();
  }

  async #onStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    // A stream that broke says so by its end.
    stream.on('error', ignore);
    if (headers[':path'] !== STREAM_PATH) {
      refuse(stream, { status: 404, reason: `known: POST ${STREAM_PATH}` });
      return;
    }
    if (headers[':method'] !== 'POST') {
      refuse(stream, { status: 405, reason: 'use POST' });
      return;
    }
    if (this.#refuseMore(stream)) return;
    const outcome = await this.#authenticator.authenticate(headers.authorization);
    if (stream.destroyed || stream.closed) return;
    if (outcome.kind !== 'pod') {
      this.#refuseStranger(stream, outcome);
      return;
    }
    // Others may have come in while the token was reviewed.
    if (!this.#live.has(outcome.podUid) && this.#refuseMore(stream)) return;
    this.#admit(stream, outcome.podUid, outcome.pod);
  }

  #refuseMore(stream: ServerHttp2Stream): boolean {
    const isFull = this.#live.size >= (this.#options.maxClients ?? CLIENTS_MAX);
    if (!isFull && !this.#isStopping) return false;
    const reason = isFull ? 'as many sidecars as this replica takes' : 'this replica stops';
    refuse(stream, { status: 503, reason, retryAfterMs: RETRY_AFTER_MS });
    return true;
  }

  #refuseStranger(
    stream: ServerHttp2Stream,
    outcome: Exclude<Authentication, { kind: 'pod' }>,
  ): void {
    const status = STATUS_OF[outcome.kind];
    const { log } = this.#options;
    log.info({ event: 'stream-refused', status, reason: outcome.reason }, 'a stream was refused');
    refuse(stream, { status, ...outcome });
  }

  #admit(http: ServerHttp2Stream, podUid: string, pod: PodIdentity): void {
    const { provider, registry } = this.#options;
    const { namespace, name } = pod;
    this.#connections.admit(http.session);
    http.respond({ ':status': 200, 'content-type': 'application/x-ndjson' });
    const stream = new SidecarStream(http, {
      session: {
        ...{ podUid, pod, provider, texts: this.#texts, random: this.#random },
        refusals: (version) => registry.refusalsOf(podUid, version),
        mayRegress: () => registry.mayRegress(podUid),
        timestamp: () => new Date().toISOString(),
      },
      nowMs: this.#nowMs,
      onReport: (report) => {
        if (this.#live.get(podUid) !== stream) return;
        registry.report(podUid, { namespace, name }, report);
        this.#note(podUid, report);
      },
      onEnd: (reason) => {
        this.#metrics.countEnd(reason ?? 'Client');
        if (this.#live.get(podUid) !== stream) return;
        this.#live.delete(podUid);
        this.#metrics.setClients(this.#live.size);
        registry.disconnect(podUid);
      },
    });
    const before = this.#live.get(podUid);
    this.#live.set(podUid, stream);
    this.#metrics.setClients(this.#live.size);
    before?.end('Replaced', REPLACED_RETRY_MS);
  }

  #note(podUid: string, report: SessionReport): void {
    if (report.kind === 'settled') this.#metrics.countPush(report.result, report.lagMs);
    if (report.kind !== 'in-force' || report.refusals.length === 0) return;
    this.#options.log.warn(
      { event: 'policies-refused', pod: podUid, refusals: report.refusals },
      'a sidecar does not take some policies; their last good versions stay in force there',
    );
  }

  #sweep(): void {
    const { pods, registry } = this.#options;
    for (const [podUid, stream] of this.#live) {
      const pod = pods.find(podUid);
      if (pod === undefined || pod.isTerminal) stream.end('Unauthorized', REPLACED_RETRY_MS);
      else stream.checkProgress();
    }
    registry.sweep((podUid) => pods.find(podUid) !== undefined);
  }
}

const STATUS_OF = { unauthenticated: 401, forbidden: 403, unavailable: 503 } as const;

interface Refusal {
  readonly status: number;
  readonly reason: string;
  readonly retryAfterMs?: number;
}

function refuse(stream: ServerHttp2Stream, { status, reason, retryAfterMs }: Refusal): void {
  const seconds = retryAfterMs === undefined ? undefined : Math.ceil(retryAfterMs / 1_000);
  stream.respond({
    ':status': status,
    'content-type': 'text/plain; charset=utf-8',
    ...(seconds === undefined ? {} : { 'retry-after': String(seconds) }),
  });
  stream.end(`${reason}\n`);
}

function peerOf({ remoteAddress = '', remotePort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function ignore(): void {
  // See where it is registered.
}
