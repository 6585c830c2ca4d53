// Which buckets an edit starts afresh. A bucket keeps its level as long as its policy, rule, tier and name, the key of
// its rule and the scope stay; any other edit, of capacity, rate, match or mode, takes nothing from anybody.
import { nameOfBucket } from './bucket.ts';
import { stableJson } from './content-hash.ts';
import { ONLY_TIER } from './compile-rule.ts';
import type { RateLimitPolicy } from './policy.ts';
import type { Rule } from './rule.ts';

export interface FreshStart {
  /** `shop/public-api/per-client/free/burst`; the tier is `-` where the rule has none. */
  readonly bucket: string;
  readonly cause: 'new-policy' | 'scope' | 'key' | 'new-bucket';
}

/** Buckets of `after` that do not go on with the level of one of `before`, in the order they are written. */
export function freshStarts(
  before: RateLimitPolicy | undefined,
  after: RateLimitPolicy,
): FreshStart[] {
  return after.spec.rules.flatMap((rule) => {
    const old = before?.spec.rules.find(({ name }) => name === rule.name);
    const known = new Set(old === undefined ? [] : bucketNames(old));
    return bucketNames(rule).flatMap((name) => {
      const cause = causeOf({ before, after, old, rule, isKnown: known.has(name) });
      const bucket = `${policyName(after)}/${rule.name}/${name}`;
      return cause === undefined ? [] : [{ bucket, cause }];
    });
  });
}

/** `<namespace>/<name>`, by which the old and the new version of a policy are found. */
export function policyName({ metadata }: RateLimitPolicy): string {
  return `${metadata.namespace ?? 'default'}/${metadata.name}`;
}

interface Comparison {
  readonly before: RateLimitPolicy | undefined;
  readonly after: RateLimitPolicy;
  readonly old: Rule | undefined;
  readonly rule: Rule;
  readonly isKnown: boolean;
}

function causeOf(comparison: Comparison): FreshStart['cause'] | undefined {
  const { before, after, old, rule, isKnown } = comparison;
  if (before === undefined) return 'new-policy';
  if (!isKnown) return 'new-bucket';
  if (before.spec.scope !== after.spec.scope) return 'scope';
  return keyOf(old) === keyOf(rule) ? undefined : 'key';
}

// Names of headers are compared in lower case, as keys are.
function keyOf(rule: Rule | undefined): string {
  const parts = (rule?.key ?? []).map(({ header, ...part }) =>
    header === undefined ? part : { header: header.name.toLowerCase() },
  );
  return stableJson(parts);
}

function bucketNames({ buckets, tiers = [] }: Rule): string[] {
  if (buckets !== undefined) return buckets.map((bucket) => `${ONLY_TIER}/${nameOfBucket(bucket)}`);
  return tiers.flatMap((tier) =>
    tier.buckets.map((bucket) => `${tier.name}/${nameOfBucket(bucket)}`),
  );
}
