// How a JSON Web Token is verified. A token that is not verified has no claims.
import * as z from 'zod';
import { list, ruled, text } from './field.ts';

const AUDIENCES_MAX = 16;
/** A dozen RSA-4096 keys; a key set that is larger is not one issuer's. */
const INLINE_JWKS_MAX = 16_384;
const DEFAULT_TOKEN_HEADER = 'Authorization';

export interface TokenVerification {
  issuer: string;
  audiences?: string[];
  jwks: { uri?: string; inline?: string };
  header: string;
}

/** https, a DNS name or an address, a path of RFC 3986 characters: no user, no fragment, nothing to be repaired. */
const URI =
  /^https:\/\/([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?([/?]([-A-Za-z0-9._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})*)?$/;
const URI_ADVICE = 'an address such as https://id.example.com/jwks.json';

const uriSchema: z.ZodType<string> = ruled(
  text('An https address the operator fetches the key set from.', {
    max: 1024,
    pattern: URI,
    advice: URI_ADVICE,
  }),
  [
    {
      rule: `isURL(self) && url(self).getScheme() == 'https' && url(self).getHost() != ''`,
      message: 'must be an https URL',
      advice: `use ${URI_ADVICE}`,
      holds: (value) => URI.test(value),
    },
  ],
);

const keySetSchema: z.ZodType<TokenVerification['jwks']> = z
  .object({
    uri: uriSchema.exactOptional(),
    inline: text('The key set itself, as JSON: public keys only.', {
      min: 2,
      max: INLINE_JWKS_MAX,
      advice: 'a JSON Web Key Set, {"keys": […]}',
    }).exactOptional(),
  })
  .check(
    z.refine((value) => Object.keys(value).length === 1, {
      error: 'needs exactly one of uri and inline',
      params: { advice: 'write uri, or inline' },
    }),
  )
  .meta({ description: 'Keys the token is verified with.', minProperties: 1, maxProperties: 1 });

export const tokenSchema: z.ZodType<TokenVerification> = z
  .object({
    issuer: text('The iss claim a token must have.', {
      min: 1,
      max: 253,
      advice: 'the value of the iss claim, such as https://id.example.com/',
    }),
    audiences: list(
      'The token must be for one of these (aud); absent means any.',
      text('An audience.', { min: 1, max: 253, advice: 'the value of an aud claim' }),
      { max: AUDIENCES_MAX, kind: 'set' },
    ).exactOptional(),
    jwks: keySetSchema,
    header: text('Header that carries the token (Bearer scheme).', {
      min: 1,
      max: 64,
      pattern: /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/,
      advice: 'a name such as Authorization',
    }).default(DEFAULT_TOKEN_HEADER),
  })
  .meta({ description: 'How a token is verified; an unverified token has no claims.' });
