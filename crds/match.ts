// What a request must look like. A list of matches is ORed, the fields inside one are ANDed; an entry without a
// field would match everything, and is refused: a misspelt field that the server pruned would leave just that.
import * as z from 'zod';
import { isNetwork } from './network.ts';
import { choice, list, ruled, text } from './field.ts';
import { compileExpression } from './regular-expression.ts';

export const MATCHES_MAX = 16;
/** Of a tier: 64 rules fit the API server's CEL budget only so (measured). */
export const TIER_MATCHES_MAX = 4;
const EXPRESSION_MAX = 1024;
const METHODS_MAX = 16;
const FIELD_MATCHES_MAX = 8;
const HOSTS_MAX = 16;
const CIDRS_MAX = 32;
const CLAIMS_MAX = 16;
const CLAIM_DEPTH_MAX = 8;
const PATH_MAX = 1024;
/** A longer header value exceeds the CEL budget together with 64 rules (measured). */
const FIELD_VALUE_MAX = 256;
export const FIELD_NAME_MAX = 256;

export interface Match {
  methods?: string[];
  path?: PathMatch;
  headers?: FieldMatch[];
  query?: FieldMatch[];
  hosts?: string[];
  clientCIDRs?: string[];
  claims?: ClaimMatch[];
  cel?: Expression;
}

export interface PathMatch {
  type: 'Exact' | 'Prefix' | 'Regex';
  value: string;
}

export interface FieldMatch {
  name: string;
  type?: 'Exact' | 'Prefix' | 'Regex' | 'Present';
  value?: string;
  invert?: boolean;
}

export interface ClaimMatch {
  path: string[];
  value: string;
  invert?: boolean;
}

export interface Expression {
  expression: string;
}

/** RFC 9110 §5.6.2. */
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
const HOST = /^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** The name of a field or cookie: an RFC 9110 token. */
export function tokenField(description: string, example: string): z.ZodType<string> {
  return text(description, {
    min: 1,
    max: FIELD_NAME_MAX,
    pattern: TOKEN,
    advice: `a name such as ${example}`,
  });
}

/** The path to a claim as a list of names, because names of claims contain dots. */
export function claimPathField(description: string): z.ZodType<string[]> {
  const name = text('Name of a claim.', { min: 1, max: 253, advice: 'the name of a claim' });
  return list(description, name, { max: CLAIM_DEPTH_MAX, kind: 'atomic' });
}

/** A CEL expression; its text is checked by the compiler, not by the schema. */
export function expressionField(description: string): z.ZodType<Expression> {
  const expression = text('The expression, in CEL.', {
    min: 1,
    max: EXPRESSION_MAX,
    advice: 'a CEL expression of at most 1024 characters',
  });
  return z.object({ expression }).meta({ description });
}

/** A list of networks in CIDR form. */
export function networksField(description: string, max: number): z.ZodType<string[]> {
  const advice = 'a network such as 10.0.0.0/8 or fd00::/8';
  const form = 'must be a network such as 10.0.0.0/8 or fd00::/8, without host bits';
  const network = ruled(text('A network in CIDR form.', { max: 43, form, advice }), [
    {
      rule: 'isCIDR(self) && cidr(self).masked() == cidr(self)',
      message: form,
      advice: `use ${advice}`,
      holds: isNetwork,
    },
  ]);
  const formatted = network.meta({ ...network.meta(), format: 'cidr' });
  return list(description, formatted, { max, kind: 'atomic' });
}

const pathSchema: z.ZodType<PathMatch> = ruled(
  z
    .object({
      type: choice('How value is compared; Prefix matches whole segments, Regex is RE2.', [
        'Exact',
        'Prefix',
        'Regex',
      ]),
      value: text('What the normalised path is compared with.', {
        min: 1,
        max: PATH_MAX,
        advice: 'a path such as /v1/',
      }),
    })
    .meta({ description: 'The path, decoded once, without dot segments and duplicate slashes.' }),
  [
    {
      rule: `self.type == 'Regex' || self.value.startsWith('/')`,
      message: 'must start with /',
      advice: 'begin the value with /',
      field: 'value',
      holds: ({ type, value }) => type === 'Regex' || value.startsWith('/'),
    },
    {
      // The API server compiles the pattern and reports RE2's own words.
      rule: `self.type != 'Regex' || (''.matches(self.value) ? true : true)`,
      message: 'not a valid RE2 expression',
      advice: 'use RE2 syntax: no look-around, no back-references, repeats up to 1000',
      field: 'value',
      holds: ({ type, value }) => type !== 'Regex' || expressionFault(value) === '',
      cause: ({ value }) => expressionFault(value),
    },
  ],
);

