// How many tokens a request takes: fixed, from a request header, and afterwards from a response header.
import * as z from 'zod';
import { TOKENS_MAX } from './bucket.ts';
import { tokenField } from './match.ts';
import { integer, ruled } from './field.ts';

export interface Cost {
  tokens?: number;
  header?: HeaderCost;
  response?: { header: ResponseCost };
}

interface HeaderCost {
  name: string;
  default: number;
  max: number;
}

interface ResponseCost {
  name: string;
  max: number;
}

const headerSchema: z.ZodType<HeaderCost> = ruled(
  z
    .object({
      name: tokenField('Name of the request header.', 'X-Cost'),
      default: integer('Tokens when the header is below 1 or unreadable.', 1, TOKENS_MAX),
      max: integer('Tokens when the header says more.', 1, TOKENS_MAX),
    })
    .meta({ description: 'The cost is the number in this request header.' }),
  [
    {
      rule: 'self.default <= self.max',
      message: 'must not exceed max',
      advice: 'lower default or raise max',
      field: 'default',
      holds: (header) => header.default <= header.max,
    },
  ],
);

const responseSchema: z.ZodType<{ header: ResponseCost }> = z
  .object({
    header: z
      .object({
        name: tokenField('Name of the response header.', 'X-Cost'),
        max: integer('Tokens when the header says more.', 1, TOKENS_MAX),
      })
      .meta({ description: 'The further cost is the number in this response header.' }),
  })
  .meta({
    description:
      'Charged when the head of the response is there; may take the level to zero, never below.',
  });

export const costSchema: z.ZodType<Cost> = ruled(
  z
    .object({
      tokens: integer('Tokens every request takes.', 1, TOKENS_MAX).exactOptional(),
      header: headerSchema.exactOptional(),
      response: responseSchema.exactOptional(),
    })
    .check(
      z.refine((value) => Object.keys(value).length > 0, {
        error: 'says nothing',
        params: { advice: 'write tokens, header or response, or leave cost out: it is 1' },
      }),
    )
    .meta({ description: 'Tokens a request takes; 1 if absent.', minProperties: 1 }),
  [
    {
      rule: '!(has(self.tokens) && has(self.header))',
      message: 'at most one of tokens and header',
      advice: 'remove tokens, or remove header',
      holds: ({ tokens, header }) => tokens === undefined || header === undefined,
    },
  ],
);
