// Which addresses a key set may be fetched from. Whoever may write policies chooses the address, and the operator
// stands where they may not: so it never asks its own host or the link it is on, which is where metadata services are.
import ipaddr from 'ipaddr.js';

/** `*.example.com` stands for any name below; absent or empty = any host. */
export type AllowedHosts = readonly string[];

/** Why a host may not be asked; undefined = it may, as far as its name goes. */
export function hostFault(hostname: string, allowed: AllowedHosts): string | undefined {
  const host = hostname.toLowerCase().replace(/\.$/, '');
  const literal = literalOf(host);
  if (literal !== undefined) {
    const fault = addressFault(literal);
    if (fault !== undefined) return fault;
  } else if (host === 'localhost' || host.endsWith('.localhost')) {
    return 'names this host (loopback)';
  }
  if (allowed.length === 0 || allowed.some((pattern) => covers(pattern.toLowerCase(), host))) {
    return undefined;
  }
  return 'is not on a host the operator may ask (its setting --jwks-hosts)';
}

/** Why an address that a name resolved to may not be connected to; undefined = it may. */
export function addressFault(text: string): string | undefined {
  if (!ipaddr.isValid(text)) return 'is no address';
  const address = embedded(ipaddr.parse(text));
  const fault = FAULTS.get(address.range());
  if (fault !== undefined) return fault;
  return METADATA.has(address.toNormalizedString()) ? 'is a metadata service' : undefined;
}

const FAULTS = new Map([
  ['loopback', 'names this host (loopback)'],
  ['unspecified', 'names this host (unspecified)'],
  ['linkLocal', 'is link-local'],
  ['multicast', 'is multicast'],
  ['broadcast', 'is broadcast'],
  ['reserved', 'is reserved'],
  // An IPv4 address in another place than the two we look into could be any of the above.
  ['6to4', 'is a 6to4 address'],
  ['teredo', 'is a Teredo address'],
  ['rfc6145', 'is an IPv4-translated address'],
]);

/** Metadata services that are not link-local: AWS over IPv6, Alibaba Cloud, Oracle. */
const METADATA = new Set(['fd00:ec2:0:0:0:0:0:254', '100.100.100.200', '192.0.0.192']);

/** The IPv4 address that an IPv4-mapped or NAT64 address stands for. */
function embedded(address: ipaddr.IPv4 | ipaddr.IPv6): ipaddr.IPv4 | ipaddr.IPv6 {
  if (address.kind() === 'ipv4') return address;
  const isMapped = address.range() === 'ipv4Mapped' || address.range() === 'rfc6052';
  return isMapped ? new ipaddr.IPv4(address.toByteArray().slice(12)) : address;
}

function literalOf(host: string): string | undefined {
  const bare = host.startsWith('[') ? host.slice(1, -1) : host;
  return ipaddr.isValid(bare) ? bare : undefined;
}

function covers(pattern: string, host: string): boolean {
  return pattern.startsWith('*.')
    ? host.endsWith(pattern.slice(1)) && host.length > pattern.length - 1
    : host === pattern;
}
