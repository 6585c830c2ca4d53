// Opens the data path: listens, accepts, sweeps deadlines, drains and stops. The connections do the work.
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import { Backlog } from '../http2/backlog.ts';
import type { AccessLog } from './access-log.ts';
import { ClientConnection, type Http2Successor } from './client-connection.ts';
import type { Gate } from './gate.ts';
import { Http2Connection } from './http2/http2-connection.ts';
import { Http2UpstreamPool } from './http2/upstream-pool.ts';
import { listenAt } from './listening.ts';
import type { ProxiedConnection } from './proxied-connection.ts';
import type { ProxyContext } from './proxy-context.ts';
import { ProxyCounters } from './proxy-counters.ts';
import {
  maxQuietMs,
  maxRefusedConnections,
  maxWaitingBytes,
  quietMs,
  settle,
  sweepIntervalMs,
} from './proxy-options.ts';
import type { ListenOptions, ProxyOptions } from './proxy-options.ts';
import { TlsAcceptance } from './tls-acceptance.ts';
import { UpstreamPool } from './upstream-pool.ts';

export interface ProxyDependencies {
  /** Monotonic milliseconds, e.g. `performance.now`. */
  readonly now: () => number;
  /** Milliseconds since the epoch, e.g. `Date.now`; for the Date field only. */
  readonly wallClock: () => number;
  /** Absent = responses are not logged. */
  readonly accessLog?: AccessLog;
  /** Told about bugs: an exception in the handling of one connection, which has been closed. */
  readonly onFault: (error: unknown) => void;
  /** Of another proxy of the same sidecar, to share numbers and `maxConnections` with; absent = its own. */
  readonly counters?: ProxyCounters | undefined;
}

export interface Proxy extends AsyncDisposable {
  /** Where it listens, port 0 resolved. */
  readonly address: { readonly host: string; readonly port: number };
  readonly counters: ProxyCounters;
  /** Another certificate for handshakes from now on; without `tls` in the options nothing happens. */
  renewTls(context: SecureContextOptions): void;
  /** Serves a connection that somebody else accepted (the parent of several workers). */
  adopt(socket: Socket): void;
  /** From now on every response closes its connection; new connections are still taken. */
  startDraining(): void;
  /**
   * Stops listening once nobody has connected for a second, closes idle connections, lets requests under way finish for
   * `graceMs`, then cuts them. Resolves when the last connection is closed. A second call can only shorten the grace.
   */
  stop(graceMs: number): Promise<void>;
  /** Looks at every deadline. Runs by itself; tests call it after moving their clock. */
  sweep(): void;
}

/** Starts serving. Throws `WeirError` LISTEN_FAILED with host and port. */
export async function openProxy(
  options: ProxyOptions,
  gate: Gate,
  dependencies: ProxyDependencies,
): Promise<Proxy> {
  const proxy = new ListeningProxy(options, gate, dependencies);
  if (options.listen !== undefined) await proxy.listen(options.listen);
  proxy.startSweeping();
  return proxy;
}

class ListeningProxy implements Proxy {
  readonly counters: ProxyCounters;
  address: { host: string; port: number } = { host: '', port: 0 };
  readonly #context: ProxyContext;
  readonly #wallClock: () => number;
  readonly #pool: UpstreamPool;
  readonly #http2Pool: Http2UpstreamPool;
  readonly #server: Server;
  readonly #tls: TlsAcceptance | undefined;
  readonly #connections = new Set<ProxiedConnection>();
  readonly #stopped = Promise.withResolvers<undefined>();
  #timer: NodeJS.Timeout | undefined;
  #lastSweepMs: number;
  #cutAtMs = Infinity;
  #lastAcceptMs = -Infinity;
  /** When the listener is closed however many still come. */
  #closeAtMs = Infinity;

