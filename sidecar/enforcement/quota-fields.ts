// The quota fields of a response (draft-ietf-httpapi-ratelimit-headers, ≥ 08) or the X-RateLimit trio.
// On the hot path: the constant part of each line is made once per bucket, and the last line is kept, because at
// load most answers of one bucket repeat the same two numbers.
import type { Limit, QuotaHeaders } from '../../contract/bundle.ts';
import type { Bucket } from '../limiter/bucket.ts';

const US_PER_SECOND = 1_000_000;

/** What one bucket says about itself; numbers go in, field lines ended by CRLF come out. */
export class QuotaFields {
  readonly form: QuotaHeaders;
  readonly #policyLine: string;
  readonly #head: string;
  #lastTokens = -1;
  #lastSeconds = -1;
  #lastLines = '';

  constructor(bucket: Bucket) {
    this.form = bucket.policy.response.quotaHeaders;
    // A Structured Fields string (RFC 9651 §3.3.3); Kubernetes names hold neither quotes nor backslashes.
    const name = `"${labelOf(bucket)}"`;
    const { capacity } = bucket.limit;
    this.#policyLine =
      this.form === 'RateLimit'
        ? `RateLimit-Policy: ${name};q=${capacity};w=${bucket.windowSeconds}\r\n`
        : `X-RateLimit-Limit: ${capacity}\r\n`;
    this.#head = this.form === 'RateLimit' ? `RateLimit: ${name};r=` : 'X-RateLimit-Remaining: ';
  }

  /**
   * Lines for `tokens` whole tokens left and the next one due in `seconds`; `seconds` 0 = the bucket is full.
   * Empty when the policy wants none.
   */
  lines(tokens: number, seconds: number): string {
    if (this.form === 'None') return '';
    if (tokens === this.#lastTokens && seconds === this.#lastSeconds) return this.#lastLines;
    this.#lastTokens = tokens;
    this.#lastSeconds = seconds;
    this.#lastLines =
      this.form === 'RateLimit'
        ? `${this.#policyLine}${this.#head}${tokens}${seconds === 0 ? '' : `;t=${seconds}`}\r\n`
        : `${this.#policyLine}${this.#head}${tokens}\r\nX-RateLimit-Reset: ${seconds}\r\n`;
    return this.#lastLines;
  }
}

/** `<policy>/<rule>/<bucket>`: how fields, problem bodies and the debug header name a bucket. */
export function labelOf({ policy, rule, name }: Bucket): string {
  return `${policy.name}/${rule.name}/${name}`;
}

/** Seconds until the bucket holds one whole token more, rounded up; 0 when it is full. `level` in units. */
export function secondsToNextToken(level: number, limit: Limit): number {
  if (level >= limit.capacity * limit.unitsPerToken) return 0;
  const missing = limit.unitsPerToken - (level % limit.unitsPerToken);
  const waitUs = Math.ceil(missing / limit.unitsPerTick) * limit.tickUs;
  return Math.max(1, Math.ceil(waitUs / US_PER_SECOND));
}

/** `Retry-After` in whole seconds: never earlier than the bucket can pay, never 0. */
export function retryAfterSeconds(waitUs: number): number {
  return Math.max(1, Math.ceil(waitUs / US_PER_SECOND));
}
