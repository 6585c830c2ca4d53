// Every setting of `weir run`, once: the command line, the environment, `--print-config` and docs/configuration.md
// are made from this table.
import { inPod } from '../contract/names.ts';
import {
  list,
  one,
  parsePath,
  parseChoice,
  parseDuration,
  parseHostPort,
  parseInteger,
  parseLabel,
  parseShare,
  parseSwitch,
  parseText,
  parseWorkload,
  type Setting,
} from '../contract/setting.ts';
import { settingsOf, type SettingsTable } from '../contract/settings-reading.ts';
import type { RunConfig } from './run-config.ts';

const dnsLabel = parseText(
  /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/,
  'a namespace name, such as shop',
);
const cidr = parseText(/^[0-9A-Fa-f:.]+\/[0-9]{1,3}$/, 'a network such as 127.0.0.0/8 or fd00::/8');

type Entry<Value> = Omit<Setting<Value>, 'name' | 'field'>;

function duration(written: string, summary: string): Entry<number> {
  return { placeholder: 'DURATION', summary, written, parse: parseDuration, ...one };
}

function file(summary: string): Entry<string> {
  return { placeholder: 'FILE', summary, written: undefined, parse: parsePath, ...one };
}

// A descriptor each for the client and the upstream side, and some for Redis, admin and files: 10 000 connections
// stay below the usual hard limit of 2^20 and below 130 MB of memory at the measured ~8 kB a pair.
const MOST_CONNECTIONS = 200_000;

