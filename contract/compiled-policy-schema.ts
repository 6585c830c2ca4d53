// The shape of a compiled policy as it comes over a stream, from a cache file or from a seed. The compiler has judged
// what it means; this holds that every field the sidecar reads has the type and the range it relies on, so that no
// line of JSON can bring a data path down. Fields it does not know pass: see features.ts.
import * as z from 'zod/mini';
import type { CompiledPolicy } from './bundle.ts';
import { describeIssue } from './frame-codec.ts';

export type CheckedPolicy =
  | { readonly kind: 'policy'; readonly policy: CompiledPolicy }
  | { readonly kind: 'invalid'; readonly path: string; readonly message: string };

/** The same object when it is in order, else the path of the first field that is not. Never throws. */
export function checkPolicy(value: unknown): CheckedPolicy {
  const parsed = policy.safeParse(value);
  // The schema has just said so.
  if (parsed.success) return { kind: 'policy', policy: value as CompiledPolicy };
  return { kind: 'invalid', ...describeIssue(parsed.error) };
}

// Texts are bounded by the frame; these bounds are the integers that arithmetic relies on (see bundle.ts).
const text = z.string();
const EXACT_MAX = 9e15;
const TOKENS_MAX = 1e8;
const tokens = z.int().check(z.gte(1), z.lte(TOKENS_MAX));

const field = z.object({
  name: text,
  type: z.enum(['Exact', 'Prefix', 'Regex', 'Present']),
  value: text,
  invert: z.boolean(),
});

const match = z.object({
  methods: z.optional(z.array(text)),
  path: z.optional(z.object({ type: z.enum(['Exact', 'Prefix', 'Regex']), value: text })),
  headers: z.optional(z.array(field)),
  query: z.optional(z.array(field)),
  hosts: z.optional(z.array(text)),
  clientCIDRs: z.optional(z.array(text)),
  claims: z.optional(z.array(z.object({ path: z.array(text), value: text, invert: z.boolean() }))),
  cel: z.optional(z.object({ expression: text })),
});

const keyPart = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('clientIP') }),
  z.object({ kind: z.literal('header'), name: text }),
  z.object({ kind: z.literal('cookie'), name: text }),
  z.object({ kind: z.literal('query'), name: text }),
  z.object({ kind: z.literal('claim'), path: z.array(text) }),
  z.object({ kind: z.literal('path') }),
  z.object({ kind: z.literal('pathSegment'), index: z.int().check(z.gte(1)) }),
  z.object({ kind: z.literal('method') }),
  z.object({ kind: z.literal('host') }),
  z.object({ kind: z.literal('constant'), value: text }),
  z.object({ kind: z.literal('cel'), expression: text }),
]);

const limit = z
  .object({
    capacity: tokens,
    unitsPerToken: z.int().check(z.gte(1)),
    unitsPerTick: z.int().check(z.gte(1)),
    tickUs: z.union([z.literal(1), z.literal(1_000), z.literal(1_000_000)]),
  })
  .check(z.refine(({ capacity, unitsPerToken }) => capacity * unitsPerToken <= EXACT_MAX));

const tier = z.object({
  name: text,
  match: z.array(match),
  buckets: z.array(z.object({ name: text, limit })).check(z.minLength(1)),
});

const headerCost = z.optional(z.object({ name: text, max: tokens }));

const rule = z.object({
  name: text,
  mode: z.enum(['Enforce', 'Shadow']),
  match: z.array(match),
  except: z.array(match),
  key: z.array(keyPart),
  onMissingKey: z.enum(['Skip', 'Deny', 'ClientIP', 'Shared']),
  tiers: z.array(tier).check(z.minLength(1)),
  onNoTier: z.enum(['Skip', 'Deny']),
  cost: z.object({ tokens, header: headerCost, response: headerCost }),
});

const policy = z.object({
  namespace: text,
  name: text,
  uid: text,
  generation: z.int().check(z.gte(1), z.lte(EXACT_MAX)),
  mode: z.enum(['Enforce', 'Shadow', 'Disabled']),
  enforcePercent: z.int().check(z.gte(0), z.lte(100)),
  failureMode: z.enum(['Open', 'Closed', 'Local']),
  scope: z.enum(['Policy', 'Workload', 'Pod']),
  workload: z.optional(text),
  replicas: z.int().check(z.gte(1)),
  ports: z.optional(z.array(z.int().check(z.gte(1), z.lte(65_535)))),
  clientIP: z.object({
    trustedHops: z.int().check(z.gte(0)),
    trustedProxies: z.array(text),
    ipv6PrefixLength: z.int().check(z.gte(1), z.lte(128)),
  }),
  jwt: z.optional(
    z.object({
      issuer: z.optional(text),
      audiences: z.array(text),
      header: text,
      keys: z.array(z.record(text, z.unknown())),
    }),
  ),
  response: z.object({
    status: z.int().check(z.gte(400), z.lte(599)),
    quotaHeaders: z.enum(['RateLimit', 'XRateLimit', 'None']),
    headers: z.array(z.object({ name: fieldName(), value: fieldValue() })),
    body: z.optional(z.object({ contentType: fieldValue(), content: text })),
  }),
  except: z.array(match),
  rules: z.array(rule),
});

/** What is written into responses must not be able to end a line of their head. */
function fieldName(): z.ZodMiniString {
  return z.string().check(z.regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/));
}

function fieldValue(): z.ZodMiniString {
  return z.string().check(z.regex(/^[^\0\r\n]*$/));
}
