// A bucket: how much may burst (`capacity`) and the sustained rate (`refill`). The bounds are those within which
// every bucket compiles to exact integers (limit.ts).
import * as z from 'zod';
import {
  celIsDuration,
  celMilliseconds,
  DURATION_MAX_MS,
  durationOf,
  durationSchema,
} from './duration.ts';
import { integer, list, ruled, text } from './field.ts';
import type { TextBounds } from './field.ts';

/** Tokens of a capacity, a refill or a cost. With 366 days to fill, levels stay below 9·10^15 units. */
export const TOKENS_MAX = 100_000_000;
/** Buckets of a rule or tier: a year, a day, a second and one to spare. */
const BUCKETS_MAX = 4;
/** What a bucket without a name is called. */
const DEFAULT_BUCKET_NAME = 'main';

export interface Bucket {
  name?: string;
  capacity: number;
  refill: Refill;
}

interface Refill {
  tokens: number;
  every: string;
}

const NAME: TextBounds = {
  min: 1,
  max: 63,
  pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
  advice: 'up to 63 lower-case letters, digits and dashes, such as per-client',
};

/** The name of a rule, tier or bucket: a DNS label, because it is part of keys, metrics and fields. */
export function nameField(description: string): z.ZodType<string> {
  return text(description, NAME);
}

export function nameOfBucket(bucket: Bucket): string {
  return bucket.name ?? DEFAULT_BUCKET_NAME;
}

const refillSchema: z.ZodType<Refill> = z
  .object({
    tokens: integer('Tokens that are added in every such time.', 1, TOKENS_MAX),
    every: durationSchema,
  })
  .meta({ description: 'The sustained rate: so many tokens in every such time.' });

const bucketSchema: z.ZodType<Bucket> = ruled(
  z
    .object({
      name: nameField('Name of the bucket; main if absent.').exactOptional(),
      capacity: integer('Tokens a full bucket holds: what may be used at once.', 1, TOKENS_MAX),
      refill: refillSchema,
    })
    .meta({ description: 'Tokens that requests take, and how they come back.' }),
  [
    {
      rule: `!${celIsDuration('self.refill.every')} || self.capacity * ${celMilliseconds('self.refill.every')} <= self.refill.tokens * ${String(DURATION_MAX_MS)}`,
      message:
        'would take more than 366 days to fill: raise refill.tokens, or lower capacity or refill.every',
      advice: 'choose capacity × refill.every of at most refill.tokens × 366d',
      holds: fillsInTime,
    },
  ],
);

export const bucketsSchema: z.ZodType<Bucket[]> = ruled(
  list('Buckets that all must be able to pay.', bucketSchema, { max: BUCKETS_MAX, kind: 'atomic' }),
  [
    {
      rule: `self.all(b, self.exists_one(c, (has(c.name) ? c.name : '${DEFAULT_BUCKET_NAME}') == (has(b.name) ? b.name : '${DEFAULT_BUCKET_NAME}')))`,
      message: `bucket names must be distinct; a bucket without a name is called ${DEFAULT_BUCKET_NAME}`,
      advice: 'give each bucket its own name',
      holds: (buckets) => new Set(buckets.map(nameOfBucket)).size === buckets.length,
    },
  ],
);

// Exact: 10^8 · 3.2·10^10 is above 2^53.
function fillsInTime({ capacity, refill }: Bucket): boolean {
  const everyMs = durationOf(refill.every);
  return BigInt(capacity) * BigInt(everyMs) <= BigInt(refill.tokens) * BigInt(DURATION_MAX_MS);
}
