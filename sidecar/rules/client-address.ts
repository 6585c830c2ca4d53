// Hot path.
// Who the client is. The socket's peer, unless the policy trusts proxies in front: then an element of
// `X-Forwarded-For`, counted from the right, because everything further left is the client's own claim.
import type { CompiledClientIP } from '../../contract/bundle.ts';
import { Address, Networks, readAddress, withoutPort } from './address.ts';

/**
 * How many elements are looked at from the right. 16 trusted hops are the most a policy may name; four times that
 * leaves room for chains of trusted proxies and keeps a 64 KiB field from costing thousands of parses.
 */
export const MAX_FORWARDED_ELEMENTS = 64;

export class ClientAddressPlan {
  /** 32..128 */
  readonly ipv6PrefixLength: number;
  /** No proxy is trusted: the client is the socket's peer. */
  readonly isPeer: boolean;
  readonly #hops: number;
  readonly #proxies: Networks | undefined;
  readonly #candidate = new Address();

  constructor(config: CompiledClientIP) {
    this.ipv6PrefixLength = config.ipv6PrefixLength;
    this.#hops = config.trustedHops;
    this.#proxies =
      config.trustedProxies.length > 0 ? new Networks(config.trustedProxies) : undefined;
    this.isPeer = this.#hops === 0 && this.#proxies === undefined;
  }

  /**
   * Reads the client's address into `into`.
   * @param forwardedFor all `X-Forwarded-For` lines joined in order, undefined when there are none
   */
  read(peerAddress: string, forwardedFor: string | undefined, into: Address): void {
    readAddress(peerAddress, into);
    if (forwardedFor === undefined || this.isPeer) return;
    if (this.#proxies === undefined) this.#readHop(forwardedFor, into);
    else this.#walk(forwardedFor, this.#proxies, into);
  }

  /**
   * With fewer elements than hops, or one that cannot be read, the request did not come the promised way and only
   * the socket is believed: that gives an attacker one shared bucket, never a fresh one.
   */
  #readHop(forwardedFor: string, into: Address): void {
    let hop = 0;
    let end = forwardedFor.length;
    while (end > 0) {
      const start = forwardedFor.lastIndexOf(',', end - 1) + 1;
      const element = forwardedFor.slice(start, end).trim();
      end = start - 1;
      // Empty list elements do not count (RFC 9110 §5.6.1.2).
      if (element !== '') hop += 1;
      if (hop < this.#hops) continue;
      if (readAddress(withoutPort(element), this.#candidate)) into.copy(this.#candidate);
      return;
    }
  }

  /** Goes left as long as the address found is a trusted proxy; what a proxy wrote unreadably leaves the proxy itself. */
  #walk(forwardedFor: string, proxies: Networks, into: Address): void {
    let end = forwardedFor.length;
    for (let n = 0; n < MAX_FORWARDED_ELEMENTS && end > 0 && proxies.has(into); n += 1) {
      const start = forwardedFor.lastIndexOf(',', end - 1) + 1;
      const element = forwardedFor.slice(start, end).trim();
      end = start - 1;
      if (element === '') continue;
      if (!readAddress(withoutPort(element), this.#candidate)) return;
      into.copy(this.#candidate);
    }
  }
}

/** The client of the request at hand, shared by the rules of all policies with the same settings. */
export class ClientFact {
  readonly plan: ClientAddressPlan;
  readonly address: Address = new Address();
  /** The client's name in keys; empty when the address cannot be read. */
  name = '';
  /** The request that address and name belong to. */
  epoch = 0;

  constructor(plan: ClientAddressPlan) {
    this.plan = plan;
  }
}
