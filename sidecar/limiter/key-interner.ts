// Hot path. Raw key → interned named buckets, as a cache in two halves: what was used in this period or the
// one before stays. Least-recently-used to within one period, at one map lookup a hit and no list to keep.
import { bucketKey, hashKeyText, hashTag, partitionOf } from './bucket-key.ts';
import { KeyedBucket, KeyedBuckets, type TierBuckets } from './bucket.ts';

/**
 * Keys of a period, over all tiers: at most twice as many are held. About 600 bytes a key with one bucket:
 * 5 MB at the bound. A key that falls out costs a hash (2 µs) and forgets a denial.
 */
const MAX_KEYS_PER_PERIOD = 4_096;
/**
 * Characters of a key text that is kept as it is. A longer one is kept under its hash: a client may send 64 KiB in
 * a key, and V8 hashes a string of more than 16 383 characters by its length alone, so that such keys would all
 * collide in a map. Twice the longest usual key (an address, a UUID, an API key of 64 characters) with its labels.
 */
export const MAX_KEPT_TEXT = 256;
/** Stands before the hash of a long text; no key text begins with it (rules/key-text.ts). */
const HASHED = '#';

export class KeyInterner {
  #period = 0;
  #fresh = 0;
  #nextId = 1;
  /** Tiers that interned a key in this period and in the one before: only they hold keys. */
  #touched: TierBuckets[] = [];
  #touchedBefore: TierBuckets[] = [];
  /** How many hash tags a policy is spread over (≥ 1); of keys named from now on. */
  partitions: number;
  readonly #most: number;

  constructor(partitions: number, most: number = MAX_KEYS_PER_PERIOD) {
    this.partitions = partitions;
    this.#most = most;
  }

  /** The buckets of `keyText` in `tier`: the same object for as long as it is in use. */
  intern(tier: TierBuckets, keyText: string): KeyedBuckets {
    const name = keyText.length > MAX_KEPT_TEXT ? HASHED + hashKeyText(keyText) : keyText;
    const hit = tier.young.get(name);
    if (hit !== undefined) return hit;
    const known = tier.old.get(name) ?? this.#name(tier, keyText);
    if (this.#fresh >= this.#most) this.#turnPage();
    if (tier.period !== this.#period) {
      tier.period = this.#period;
      this.#touched.push(tier);
    }
    tier.young.set(name, known);
    this.#fresh += 1;
    return known;
  }

  #turnPage(): void {
    for (const tier of this.#touchedBefore) tier.old = new Map();
    for (const tier of this.#touched) {
      tier.old = tier.young;
      tier.young = new Map();
    }
    this.#touchedBefore = this.#touched;
    this.#touched = [];
    this.#period += 1;
    this.#fresh = 0;
  }

  #name(tier: TierBuckets, keyText: string): KeyedBuckets {
    const partition = partitionOf(keyText, this.partitions);
    const tag = hashTag(tier.policy, partition, this.partitions);
    const hash = hashKeyText(keyText);
    const buckets = tier.buckets.map(
      (origin) => new KeyedBucket(bucketKey(tag, origin.path, hash), origin),
    );
    const id = this.#nextId;
    this.#nextId += 1;
    return new KeyedBuckets(tier, tag, buckets, id);
  }
}
