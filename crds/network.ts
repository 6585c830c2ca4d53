// Networks in CIDR form, judged as the API server's CEL library does: no host bits, no leading zeros, no
// IPv4-mapped addresses, no zones.
import ipaddr from 'ipaddr.js';

const FORM = /^[0-9A-Fa-f.:]{2,39}\/(0|[1-9][0-9]{0,2})$/;
const LEADING_ZERO = /(^|\.)0[0-9]/;

/** Whether `value` is a network such as 10.0.0.0/8 or fd00::/8, without host bits. */
export function isNetwork(value: string): boolean {
  if (!FORM.test(value)) return false;
  const [address = '', length = ''] = value.split('/');
  if (LEADING_ZERO.test(address)) return false;
  return address.includes(':')
    ? isNetworkV6(address, Number(length))
    : isNetworkV4(address, Number(length));
}

function isNetworkV4(address: string, length: number): boolean {
  if (!ipaddr.IPv4.isValidFourPartDecimal(address) || length > 32) return false;
  return hasNoHostBits(ipaddr.IPv4.parse(address).toByteArray(), length);
}

function isNetworkV6(address: string, length: number): boolean {
  if (!ipaddr.IPv6.isValid(address) || length > 128) return false;
  const parsed = ipaddr.IPv6.parse(address);
  if (parsed.isIPv4MappedAddress()) return false;
  return hasNoHostBits(parsed.toByteArray(), length);
}

function hasNoHostBits(bytes: readonly number[], length: number): boolean {
  return bytes.every((byte, index) => {
    const kept = Math.min(Math.max(length - index * 8, 0), 8);
    return (byte & (0xff >> kept)) === 0;
  });
}
