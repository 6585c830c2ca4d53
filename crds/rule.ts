// One rule: which requests, whose bucket, how much. Relations between its fields are CEL rules with their twins.
import * as z from 'zod';
import { bucketsSchema, nameField } from './bucket.ts';
import type { Bucket } from './bucket.ts';
import { costSchema } from './cost.ts';
import type { Cost } from './cost.ts';
import { keySchema } from './key.ts';
import type { KeyPart } from './key.ts';
import { MATCHES_MAX, matchesField, TIER_MATCHES_MAX } from './match.ts';
import type { Match } from './match.ts';
import { choice, list, ruled } from './field.ts';
import type { Rule as Relation } from './field.ts';

const RULES_MAX = 64;
const TIERS_MAX = 16;

export interface Rule {
  name: string;
  mode?: 'Shadow' | 'Disabled';
  match?: Match[];
  except?: Match[];
  key?: KeyPart[];
  onMissingKey?: 'Skip' | 'Deny' | 'ClientIP' | 'Shared';
  cost?: Cost;
  buckets?: Bucket[];
  tiers?: Tier[];
  onNoTier?: 'Skip' | 'Deny';
}

export interface Tier {
  name: string;
  match?: Match[];
  buckets: Bucket[];
}

const tierSchema: z.ZodType<Tier> = z
  .object({
    name: nameField('Name of the tier.'),
    match: matchesField(
      'Requests of this tier; entries are ORed. Only the last tier may have none.',
      TIER_MATCHES_MAX,
    ).exactOptional(),
    buckets: bucketsSchema,
  })
  .meta({ description: 'A choice of buckets.' });

const tiersSchema: z.ZodType<Tier[]> = ruled(
  list('The first tier that matches gives the buckets.', tierSchema, {
    max: TIERS_MAX,
    // As a map a second manager could reorder them silently.
    kind: 'atomic',
  }),
  [
    {
      rule: 'self.filter(t, !has(t.match)).size() <= (has(self[size(self)-1].match) ? 0 : 1)',
      message: 'only the last tier may have no match',
      advice: 'give every other tier a match, or move this one to the end',
      holds: (tiers) => tiers.slice(0, -1).every(({ match }) => match !== undefined),
    },
    {
      rule: 'self.all(t, self.exists_one(u, u.name == t.name))',
      message: 'tier names must be distinct',
      advice: 'give each tier its own name',
      holds: (tiers) => new Set(tiers.map(({ name }) => name)).size === tiers.length,
    },
  ],
);

const costRule = (cost: string): string =>
  `(has(self.buckets) ? self.buckets.all(b, b.capacity >= ${cost}) : !has(self.tiers) || self.tiers.all(t, t.buckets.all(b, b.capacity >= ${cost})))`;

const RELATIONS: readonly Relation<Rule>[] = [
  {
    rule: 'has(self.buckets) != has(self.tiers)',
    message: 'exactly one of buckets and tiers',
    advice: 'write buckets, or tiers that each have buckets',
    holds: ({ buckets, tiers }) => (buckets !== undefined) !== (tiers !== undefined),
  },
  {
    rule: '!has(self.onMissingKey) || has(self.key)',
    message: 'needs key',
    advice: 'write key, or remove onMissingKey',
    field: 'onMissingKey',
    holds: ({ onMissingKey, key }) => onMissingKey === undefined || key !== undefined,
  },
  {
    rule: `!has(self.cost) || !has(self.cost.tokens) || ${costRule('self.cost.tokens')}`,
    message: 'a fixed cost above a capacity would refuse every request',
    advice: 'lower cost.tokens to the smallest capacity, or raise that',
    field: 'cost',
    holds: (rule) => (rule.cost?.tokens ?? 0) <= smallestCapacity(rule),
  },
  {
    rule: '!has(self.onNoTier) || has(self.tiers)',
    message: 'needs tiers',
    advice: 'write tiers, or remove onNoTier',
    field: 'onNoTier',
    holds: ({ onNoTier, tiers }) => onNoTier === undefined || tiers !== undefined,
  },
  {
    rule: '!has(self.tiers) || has(self.tiers[size(self.tiers)-1].match) == has(self.onNoTier)',
    message: 'say onNoTier: Skip or Deny exactly when every tier has a match',
    advice: 'write onNoTier: Skip or Deny, or give the last tier no match',
    holds: ({ tiers, onNoTier }) =>
      tiers === undefined || (tiers.at(-1)?.match !== undefined) === (onNoTier !== undefined),
  },
  {
    rule: `!has(self.cost) || !has(self.cost.header) || ${costRule('self.cost.header.default')}`,
    message: 'a default cost above a capacity would refuse every request',
    advice: 'lower cost.header.default to the smallest capacity, or raise that',
    field: 'cost',
    holds: (rule) => (rule.cost?.header?.default ?? 0) <= smallestCapacity(rule),
  },
];

function smallestCapacity({ buckets = [], tiers = [] }: Rule): number {
  const all = [...buckets, ...tiers.flatMap((tier) => tier.buckets)];
  return Math.min(...all.map(({ capacity }) => capacity));
}

const ruleSchema: z.ZodType<Rule> = ruled(
  z
    .object({
      name: nameField('Name of the rule; part of its buckets, metrics and quota fields.'),
      mode: choice('Softens: the milder of this and the mode of the policy holds.', [
        'Shadow',
        'Disabled',
      ]).exactOptional(),
      match: matchesField(
        'Requests the rule applies to; entries are ORed. Absent means every request.',
        MATCHES_MAX,
      ).exactOptional(),
      except: matchesField(
        'Requests the rule does not apply to; entries are ORed.',
        MATCHES_MAX,
      ).exactOptional(),
      key: keySchema.exactOptional(),
      onMissingKey: choice('What happens when a part of the key is missing; ClientIP if absent.', [
        'Skip',
        'Deny',
        'ClientIP',
        'Shared',
      ]).exactOptional(),
      cost: costSchema.exactOptional(),
      buckets: bucketsSchema.exactOptional(),
      tiers: tiersSchema.exactOptional(),
      onNoTier: choice('What happens to a request that no tier matches.', [
        'Skip',
        'Deny',
      ]).exactOptional(),
    })
    .meta({ description: 'Which requests, whose bucket, how much.' }),
  RELATIONS,
);

export const rulesSchema: z.ZodType<Rule[]> = list(
  'All matching rules apply; a request must be able to pay every bucket.',
  ruleSchema,
  { max: RULES_MAX, kind: 'map' },
);
