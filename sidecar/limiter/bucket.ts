// Hot path. What a request is charged to. A bundle is turned into tiers with buckets once; a client's key turns
// a tier into named buckets, interned so that a hot client costs one map lookup and no hash.
import type { CompiledPolicy, CompiledRule, CompiledTier, Limit } from '../../contract/bundle.ts';
import { bucketPath, hashCode } from './bucket-key.ts';
import { localShare } from './local-share.ts';
import { StoredLimit, parseStoredLimit } from './stored-limit.ts';
import type { BucketState } from './token-bucket.ts';

/** One bucket of a tier, or the same under the newer limit that the store enforces for a key. */
export class Bucket {
  readonly policy: CompiledPolicy;
  readonly rule: CompiledRule;
  readonly tier: CompiledTier;
  readonly name: string;
  readonly limit: Limit;
  /** Seconds in which an empty bucket fills, rounded up: `w` of RateLimit-Policy. */
  readonly windowSeconds: number;
  readonly stored: StoredLimit;

  constructor(place: BucketPlace, name: string, stored: StoredLimit) {
    this.policy = place.policy;
    this.rule = place.rule;
    this.tier = place.tier;
    this.name = name;
    this.stored = stored;
    this.limit = toLimit(stored);
    const ticks = Math.ceil(stored.full / stored.unitsPerTick);
    this.windowSeconds = Math.ceil((ticks * stored.tickUs) / 1_000_000);
  }
}

export interface BucketPlace {
  readonly policy: CompiledPolicy;
  readonly rule: CompiledRule;
  readonly tier: CompiledTier;
}

/** The buckets of one tier of one bundle, and the keys seen under it. Belongs to one limiter. */
export class TierBuckets {
  readonly policy: CompiledPolicy;
  readonly rule: CompiledRule;
  readonly tier: CompiledTier;
  readonly buckets: readonly TierBucket[];
  /** Interned keys of this period and of the one before; the limiter turns the page (see `KeyInterner`). */
  young: Map<string, KeyedBuckets> = new Map<string, KeyedBuckets>();
  old: Map<string, KeyedBuckets> = new Map<string, KeyedBuckets>();
  /** The interner's period `young` belongs to. */
  period = -1;

  constructor(place: BucketPlace, buckets: readonly TierBucket[]) {
    this.policy = place.policy;
    this.rule = place.rule;
    this.tier = place.tier;
    this.buckets = buckets;
  }
}

/** One bucket of a tier as the policy writes it. */
export class TierBucket {
  readonly bucket: Bucket;
  /** Behind the hash tag, up to the hash. */
  readonly path: string;
  /** The share of this pod when the store is away; undefined unless the policy's failure mode is Local. */
  readonly local: StoredLimit | undefined;
  #newer: Bucket | undefined = undefined;
  readonly #place: BucketPlace;

  constructor(place: BucketPlace, name: string, limit: Limit) {
    const stored = new StoredLimit(place.policy.generation, limit);
    this.#place = place;
    this.bucket = new Bucket(place, name, stored);
    this.path = bucketPath(place.rule.name, place.tier.name, name);
    this.local = needsLocal(place.policy) ? localShare(stored, place.policy.replicas) : undefined;
  }

  /** This bucket under the limit with that text. The last one is kept: a fleet has one newest generation. */
  under(text: string): Bucket {
    if (text === this.bucket.stored.text) return this.bucket;
    if (this.#newer?.stored.text !== text) {
      this.#newer = new Bucket(this.#place, this.bucket.name, parseStoredLimit(text));
    }
    return this.#newer;
  }
}

/** The buckets one request is charged to in one tier: a tier and a client's key. */
export class KeyedBuckets {
  readonly tier: TierBuckets;
  readonly tag: string;
  readonly buckets: readonly KeyedBucket[];
  /** Distinct per object, for grouping. */
  readonly id: number;
  /** The limiter's route to the store, found once. */
  lane: object | undefined = undefined;

  constructor(tier: TierBuckets, tag: string, buckets: readonly KeyedBucket[], id: number) {
    this.tier = tier;
    this.tag = tag;
    this.buckets = buckets;
    this.id = id;
  }
}

/**
 * One bucket of one client, with what the store last said about it: the basis of refusing here. Others only
 * take, so the level then plus everything refilled since bounds the level now from above, for every cost.
 */
export class KeyedBucket {
  readonly key: string;
  /** Of `key`, for tables; 31 bits. */
  readonly hash: number;
  readonly origin: TierBucket;
  /** Under the limit in force, which is newer than the policy's when another pod has a newer generation. */
  bucket: Bucket;
  /** Units at the last reply; −1 = nothing is known. */
  level = -1;
  sentUs = 0;
  receivedUs = 0;
  /** How much longer the store's own clock made a wait than level and rate say. */
  aheadUs = 0;
  /** The limiter's knowledge period: a reconnect ends it. */
  period = 0;
  /** The group that took tokens ahead of its requests, or is about to. */
  lease: object | undefined = undefined;
  /** The pod's own bucket behind it, while its table holds it. */
  share: BucketState | undefined = undefined;

  constructor(key: string, origin: TierBucket) {
    this.key = key;
    this.hash = hashCode(key);
    this.origin = origin;
    this.bucket = origin.bucket;
  }

  /** Forgets the level: something may have given tokens back. */
  forget(): void {
    this.level = -1;
  }

  /** Whether `weight` tokens certainly cannot be paid at `nowUs`. Says nothing after `MAX_KNOWLEDGE_US`. */
  certainlyLacks(weight: number, nowUs: number, period: number): boolean {
    if (this.level < 0 || this.period !== period) return false;
    const { unitsPerToken, unitsPerTick, tickUs } = this.bucket.stored;
    const age = nowUs - this.sentUs;
    if (age > MAX_KNOWLEDGE_US) return false;
    // One tick more: the store's ticks and ours do not begin at the same instant.
    const most = this.level + unitsPerTick * (Math.floor(age / tickUs) + 1);
    return most < weight * unitsPerToken;
  }

  /** µs from `nowUs` until `weight` tokens are certainly there if nobody else takes any; −1 = never. */
  waitUs(weight: number, nowUs: number): number {
    const { capacity, unitsPerToken, unitsPerTick, tickUs } = this.bucket.stored;
    if (weight > capacity) return -1;
    const need = weight * unitsPerToken - this.level;
    const ticks = Math.ceil(need / unitsPerTick);
    return Math.max(1, this.receivedUs + ticks * tickUs + this.aheadUs - nowUs);
  }
}

/** Bounds every stale case: a refund or reset elsewhere, a flush, a raised limit, a stepped clock. */
export const MAX_KNOWLEDGE_US = 1_000_000;

/** The buckets of one tier; built once per bundle, for one limiter. */
export function bucketsOfTier(
  policy: CompiledPolicy,
  rule: CompiledRule,
  tier: CompiledTier,
): TierBuckets {
  const place = { policy, rule, tier };
  const buckets = tier.buckets.map(({ name, limit }) => new TierBucket(place, name, limit));
  return new TierBuckets(place, buckets);
}

function needsLocal(policy: CompiledPolicy): boolean {
  return policy.failureMode === 'Local' && policy.scope !== 'Pod';
}

function toLimit(stored: StoredLimit): Limit {
  const { capacity, unitsPerToken, unitsPerTick } = stored;
  const tickUs = stored.tickUs === 1 || stored.tickUs === 1_000 ? stored.tickUs : 1_000_000;
  return { capacity, unitsPerToken, unitsPerTick, tickUs };
}
