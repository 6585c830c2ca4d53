// What this process may do to the network it is in, and what that network is like: read from /proc before a rule is
// written, because iptables says the same few words about very different faults.

/** Bit of CAP_NET_ADMIN, capabilities(7). */
const NET_ADMIN_BIT = 12n;

/** Whether the text of /proc/self/status tells of an effective CAP_NET_ADMIN. */
export function hasNetAdmin(status: string): boolean {
  const [, effective = '0'] = /^CapEff:\s*([0-9a-f]{1,16})$/m.exec(status) ?? [];
  return ((BigInt(`0x${effective}`) >> NET_ADMIN_BIT) & 1n) === 1n;
}

/**
 * Whether the text of /proc/net/if_inet6 tells of an address that others than the neighbours on the same link reach:
 * each line is address, index, prefix length, scope, flags and device; scope 00 is global, and so are private ones.
 */
export function hasRoutedIpv6(addresses: string): boolean {
  return addresses.split('\n').some((line) => /^[0-9a-f]{32} [0-9a-f]+ [0-9a-f]+ 00 /i.test(line));
}

/** What to do about a process without NET_ADMIN, by its user id. */
export function remedyForPrivilege(uid: number): string {
  return uid === 0
    ? 'the container needs capabilities.add: [NET_ADMIN] in its securityContext; where Pod Security forbids it, use weir.dev/mode: takeover'
    : `user ${uid} has no effective capability, even if the container was given one: set runAsUser: 0 and runAsNonRoot: false beside capabilities.add: [NET_ADMIN]`;
}
