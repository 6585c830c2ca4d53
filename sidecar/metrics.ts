// Every metric of the sidecar: its name, its words, and where its number is counted. docs/metrics.md is made from it.
// Labels are names of policies and rules and words of ours; never a key, a path or an address.
import type { Metric, MetricDefinition, Sample } from './admin/metric.ts';
import type { Histogram } from './counters/histogram.ts';
import type { EnforcingGate } from './enforcement/enforcing-gate.ts';
import type { RuleTallies } from './enforcement/rule-tally.ts';
import type { ProxyCounters } from './proxy/proxy-counters.ts';
import type { RuleCounters } from './rules/rule-counters.ts';
import type { Limiter } from './store/limiter.ts';

/** Where the bundle in force came from. */
export type ConfigOrigin = 'stream' | 'cache' | 'seed' | 'file' | 'none';

export interface MetricSources {
  readonly gate: EnforcingGate;
  readonly limiter: Limiter;
  readonly tallies: RuleTallies;
  readonly proxy: ProxyCounters;
  readonly rules: RuleCounters;
  readonly configOrigin: () => ConfigOrigin;
  /** Seconds since the bundle in force was accepted. */
  readonly configAgeSeconds: () => number;
  /** Reloads that were refused at least in part. */
  readonly configRejected: () => number;
  readonly process: () => { readonly cpuSeconds: number; readonly residentBytes: number };
}

const ORIGINS: readonly ConfigOrigin[] = ['stream', 'cache', 'seed', 'file', 'none'];
const BREAKER_STATES = { closed: 0, 'half-open': 1, open: 2 } as const;

export function sidecarMetrics(sources: MetricSources): readonly Metric[] {
  return [
    ...requestMetrics(sources),
    ...storeMetrics(sources),
    ...configMetrics(sources),
    ...connectionMetrics(sources),
    ...processMetrics(sources),
  ];
}

function requestMetrics({ gate, limiter, proxy, tallies, rules }: MetricSources): Metric[] {
  return [
    counter(
      'weir_requests_total',
      'Requests, each once, by what became of them; error: no valid request, or its client went before anything was asked.',
      ['verdict'],
      () => {
        const { allowed, denied, unavailable, exempt, error } = gate.counters;
        return labelled('verdict', {
          allowed,
          denied,
          unavailable,
          error: error + proxy.headsRefused,
          exempt,
        });
      },
    ),
    counter(
      'weir_rule_decisions_total',
      'Decisions of each rule. A denied request counts for the rule that refused it; shadow rules count what they would have done.',
      ['policy', 'rule', 'mode', 'verdict'],
      () => [...tallies.all()].flatMap(tallySamples),
    ),
    histogram(
      'weir_decision_seconds',
      'From a parsed request head to its verdict.',
      () => gate.decisionSeconds,
    ),
    histogram(
      'weir_upstream_seconds',
      'From a request sent to the head of its response.',
      () => proxy.upstreamSeconds,
    ),
    counter('weir_deny_cache_total', 'Requests refused without asking the store.', [], () => [
      plain(limiter.counters.denyCacheHits),
    ]),
    counter(
      'weir_cel_errors_total',
      'CEL expressions that failed on a request: no match, or a missing key.',
      [],
      () => [plain(rules.celErrors)],
    ),
    counter('weir_tokens_total', 'Tokens (JWT) looked at for their claims.', ['outcome'], () =>
      labelled('outcome', { verified: rules.claimsVerified, rejected: rules.claimsRejected }),
    ),
  ];
}