const table: SettingsTable<RunConfig> = {
  policy: {
    placeholder: 'FILE|DIR',
    summary: 'policy files, or folders of *.yaml, *.yml and *.json',
    written: undefined,
    parse: parsePath,
    ...list,
  },
  upstream: {
    placeholder: 'HOST:PORT',
    summary: 'the application to forward admitted requests to; one for each --listen',
    written: undefined,
    parse: parseHostPort(1),
    ...list,
  },
  upstreamProtocol: {
    placeholder: 'PROTOCOL',
    summary:
      'auto, http/1.1 or h2: what the application speaks, which alone is offered over TLS; one for all --upstream or one for each',
    written: 'auto',
    parse: parseChoice(['auto', 'http/1.1', 'h2']),
    ...list,
  },
  listen: {
    placeholder: 'ADDR:PORT',
    summary: 'where to accept requests; port 0 picks a free one',
    written: '127.0.0.1:8080',
    parse: parseHostPort(0),
    ...list,
  },
  admin: {
    placeholder: 'ADDR:PORT',
    summary: 'where to serve /healthz, /readyz and /metrics',
    written: '127.0.0.1:15090',
    parse: parseHostPort(0),
    ...one,
  },
  tlsCert: file('certificate to serve clients over TLS with; read again when it changes'),
  tlsKey: file('private key of that certificate'),
  tlsClientCa: file('CA certificates whose clients are let in; absent = clients show none'),
  operator: {
    placeholder: 'URL',
    summary: 'the operator that pushes rules, instead of --policy: https://host:port',
    written: undefined,
    parse: parseText(/^https:\/\/[^\s/@?#]+\/?$/, 'https://HOST:PORT'),
    ...one,
  },
  operatorCa: {
    placeholder: 'PEM|FILE',
    summary: "CA certificates to trust for the operator; absent = the system's",
    written: undefined,
    parse: parsePath,
    ...one,
  },
  operatorToken: {
    placeholder: 'FILE',
    summary: 'the token to show to the operator; read again at every connection',
    written: `${inPod.identityPath}/${inPod.tokenFile}`,
    parse: parsePath,
    ...one,
  },
  seed: file('rules to start with when the operator cannot be reached and no cache is there'),
  configCache: {
    placeholder: 'DIR',
    summary: 'a private folder in memory that keeps what the operator pushed over a restart',
    written: undefined,
    parse: parsePath,
    ...one,
  },
  onNoConfig: {
    placeholder: 'deny|allow',
    summary: 'what to do with requests until there are rules: 503 and not ready, or forward them',
    written: 'deny',
    parse: parseChoice(['deny', 'allow']),
    ...one,
  },
  appProbes: {
    placeholder: 'JSON',
    summary: 'checks of the application to do for the kubelet, as the webhook writes them',
    written: undefined,
    parse: parseText(/^\[[^]*\]$/, 'a JSON list of probes'),
    isList: false,
    isSecret: true,
  },
  podNamespace: {
    placeholder: 'NAME',
    summary: 'the pod that the token is bound to',
    written: undefined,
    parse: dnsLabel,
    ...one,
  },
  podName: {
    placeholder: 'NAME',
    summary: 'the pod that the token is bound to',
    written: undefined,
    parse: parseText(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/, 'the name of a pod'),
    ...one,
  },
  podUid: {
    placeholder: 'UID',
    summary: 'the pod that the token is bound to',
    written: undefined,
    parse: parseText(/^[A-Za-z0-9-]{1,64}$/, 'the uid of a pod'),
    ...one,
  },
  redis: {
    placeholder: 'URL',
    summary:
      'the shared store: redis://, rediss://, redis+sentinel://, redis+cluster:// (and rediss+…); absent = embedded store',
    written: undefined,
    parse: parsePath,
    isList: false,
    isSecret: true,
  },
  redisCa: file('CA certificates to trust for rediss://'),
  redisCert: file('client certificate for rediss://'),
  redisKey: file('private key of the client certificate'),
  redisPartitions: {
    placeholder: 'N',
    summary: 'slots that one policy is spread over in a Cluster; the same on every sidecar',
    written: '1',
    parse: parseInteger(1, 1024),
    ...one,
  },
  deadline: duration('50ms', 'how long one decision may wait for the store'),
  lease: {
    placeholder: 'true|false',
    summary: 'let very hot keys take tokens from the store ahead of their requests, for 50 ms',
    written: 'false',
    parse: parseSwitch,
    ...one,
  },
  headerTimeout: duration('10s', 'how long a client may take to send a request head'),
  idleTimeout: duration('60s', 'how long a keep-alive connection may stay silent between requests'),
  bodyTimeout: duration(
    '60s',
    'how long a client may make no progress with a body it sends or reads',
  ),
  connectTimeout: duration('2s', 'how long connecting to the upstream may take'),
  upstreamTimeout: duration('60s', 'how long the upstream may take to send a response head'),
  streamTimeout: duration(
    '10m',
    'how long a response body may be silent; event streams are for minutes',
  ),
  tunnelTimeout: duration('1h', 'how long an upgraded connection (WebSocket) may be silent'),
  upstreamIdleTimeout: duration(
    '4s',
    'how long an idle connection to the upstream is kept; less than the upstream keeps it',
  ),
  maxConnections: {
    placeholder: 'N',
    summary: 'client connections open at once',
    written: '10000',
    parse: parseInteger(1, MOST_CONNECTIONS),
    ...one,
  },
  maxHeaderBytes: {
    placeholder: 'N',
    summary: 'size of a request head; a larger one is answered 431',
    written: '65536',
    parse: parseInteger(1_024, 1_048_576),
    ...one,
  },
  maxHeaders: {
    placeholder: 'N',
    summary: 'field lines in a request head; more are answered 431',
    written: '128',
    parse: parseInteger(10, 2_000),
    ...one,
  },
  maxUrlBytes: {
    placeholder: 'N',
    summary: 'length of a request target; a longer one is answered 414',
    written: '16384',
    parse: parseInteger(256, 1_048_576),
    ...one,
  },
  workers: {
    placeholder: 'N',
    summary: 'processes that share the listener and its limits',
    written: '1',
    parse: parseInteger(1, 64),
    ...one,
  },
  supervise: {
    placeholder: 'true|false',
    summary: 'keep the listener in a parent that restarts a crashed worker',
    written: 'false',
    parse: parseSwitch,
    ...one,
  },
  namespace: {
    placeholder: 'NAME',
    summary: 'apply only policies of this namespace',
    written: undefined,
    parse: dnsLabel,
    ...one,
  },
  labels: {
    placeholder: 'K=V',
    summary:
      "labels that the policies' selectors are matched against; absent = every selector matches",
    written: undefined,
    parse: parseLabel,
    ...list,
  },
  workload: {
    placeholder: 'KIND/NAME',
    summary: 'the owner that shares buckets under scope: Workload',
    written: undefined,
    parse: parseWorkload,
    ...one,
  },
  replicas: {
    placeholder: 'N',
    summary: 'sidecars that share a limit while failureMode: Local stands in for the store',
    written: '1',
    parse: parseInteger(1, 10_000),
    ...one,
  },
  via: {
    placeholder: 'NAME',
    summary: 'add a Via field with this pseudonym (some servers stop compressing on it)',
    written: undefined,
    parse: parseText(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/, 'a token such as weir'),
    ...one,
  },
  debugFrom: {
    placeholder: 'CIDR',
    summary: 'networks whose requests may ask with `Weir-Debug: 1` which rules matched',
    written: undefined,
    parse: cidr,
    ...list,
  },
  grace: duration(
    '30s',
    'time from SIGTERM to the end; in-flight requests get all but one second of it',
  ),
  logLevel: {
    placeholder: 'LEVEL',
    summary: 'error, warn, info or debug',
    written: 'info',
    parse: parseChoice(['error', 'warn', 'info', 'debug']),
    ...one,
  },
  accessLog: {
    placeholder: 'SHARE',
    summary: 'share of requests to log, 0 to 1',
    written: '0',
    parse: parseShare,
    ...one,
  },
};

/** The settings in the order in which help and docs list them. */
export const settings: readonly Setting<unknown>[] = settingsOf(table);