  constructor(options: ProxyOptions, gate: Gate, dependencies: ProxyDependencies) {
    this.counters = dependencies.counters ?? new ProxyCounters();
    this.#wallClock = dependencies.wallClock;
    this.#lastSweepMs = dependencies.now();
    this.#context = {
      settings: settle(options),
      viaLine: options.via === undefined ? '' : `Via: 1.1 ${options.via}\r\n`,
      gate,
      counters: this.counters,
      now: dependencies.now,
      sweptMs: 0,
      pendingHeadBytes: 0,
      backlog: new Backlog(maxWaitingBytes),
      dateLine: '',
      draining: false,
      stopping: false,
      accessLog: dependencies.accessLog,
      onFault: dependencies.onFault,
    };
    this.#renewDate();
    this.#pool = new UpstreamPool(this.#context);
    this.#http2Pool = new Http2UpstreamPool(this.#context, this.#pool.readBuffer);
    this.#tls =
      options.tls === undefined
        ? undefined
        : new TlsAcceptance({
            context: options.tls,
            upstreamProtocol: options.upstreamProtocol ?? 'auto',
            timeoutMs: this.#context.settings.timeouts.headMs,
            counters: this.counters,
            onSecure: (socket) => {
              this.#serve(socket);
            },
          });
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      this.#accept(socket);
    });
  }

  async listen(at: ListenOptions): Promise<void> {
    await listenAt(this.#server, at);
    // What goes wrong in accepting (no more file descriptors) must not end the process.
    this.#server.on('error', this.#context.onFault);
    const { address, port } = this.#server.address() as AddressInfo; // a TCP server has no other address
    this.address = { host: address, port };
  }

  startSweeping(): void {
    // After what has come meanwhile is read: of a process that was held up, the timer is the first to run.
    const sweep = (): void => {
      this.sweep();
    };
    this.#timer = setInterval(() => setImmediate(sweep), sweepIntervalMs);
    this.#timer.unref();
  }

  adopt(socket: Socket): void {
    // What the proxy's own listener sets on the connections it accepts.
    socket.allowHalfOpen = true;
    socket.setNoDelay(true);
    this.#accept(socket);
  }

  #accept(socket: Socket): void {
    const { counters } = this.#context;
    counters.connectionsTotal += 1;
    this.#lastAcceptMs = this.#context.now();
    if (this.#excess >= maxRefusedConnections) {
      counters.connectionsRefused += 1;
      socket.destroy();
    } else if (this.#tls === undefined) this.#serve(socket);
    else this.#tls.accept(socket);
  }

  /** Connections above the maximum; below zero while there is room. */
  get #excess(): number {
    const { counters, settings } = this.#context;
    return counters.connectionsOpen + (this.#tls?.pending ?? 0) - settings.maxConnections;
  }

  #serve(socket: Socket): void {
    const { counters } = this.#context;
    const isRefused = this.#excess >= 0;
    const connection = new ClientConnection(socket, this.#context, {
      pool: this.#pool,
      onGone: this.#onGone,
      onHttp2: this.#onHttp2,
    });
    this.#connections.add(connection);
    counters.connectionsOpen += 1;
    // Reset before it was accepted. What it had sent may still be read, but nobody could say whose requests they are.
    if (connection.head.peerAddress === '') connection.destroy();
    if (!isRefused) return;
    counters.connectionsRefused += 1;
    connection.refuseConnection();
  }

  renewTls(context: SecureContextOptions): void {
    this.#tls?.renew(context);
  }

  readonly #onHttp2 = (before: ProxiedConnection, socket: Socket): Http2Successor => {
    const connection = new Http2Connection(socket, this.#context, {
      upstreams: this.#http2Pool,
      onGone: this.#onGone,
    });
    this.#connections.delete(before);
    this.#connections.add(connection);
    return connection;
  };

  readonly #onGone = (connection: ProxiedConnection): void => {
    if (this.#connections.delete(connection)) this.counters.connectionsOpen -= 1;
    if (this.#context.stopping) this.#checkStopped();
  };

  // A sweep that comes later than the next one would have counts as one in time: a process that was frozen (CPU quota,
  // suspended machine) must not close connections whose bytes already wait in the kernel, or are still to be sent by a
  // peer that was frozen with it.
  sweep(): void {
    const context = this.#context;
    const nowMs = context.now();
    const passedMs = nowMs - this.#lastSweepMs;
    context.sweptMs += passedMs > 2 * sweepIntervalMs ? sweepIntervalMs : passedMs;
    this.#lastSweepMs = nowMs;
    this.#renewDate();
    this.#pool.sweep();
    this.#http2Pool.sweep();
    if (context.stopping) this.#closeListener(nowMs);
    const cut = nowMs >= this.#cutAtMs;
    for (const connection of this.#connections) {
      if (cut) connection.destroy();
      else if (connection.deadlineMs <= context.sweptMs) endOverdue(connection);
      else sweepOne(connection);
    }
    if (context.stopping) this.#checkStopped();
  }

  #renewDate(): void {
    this.#context.dateLine = `Date: ${new Date(this.#wallClock()).toUTCString()}\r\n`;
  }

  startDraining(): void {
    if (this.#context.draining) return;
    this.#context.draining = true;
    for (const connection of this.#connections) connection.startDraining();
  }

  async stop(graceMs: number): Promise<void> {
    this.startDraining();
    this.#context.stopping = true;
    const nowMs = this.#context.now();
    this.#cutAtMs = Math.min(this.#cutAtMs, nowMs + graceMs);
    this.#closeAtMs = nowMs + Math.min(graceMs / 2, maxQuietMs);
    this.#closeListener(nowMs);
    this.#pool.closeIdle();
    this.#http2Pool.closeIdle();
    for (const connection of this.#connections) {
      if (graceMs <= 0) connection.destroy();
      else connection.stop();
    }
    this.#checkStopped();
    await this.#stopped.promise;
  }

  // Closing resets the connections that the kernel has taken and we have not: while clients still come, some always wait.
  #closeListener(nowMs: number): void {
    if (!this.#server.listening) return;
    if (nowMs < this.#closeAtMs && nowMs - this.#lastAcceptMs < quietMs) return;
    this.#server.close();
    this.#checkStopped();
  }

  // Behind a handshake comes a request, for which a connection without TLS would be left open for `quietMs` as well.
  #awaitsHandshakes(): boolean {
    if (this.#tls === undefined || this.#tls.pending === 0) return false;
    return this.#context.now() < Math.min(this.#cutAtMs, this.#lastAcceptMs + 2 * quietMs);
  }

  #checkStopped(): void {
    if (this.#connections.size > 0 || this.#server.listening) return;
    if (this.#awaitsHandshakes()) return;
    clearInterval(this.#timer);
    this.#tls?.close();
    this.#stopped.resolve(undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop(0);
  }
}

function sweepOne(connection: ProxiedConnection): void {
  try {
    connection.onSweep();
  } catch (error) {
    connection.onFault(error);
  }
}

function endOverdue(connection: ProxiedConnection): void {
  try {
    connection.onDeadline();
  } catch (error) {
    connection.onFault(error);
  }
}