function storeMetrics({ limiter }: MetricSources): Metric[] {
  const { counters } = limiter;
  const count = (name: string, help: string, read: () => number): Metric =>
    counter(name, help, [], () => [plain(read())]);
  return [
    histogram(
      'weir_store_seconds',
      'From a call to the store to its answer.',
      () => counters.storeSeconds,
    ),
    count('weir_store_calls_total', 'Calls to the store.', () => counters.storeCalls),
    count('weir_store_decisions_total', 'Decisions in those calls.', () => counters.decisions),
    count(
      'weir_coalesced_total',
      'Requests that shared a decision with another one.',
      () => counters.coalesced,
    ),
    counter('weir_store_errors_total', 'Calls that gave no answer, by why.', ['kind'], () =>
      labelled('kind', counters.errors),
    ),
    gauge('weir_breaker_state', 'Circuit breaker of a store node: 0 closed, 1 half-open, 2 open.', {
      labels: ['node'],
      across: 'max',
      read: () =>
        limiter.breakerStates().map(({ node, state }) => ({
          labels: { node },
          value: BREAKER_STATES[state],
        })),
    }),
    count(
      'weir_degraded_total',
      "Requests decided by a policy's failure mode.",
      () => counters.degraded,
    ),
    count(
      'weir_charge_unknown_total',
      'Requests whose charge may or may not have happened: the answer of their call never came.',
      () => counters.chargeUnknown,
    ),
    count(
      'weir_late_replies_total',
      'Answers of the store after nobody waited for them.',
      () => counters.lateReplies,
    ),
    count(
      'weir_charges_lost_total',
      'Response costs that could not be charged, and refunds that could not be made.',
      () => counters.chargesLost,
    ),
    counter(
      'weir_lease_tokens_total',
      'Tokens taken ahead of requests (--lease); each granted one is used, refunded, lost, or held now.',
      ['fate'],
      () => {
        const { leaseGranted, leaseUsed, leaseRefunded, leaseLost } = counters;
        return labelled('fate', {
          granted: leaseGranted,
          used: leaseUsed,
          refunded: leaseRefunded,
          lost: leaseLost,
        });
      },
    ),
    count(
      'weir_limit_newer_total',
      'Decisions under a newer limit than the policy of this sidecar holds.',
      () => counters.limitNewer,
    ),
  ];
}

function configMetrics(sources: MetricSources): Metric[] {
  return [
    gauge('weir_config_age_seconds', 'Since the bundle in force was accepted.', {
      labels: [],
      across: 'max',
      read: () => [plain(sources.configAgeSeconds())],
    }),
    gauge('weir_config_origin', 'Where the bundle in force came from: 1 at its origin.', {
      labels: ['origin'],
      across: 'max',
      read: () =>
        ORIGINS.map((origin) => ({
          labels: { origin },
          value: origin === sources.configOrigin() ? 1 : 0,
        })),
    }),
    counter(
      'weir_config_rejected_total',
      'Reloads with problems; the last good version stayed.',
      [],
      () => [plain(sources.configRejected())],
    ),
  ];
}

function openMetrics(proxy: MetricSources['proxy']): Metric[] {
  return [
    gauge('weir_connections', 'Client connections open.', {
      labels: [],
      across: 'sum',
      read: () => [plain(proxy.connectionsOpen)],
    }),
    gauge('weir_tunnels', 'Upgraded connections (WebSocket) open.', {
      labels: [],
      across: 'sum',
      read: () => [plain(proxy.tunnelsOpen)],
    }),
    gauge('weir_http2_streams', 'Requests under way over HTTP/2.', {
      labels: [],
      across: 'sum',
      read: () => [plain(proxy.streamsOpen)],
    }),
  ];
}

