// The network of the node: one bridge that holds the node, its pods and a link to this machine. Its addresses are of
// the range that RFC 2544 keeps for tests, and of a private one of IPv6; nothing routes them further.
import { existsSync } from 'node:fs';

export const NODE_NAME = 'weir-node';

/** Of one address family. */
export interface Addresses {
  /** Of the bridge: the node, and where the API server and the resolver listen. */
  readonly node: string;
  /** Of this machine, as pods see it. */
  readonly host: string;
  /** Of pods; the bridge's own and the host's are in it. */
  readonly pods: string;
  readonly prefix: number;
  /** Addresses that pods get. */
  readonly firstPod: string;
  readonly lastPod: string;
  readonly services: string;
  /** Of the Service `kubernetes`. */
  readonly apiService: string;
  readonly everywhere: string;
}

const V4: Addresses = {
  ...{ node: '198.18.0.1', host: '198.18.0.2', pods: '198.18.0.0/16', prefix: 16 },
  ...{ firstPod: '198.18.1.0', lastPod: '198.18.250.250' },
  ...{ services: '198.19.0.0/16', apiService: '198.19.0.1', everywhere: '0.0.0.0/0' },
};

const V6: Addresses = {
  ...{ node: 'fd00:18::1', host: 'fd00:18::2', pods: 'fd00:18::/64', prefix: 64 },
  ...{ firstPod: 'fd00:18::1:0', lastPod: 'fd00:18::1:ffff' },
  ...{ services: 'fd00:19::/112', apiService: 'fd00:19::1', everywhere: '::/0' },
};

/** IPv4, and IPv6 where the kernel has it. */
export const families: readonly [Addresses, ...Addresses[]] = existsSync('/proc/net/if_inet6')
  ? [V4, V6]
  : [V4];

export const BRIDGE = 'weirbr0';
/** The end of the link that is on this machine. */
export const HOST_LINK = 'weirhost';

/** The value of each family, comma-separated, as Kubernetes' flags take them. */
export function joined(field: keyof Addresses): string {
  return families.map((one) => String(one[field])).join(',');
}
