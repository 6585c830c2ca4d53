// Hot path.
// Internet addresses as numbers. An IPv4-mapped IPv6 address is the IPv4 address it holds: the same client must not
// have two names depending on whether the socket is dual-stack.
import ipaddr from 'ipaddr.js';

const MAPPED_MARK = 0xffff;
const MAX_DOTTED_LENGTH = 15;
const BRACKETED = /^\[([^\]]*)\](?::[0-9]{1,5})?$/;
const WITH_PORT = /^([^:]*):[0-9]{1,5}$/;

/** One address, reused: `family` 0 means that nothing (readable) is in it. IPv4 lives in the last word. */
export class Address {
  family: 0 | 4 | 6 = 0;
  /** 32 bits each, the first ones first. */
  w0 = 0;
  w1 = 0;
  w2 = 0;
  w3 = 0;

  copy(other: Address): void {
    this.family = other.family;
    this.w0 = other.w0;
    this.w1 = other.w1;
    this.w2 = other.w2;
    this.w3 = other.w3;
  }
}

/** Reads `text` (no port, no brackets; a zone is ignored) into `into`. False, with family 0, when it is none. */
export function readAddress(text: string, into: Address): boolean {
  const dotted = dottedQuad(text);
  if (dotted >= 0) setIPv4(into, dotted);
  else readIPv6(text, into);
  return into.family !== 0;
}

/** The address of a forwarding element: `192.0.2.1:80`, `[2001:db8::1]` and `[2001:db8::1]:80` lose port and brackets. */
export function withoutPort(element: string): string {
  return BRACKETED.test(element)
    ? element.replace(BRACKETED, '$1')
    : element.replace(WITH_PORT, '$1');
}

/**
 * The name of a client in keys: the whole IPv4 address, or the network of `ipv6PrefixLength` bits, written in full
 * (`2001:db8:0:0:0:0:0:0/64`). Empty for an unreadable address.
 */
export function clientName(address: Address, ipv6PrefixLength: number): string {
  if (address.family === 0) return '';
  if (address.family === 4) return dottedText(address.w3);
  const length = ipv6PrefixLength;
  const front = groupText(address.w0, length) + ':' + groupText(address.w1, length - 32);
  const back = groupText(address.w2, length - 64) + ':' + groupText(address.w3, length - 96);
  return `${front}:${back}/${String(length)}`;
}

/** The address as people write it (RFC 5952); empty for an unreadable one. */
export function addressText(address: Address): string {
  if (address.family === 0) return '';
  if (address.family === 4) return dottedText(address.w3);
  const words = [address.w0, address.w1, address.w2, address.w3];
  const groups = words.flatMap((word) => [word >>> 16, word & 0xffff]);
  return new ipaddr.IPv6(groups).toRFC5952String();
}

interface Network {
  /** The network's bits; the others are zero. */
  readonly bits: Address;
  readonly mask: readonly [number, number, number, number];
}

/** A set of networks, compiled to masks. */
export class Networks {
  readonly #networks: readonly Network[];

  /** @param cidrs valid CIDRs without host bits and not IPv4-mapped, e.g. `192.0.2.0/24` */
  constructor(cidrs: readonly string[]) {
    this.#networks = cidrs.map(networkOf);
  }

  has(address: Address): boolean {
    for (const network of this.#networks) {
      if (holds(network, address)) return true;
    }
    return false;
  }
}

function holds({ bits, mask }: Network, address: Address): boolean {
  return (
    bits.family === address.family &&
    (address.w0 & mask[0]) >>> 0 === bits.w0 &&
    (address.w1 & mask[1]) >>> 0 === bits.w1 &&
    (address.w2 & mask[2]) >>> 0 === bits.w2 &&
    (address.w3 & mask[3]) >>> 0 === bits.w3
  );
}