function connectionMetrics({ proxy }: MetricSources): Metric[] {
  const count = (name: string, help: string, read: () => number): Metric =>
    counter(name, help, [], () => [plain(read())]);
  return [
    ...openMetrics(proxy),
    count('weir_connections_total', 'Client connections accepted.', () => proxy.connectionsTotal),
    count(
      'weir_connections_refused_total',
      'Client connections beyond the maximum.',
      () => proxy.connectionsRefused,
    ),
    count(
      'weir_tls_failures_total',
      'Client connections on which TLS was not agreed upon.',
      () => proxy.tlsFailures,
    ),
    count(
      'weir_heads_shed_total',
      'Unfinished heads given up, by 503 or GOAWAY, because those of all connections were too large together.',
      () => proxy.headsShed,
    ),
    count(
      'weir_http2_streams_shed_total',
      'Requests over HTTP/2 broken off because too much waited for clients that do not read.',
      () => proxy.streamsShed,
    ),
    counter('weir_responses_total', 'Final responses by class, our own included.', ['class'], () =>
      [1, 2, 3, 4, 5].map((digit) => ({
        labels: { class: `${digit}xx` },
        value: proxy.responses[digit] ?? 0,
      })),
    ),
    counter('weir_refusals_total', 'Invalid HTTP, and streams too many, by why.', ['reason'], () =>
      labelled('reason', Object.fromEntries(proxy.refusals)),
    ),
    counter(
      'weir_upstream_errors_total',
      'Requests the upstream did not answer, by why.',
      ['kind'],
      () => labelled('kind', proxy.upstreamErrors),
    ),
    counter('weir_timeouts_total', 'Deadlines that passed, by which.', ['kind'], () =>
      labelled('kind', proxy.timeouts),
    ),
    count(
      'weir_upstream_connections_total',
      'Connections opened to the upstream.',
      () => proxy.upstreamConnectionsTotal,
    ),
    count(
      'weir_upstream_retries_total',
      'Requests sent again after a stale connection.',
      () => proxy.upstreamRetries,
    ),
    count(
      'weir_client_aborts_total',
      'Clients gone while their request was under way.',
      () => proxy.clientAborts,
    ),
    count('weir_faults_total', 'Bugs contained in one connection.', () => proxy.faults),
    count(
      'weir_client_received_bytes_total',
      'Bytes received from clients.',
      () => proxy.bytesFromClients,
    ),
    count('weir_client_sent_bytes_total', 'Bytes sent to clients.', () => proxy.bytesToClients),
  ];
}

function processMetrics({ process }: MetricSources): Metric[] {
  return [
    counter('process_cpu_seconds_total', 'CPU time, user and system.', [], () => [
      plain(process().cpuSeconds),
    ]),
    gauge('process_resident_memory_bytes', 'Resident memory.', {
      labels: [],
      across: 'sum',
      read: () => [plain(process().residentBytes)],
    }),
  ];
}

function tallySamples(tally: {
  readonly policy: string;
  readonly rule: string;
  readonly mode: string;
  readonly allowed: number;
  readonly denied: number;
  readonly unknown: number;
}): Sample[] {
  const { policy, rule, mode, allowed, denied, unknown } = tally;
  return labelled('verdict', { allowed, denied, unknown }).map(({ labels, value }) => ({
    labels: { policy, rule, mode, ...labels },
    value,
  }));
}

function labelled(label: string, values: Readonly<Record<string, number>>): Sample[] {
  return Object.entries(values).map(([name, value]) => ({ labels: { [label]: name }, value }));
}

function plain(value: number): Sample {
  return { labels: {}, value };
}

function counter(
  name: string,
  help: string,
  labels: readonly string[],
  read: () => readonly Sample[],
): Metric {
  return { definition: define({ name, help, kind: 'counter', labels, across: 'sum' }), read };
}

function gauge(
  name: string,
  help: string,
  rest: {
    readonly labels: readonly string[];
    readonly across: 'sum' | 'max';
    readonly read: () => readonly Sample[];
  },
): Metric {
  const { labels, across, read } = rest;
  return { definition: define({ name, help, kind: 'gauge', labels, across }), read };
}

function histogram(name: string, help: string, read: () => Histogram): Metric {
  return { definition: define({ name, help, kind: 'histogram', labels: [], across: 'sum' }), read };
}

function define(definition: MetricDefinition): MetricDefinition {
  return definition;
}
