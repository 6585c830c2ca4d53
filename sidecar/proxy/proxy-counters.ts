// Plain numbers the hot path adds to; the metrics endpoint reads them at scrape.
import { Histogram } from '../counters/histogram.ts';
import type { RefusalReason } from '../http1/refusal.ts';

export type UpstreamErrorKind = 'bad-response' | 'closed' | 'connect' | 'reset' | 'timeout';
export type TimeoutKind =
  'client-stall' | 'connect' | 'head' | 'idle' | 'response' | 'tunnel' | 'upstream-stall';

/** From 1 ms (a small handler on loopback) to the default response timeout. */
const upstreamBoundsSeconds = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

export class ProxyCounters {
  connectionsOpen = 0;
  connectionsTotal = 0;
  /** Connections refused because `maxConnections` were open. */
  connectionsRefused = 0;
  /** Connections on which TLS was not agreed upon. */
  tlsFailures = 0;
  /** Unfinished heads given up because all together had grown too large. */
  headsShed = 0;
  /** Heads accepted by the parser, whatever became of them. */
  requestsTotal = 0;
  /** Heads the parser refused. A body that it refuses belongs to a request that has its verdict already. */
  headsRefused = 0;
  tunnelsOpen = 0;
  /** Requests under way over HTTP/2. */
  streamsOpen = 0;
  /** Requests over HTTP/2 broken off because too much waited for clients that do not read. */
  streamsShed = 0;
  /** Connections the client broke off while a request was under way. */
  clientAborts = 0;
  upstreamConnectionsTotal = 0;
  /** Requests sent a second time after a stale connection. */
  upstreamRetries = 0;
  faults = 0;
  bytesFromClients = 0;
  bytesToClients = 0;
  /** Final responses by first digit of the status, index 1..5 (101 counts as 1); own answers included. */
  readonly responses: Float64Array = new Float64Array(10);
  readonly upstreamErrors: Record<UpstreamErrorKind, number> = {
    'bad-response': 0,
    closed: 0,
    connect: 0,
    reset: 0,
    timeout: 0,
  };
  readonly timeouts: Record<TimeoutKind, number> = {
    'client-stall': 0,
    connect: 0,
    head: 0,
    idle: 0,
    response: 0,
    tunnel: 0,
    'upstream-stall': 0,
  };
  readonly refusals: ReadonlyMap<RefusalReason, number>;
  readonly #refusals = new Map<RefusalReason, number>();
  /** Request sent to response head received. */
  readonly upstreamSeconds: Histogram = new Histogram(upstreamBoundsSeconds);

  constructor() {
    this.refusals = this.#refusals;
  }

  countRefusal(reason: RefusalReason, times = 1): void {
    this.#refusals.set(reason, (this.#refusals.get(reason) ?? 0) + times);
  }

  countResponse(status: number): void {
    const digit = Math.floor(status / 100);
    this.responses[digit] = (this.responses[digit] ?? 0) + 1;
  }
}