function networkOf(cidr: string): Network {
  const slash = cidr.indexOf('/');
  const length = Number(cidr.slice(slash + 1));
  const bits = new Address();
  readAddress(cidr.slice(0, slash), bits);
  // An IPv4 network is kept in the last word; the first three are zero in every IPv4 address.
  const prefix = bits.family === 4 ? 96 + length : length;
  const mask: Network['mask'] = [
    maskWord(prefix),
    maskWord(prefix - 32),
    maskWord(prefix - 64),
    maskWord(prefix - 96),
  ];
  return { bits, mask };
}

function setIPv4(into: Address, word: number): void {
  into.family = 4;
  into.w0 = 0;
  into.w1 = 0;
  into.w2 = 0;
  into.w3 = word;
}

/** A 32-bit word with its first `length` bits set; all for 32 and more, none for 0 and less. */
function maskWord(length: number): number {
  const bits = Math.min(32, Math.max(0, length));
  return bits === 0 ? 0 : (0xffffffff << (32 - bits)) >>> 0;
}

/** The two groups of a word, its bits past `length` cleared. */
function groupText(word: number, length: number): string {
  const masked = (word & maskWord(length)) >>> 0;
  return `${(masked >>> 16).toString(16)}:${(masked & 0xffff).toString(16)}`;
}

/** The 32 bits of a dotted quad, -1 when `text` is none. Leading zeros are refused: some read them as octal. */
function dottedQuad(text: string): number {
  if (text.length > MAX_DOTTED_LENGTH) return -1;
  let word = 0;
  let octet = -1;
  let dots = 0;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === 0x2e) {
      if (octet < 0) return -1;
      word = word * 256 + octet;
      octet = -1;
      dots += 1;
    } else {
      octet = nextOctet(octet, code);
      if (octet < 0) return -1;
    }
  }
  return dots === 3 && octet >= 0 ? word * 256 + octet : -1;
}

/** `octet` with one more digit; -1 when that is no octet. */
function nextOctet(octet: number, code: number): number {
  if (code < 0x30 || code > 0x39 || octet === 0) return -1;
  const value = (octet < 0 ? 0 : octet * 10) + code - 0x30;
  return value > 255 ? -1 : value;
}

function dottedText(word: number): string {
  return `${String(word >>> 24)}.${String((word >>> 16) & 255)}.${String((word >>> 8) & 255)}.${String(word & 255)}`;
}

function readIPv6(text: string, into: Address): void {
  into.family = 0;
  if (!text.includes(':')) return;
  const zone = text.indexOf('%');
  const [head = '', tail, ...more] = (zone < 0 ? text : text.slice(0, zone)).split('::');
  const left = groupsOf(head, tail === undefined);
  const right = tail === undefined ? [] : groupsOf(tail, true);
  if (more.length > 0 || left === undefined || right === undefined) return;
  const gap = 8 - left.length - right.length;
  // `::` stands for at least one group.
  if (tail === undefined ? gap !== 0 : gap < 1) return;
  setIPv6(into, [...left, ...new Array<number>(gap).fill(0), ...right]);
}

function setIPv6(into: Address, groups: readonly number[]): void {
  const bytes = new DataView(new ArrayBuffer(16));
  groups.forEach((group, i) => {
    bytes.setUint16(i * 2, group);
  });
  into.family = 6;
  into.w0 = bytes.getUint32(0);
  into.w1 = bytes.getUint32(4);
  into.w2 = bytes.getUint32(8);
  into.w3 = bytes.getUint32(12);
  if (into.w0 === 0 && into.w1 === 0 && into.w2 === MAPPED_MARK) setIPv4(into, into.w3);
}

/** The 16-bit groups of one side of `::`; a dotted quad may end the address, hence only the `isLast` side. */
function groupsOf(side: string, isLast: boolean): number[] | undefined {
  if (side === '') return [];
  const groups: number[] = [];
  const pieces = side.split(':');
  for (const [i, piece] of pieces.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(piece)) {
      groups.push(Number.parseInt(piece, 16));
      continue;
    }
    const quad = isLast && i === pieces.length - 1 ? dottedQuad(piece) : -1;
    if (quad < 0) return undefined;
    groups.push(quad >>> 16, quad & 0xffff);
  }
  return groups;
}
