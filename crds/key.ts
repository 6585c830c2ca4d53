// What separates one client from another: an ordered list of parts, each of exactly one kind. Kinds are fields of
// one flat object, because a structural schema cannot hold a union.
import * as z from 'zod';
import { claimPathField, expressionField, FIELD_NAME_MAX, tokenField } from './match.ts';
import type { Expression } from './match.ts';
import { integer, list, ruled, text } from './field.ts';

const KEY_PARTS_MAX = 8;
const PATH_SEGMENT_MAX = 32;

export interface KeyPart {
  clientIP?: Empty;
  header?: { name: string };
  cookie?: { name: string };
  query?: { name: string };
  claim?: { path: string[] };
  path?: Empty;
  pathSegment?: { index: number };
  method?: Empty;
  host?: Empty;
  constant?: { value: string };
  cel?: Expression;
}

type Empty = Record<string, never>;
export type KeyKind = keyof KeyPart;

/** Every kind of key part. */
export const KEY_KINDS: readonly KeyKind[] = [
  'clientIP',
  'header',
  'cookie',
  'query',
  'claim',
  'path',
  'pathSegment',
  'method',
  'host',
  'constant',
  'cel',
];

const KINDS_RULE = `[${KEY_KINDS.map((kind) => `has(self.${kind})`).join(', ')}].exists_one(x, x)`;

function marker(description: string): z.ZodExactOptional<z.ZodType<Empty>> {
  return z.exactOptional(z.object({}).meta({ description }));
}

const keyPartSchema: z.ZodType<KeyPart> = ruled(
  z
    .object({
      clientIP: marker('The address of the client, see spec.clientIP.'),
      header: z
        .object({ name: tokenField('Name of the header.', 'X-Api-Key') })
        .meta({ description: 'The value of a header; one sent twice counts as missing.' })
        .exactOptional(),
      cookie: z
        .object({ name: tokenField('Name of the cookie.', 'session') })
        .meta({ description: 'The first cookie of that name.' })
        .exactOptional(),
      query: z
        .object({
          name: text('Name of the parameter.', {
            min: 1,
            max: FIELD_NAME_MAX,
            advice: 'the name of a query parameter',
          }),
        })
        .meta({ description: 'The first query parameter of that name.' })
        .exactOptional(),
      claim: z
        .object({ path: claimPathField('Path to the claim, outermost name first.') })
        .meta({ description: 'A claim of the verified token; needs spec.jwt.' })
        .exactOptional(),
      path: marker('The normalised path.'),
      pathSegment: z
        .object({ index: integer('Which segment; 1 is the first.', 1, PATH_SEGMENT_MAX) })
        .meta({ description: 'One segment of the normalised path.' })
        .exactOptional(),
      method: marker('The method.'),
      host: marker('The host in lower case without port.'),
      constant: z
        .object({
          value: text('The value.', { min: 1, max: 256, advice: 'at most 256 characters' }),
        })
        .meta({ description: 'The same for every request.' })
        .exactOptional(),
      cel: expressionField('A CEL expression that gives a string.').exactOptional(),
    })
    .meta({ description: 'One part of the key, of exactly one kind.' }),
  [
    {
      rule: KINDS_RULE,
      message: 'exactly one kind of key per entry, written as an object: clientIP: {}',
      advice: 'write one of clientIP, header, cookie, query, … per entry of the list',
      holds: (part) => Object.keys(part).length === 1,
    },
  ],
);

export const keySchema: z.ZodType<KeyPart[]> = list(
  'What separates one client from another, in order; absent means one bucket for the rule.',
  keyPartSchema,
  { max: KEY_PARTS_MAX, kind: 'atomic' },
);

/** The one kind of a valid part. */
export function kindOfPart(part: KeyPart): KeyKind | undefined {
  return KEY_KINDS.find((kind) => part[kind] !== undefined);
}
