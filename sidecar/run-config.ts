// What a sidecar was told, whoever told it: flags, environment, defaults.
import type { HostPort } from '../contract/setting.ts';

/** What `weir run` was told; every field is parsed and within its bounds. Durations in ms. */
export interface RunConfig {
  readonly policy: readonly string[];
  /** At least one; the n-th is where the n-th of `listen` forwards to. */
  readonly upstream: readonly HostPort[];
  /** What the application speaks: one for all of `upstream`, or the n-th for the n-th. */
  readonly upstreamProtocol: readonly ('auto' | 'http/1.1' | 'h2')[];
  readonly listen: readonly HostPort[];
  readonly admin: HostPort;
  /** Paths of PEM files; with both, clients are served over TLS. */
  readonly tlsCert: string | undefined;
  readonly tlsKey: string | undefined;
  readonly tlsClientCa: string | undefined;
  /** Where rules come from instead of `policy`: an `https:` URL. */
  readonly operator: string | undefined;
  /** PEM text, or the path of a file of it. */
  readonly operatorCa: string | undefined;
  readonly operatorToken: string;
  readonly seed: string | undefined;
  readonly configCache: string | undefined;
  readonly onNoConfig: 'deny' | 'allow';
  /** See contract/app-probe.ts; checked when it is opened. Its headers may hold credentials. */
  readonly appProbes: string | undefined;
  readonly podNamespace: string | undefined;
  readonly podName: string | undefined;
  readonly podUid: string | undefined;
  /** May hold a password: log it only through `redactUrl`. */
  readonly redis: string | undefined;
  readonly redisCa: string | undefined;
  readonly redisCert: string | undefined;
  readonly redisKey: string | undefined;
  readonly redisPartitions: number;
  readonly deadline: number;
  readonly lease: boolean;
  readonly headerTimeout: number;
  readonly idleTimeout: number;
  readonly bodyTimeout: number;
  readonly connectTimeout: number;
  readonly upstreamTimeout: number;
  readonly streamTimeout: number;
  readonly tunnelTimeout: number;
  readonly upstreamIdleTimeout: number;
  readonly maxConnections: number;
  readonly maxHeaderBytes: number;
  readonly maxHeaders: number;
  readonly maxUrlBytes: number;
  readonly workers: number;
  readonly supervise: boolean;
  readonly namespace: string | undefined;
  readonly labels: readonly (readonly [string, string])[];
  readonly workload: string | undefined;
  readonly replicas: number;
  readonly via: string | undefined;
  readonly debugFrom: readonly string[];
  readonly grace: number;
  readonly logLevel: 'error' | 'warn' | 'info' | 'debug';
  readonly accessLog: number;
}
