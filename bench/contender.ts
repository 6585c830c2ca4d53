// Who is measured. All contenders of a run stand ready at the same time, idle until it is their turn.
import type { PinnedProcess } from './pinned-process.ts';

export type ContenderName =
  | 'direct'
  | 'relay'
  | 'nginx'
  | 'nginx-lua'
  | 'weir'
  | 'weir-32'
  | 'traefik'
  | 'envoy-local'
  | 'envoy-ratelimit';

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
};
