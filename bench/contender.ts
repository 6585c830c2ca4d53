// Who is measured. All contenders of a run stand ready at the same time, idle until it is their turn.
import type { PinnedProcess } from './pinned-process.ts';
import type { Stage } from './stage.ts';

export type ContenderName =
  | 'direct'
  | 'relay'
  | 'nginx'
  | 'nginx-lua'
  | 'weir'
  | 'weir-32'
  | 'traefik'
  | 'envoy-local'
  | 'envoy-ratelimit'
  | 'weir-http2'
  | 'envoy-local-http2';

export interface Contender {
  readonly name: ContenderName;
  /** As the report writes it. */
  readonly title: string;
  readonly processes: readonly PinnedProcess[];
  readonly usesRedis: boolean;
  /** Where requests with an allowed key go. */
  readonly port: number;
  /** Where requests with the key `deny` are refused; absent without a limit. */
  readonly refusingPort?: number;
}

/** Starts a contender whose processes end with the stage's stack. */
export type Start = (stage: Stage) => Promise<Contender>;

/** Somebody who can be started here, and from what. */
export interface Candidate {
  readonly name: ContenderName;
  readonly start: Start;
  /** Of the programs it consists of, such as `Envoy 1.40.0`; absent for our own and for none. */
  readonly version?: string;
}

export const TITLES: Readonly<Record<ContenderName, string>> = {
  direct: 'no proxy',
  relay: 'TCP pass-through in Node',
  nginx: 'nginx, plain proxy',
  'nginx-lua': 'nginx + Lua + Redis',
  weir: 'Weir + Redis',
  'weir-32': 'Weir + Redis, 32 rules',
  traefik: 'Traefik + Redis',
  'envoy-local': 'Envoy, local limit',
  'envoy-ratelimit': 'Envoy + ratelimit + Redis',
  'weir-http2': 'Weir + Redis, HTTP/2',
  'envoy-local-http2': 'Envoy, local limit, HTTP/2',
};

/** A contender without a limit; spread it to add one. */
export function contender(
  name: ContenderName,
  port: number,
  processes: readonly PinnedProcess[],
): Contender {
  return { name, title: TITLES[name], processes, usesRedis: false, port };
}

/** A token bucket, or what a limiter has that comes nearest. */
export interface Limit {
  readonly capacity: number;
  readonly perSecond: number;
}

/** More than any load asks for: the limiter works, and never refuses. */
export const NO_LIMIT: Limit = { capacity: 100_000_000, perSecond: 100_000_000 };
