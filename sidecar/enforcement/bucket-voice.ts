// How one bucket speaks to clients: the fields it puts on an allowed response and the answer when it refuses.
import type { Bucket } from '../limiter/bucket.ts';
import type { Quota } from '../proxy/gate.ts';
import { Denial } from './denial.ts';
import { labelOf, QuotaFields, retryAfterSeconds, secondsToNextToken } from './quota-fields.ts';

export class BucketVoice {
  readonly #bucket: Bucket;
  readonly #fields: QuotaFields;
  readonly #denial: Denial;
  readonly #quota: { form: 'RateLimit' | 'XRateLimit'; remaining: number } | undefined;

  constructor(bucket: Bucket) {
    this.#bucket = bucket;
    this.#fields = new QuotaFields(bucket);
    this.#denial = new Denial(bucket.policy, labelOf(bucket));
    const { form } = this.#fields;
    this.#quota = form === 'None' ? undefined : { form, remaining: 0 };
  }

  /** Field lines for `level` units; empty when the level is unknown (−1). */
  lines(level: number): string {
    if (level < 0) return '';
    const { limit } = this.#bucket;
    const tokens = Math.floor(level / limit.unitsPerToken);
    return this.#fields.lines(tokens, secondsToNextToken(level, limit));
  }

  /** The numbers behind `lines(level)`; the object is reused. */
  quota(level: number): Quota | undefined {
    if (this.#quota === undefined || level < 0) return undefined;
    this.#quota.remaining = Math.floor(level / this.#bucket.limit.unitsPerToken);
    return this.#quota;
  }

  /** The answer to a request that this bucket refuses; `waitUs` −1 = no wait cures it. */
  refuse(waitUs: number, level: number): Denial {
    const retry = waitUs < 0 ? -1 : retryAfterSeconds(waitUs);
    return this.#denial.prepare(retry, this.lines(level));
  }
}