function fieldMatches(of: string): z.ZodType<FieldMatch[]> {
  const item = ruled(
    z
      .object({
        name: tokenField(`Name of the ${of}.`, 'X-Plan'),
        type: choice('How value is compared; Exact if absent.', [
          'Exact',
          'Prefix',
          'Regex',
          'Present',
        ]).exactOptional(),
        value: text('What the value is compared with, case-sensitive.', {
          max: FIELD_VALUE_MAX,
          advice: 'at most 256 characters',
        }).exactOptional(),
        invert: z
          .boolean()
          .meta({ description: 'True when it does not match, also when it is absent.' })
          .exactOptional(),
      })
      .meta({ description: `A condition on one ${of}.` }),
    [
      {
        rule: `(has(self.type) && self.type == 'Present') != has(self.value)`,
        message: 'every type but Present needs a value, Present takes none',
        advice: 'write a value, or type: Present without one',
        field: 'value',
        holds: ({ type, value }) => (type === 'Present') !== (value !== undefined),
      },
      {
        rule: `!has(self.type) || self.type != 'Regex' || !has(self.value) || (''.matches(self.value) ? true : true)`,
        message: 'not a valid RE2 expression',
        advice: 'use RE2 syntax: no look-around, no back-references, repeats up to 1000',
        field: 'value',
        holds: ({ type, value = '' }) => type !== 'Regex' || expressionFault(value) === '',
        cause: ({ value = '' }) => expressionFault(value),
      },
    ],
  );
  return list(`Conditions on ${of}s, ANDed.`, item, { max: FIELD_MATCHES_MAX, kind: 'atomic' });
}

function expressionFault(source: string): string {
  const outcome = compileExpression(source);
  return outcome.kind === 'compiled' ? '' : outcome.cause;
}

const claimSchema: z.ZodType<ClaimMatch> = z
  .object({
    path: claimPathField('Path to the claim, outermost name first.'),
    value: text('What the claim is compared with, case-sensitive.', {
      max: 1024,
      advice: 'at most 1024 characters',
    }),
    invert: z
      .boolean()
      .meta({ description: 'True when it does not match, also when it is absent.' })
      .exactOptional(),
  })
  .meta({ description: 'A condition on one claim of the verified token.' });

const HOST_ADVICE = 'a lower-case host without port, such as api.example.com or *.example.com';

const matchSchema: z.ZodType<Match> = z
  .object({
    methods: list(
      'Methods, any of them.',
      text('A method, case-sensitive.', {
        min: 1,
        max: 32,
        pattern: TOKEN,
        advice: 'a method such as GET',
      }),
      { max: METHODS_MAX, kind: 'set' },
    ).exactOptional(),
    path: pathSchema.exactOptional(),
    headers: fieldMatches('header').exactOptional(),
    query: fieldMatches('query parameter').exactOptional(),
    hosts: list(
      'Hosts, any of them.',
      text('A host in lower case without port; *.example.com is allowed.', {
        min: 1,
        max: 253,
        pattern: HOST,
        advice: HOST_ADVICE,
      }),
      { max: HOSTS_MAX, kind: 'set' },
    ).exactOptional(),
    clientCIDRs: networksField('Networks of the client, any of them.', CIDRS_MAX).exactOptional(),
    claims: list('Conditions on claims, ANDed.', claimSchema, {
      max: CLAIMS_MAX,
      kind: 'atomic',
    }).exactOptional(),
    cel: expressionField('A condition in CEL that gives a bool.').exactOptional(),
  })
  .check(
    z.refine((value) => Object.keys(value).length > 0, {
      error: 'has no field, and would match every request',
      params: {
        advice:
          'write at least one of methods, path, headers, query, hosts, clientCIDRs, claims, cel',
      },
    }),
  )
  .meta({ description: 'Conditions that must all hold.', minProperties: 1 });

/** A list of matches; `description` says what the list is for. */
export function matchesField(description: string, max: number): z.ZodType<Match[]> {
  return list(description, matchSchema, { max, kind: 'atomic' });
}
