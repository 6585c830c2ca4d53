// How the address of the client is found behind proxies.
import * as z from 'zod';
import { networksField } from './match.ts';
import { integer, ruled } from './field.ts';

const TRUSTED_HOPS_MAX = 16;
const TRUSTED_PROXIES_MAX = 64;
export const DEFAULT_IPV6_PREFIX_LENGTH = 64;

export interface ClientAddress {
  trustedHops?: number;
  trustedProxies?: string[];
  ipv6PrefixLength: number;
}

export const clientAddressSchema: z.ZodType<ClientAddress> = ruled(
  z
    .object({
      trustedHops: integer(
        'Proxies in front: n takes the n-th address from the right of X-Forwarded-For, 0 the socket. 0 if absent.',
        0,
        TRUSTED_HOPS_MAX,
      ).exactOptional(),
      trustedProxies: networksField(
        'Networks of proxies: the right-most address that is not in one of them is the client.',
        TRUSTED_PROXIES_MAX,
      ).exactOptional(),
      ipv6PrefixLength: z.int().min(32).max(128).default(DEFAULT_IPV6_PREFIX_LENGTH).meta({
        description: 'Bits of an IPv6 address that count as one client.',
        format: 'int32',
      }),
    })
    .meta({ description: 'How the address of the client is found.' }),
  [
    {
      rule: '!(has(self.trustedHops) && has(self.trustedProxies))',
      message: 'at most one of trustedHops and trustedProxies',
      advice: 'remove trustedHops, or remove trustedProxies',
      holds: ({ trustedHops, trustedProxies }) =>
        trustedHops === undefined || trustedProxies === undefined,
    },
  ],
);
