// The answer to a refused request, as its policy shapes it. One object per bucket is reused: it is valid until the
// next denial of that bucket, which is all the proxy needs to write it out.
import { STATUS_CODES } from 'node:http';
import type { CompiledPolicy } from '../../contract/bundle.ts';
import type { Answer } from '../proxy/gate.ts';

const PROBLEM_TYPE = 'https://iana.org/assignments/http-problem-types#quota-exceeded';

/** Whoever is refused by this bucket, or by this rule without a bucket, is answered so. */
export class Denial implements Answer {
  readonly status: number;
  readonly reason: string;
  readonly body: string;
  readonly detail: string;
  fields = '';
  readonly #constantFields: string;
  #lastRetry = -2;
  #lastQuota = '';

  constructor(policy: CompiledPolicy, label: string) {
    const { response } = policy;
    this.status = response.status;
    this.reason = STATUS_CODES[response.status] ?? 'Refused';
    this.body = toByteString(
      response.body?.content ?? problemBody(this.status, this.reason, label),
    );
    this.detail = `The rate limit ${label} has been reached.`;
    const contentType = response.body?.contentType ?? 'application/problem+json';
    const own = response.headers.map(({ name, value }) => `${name}: ${value}\r\n`).join('');
    // A shared cache must not serve one client's refusal to another (RFC 6585 §4).
    this.#constantFields = `Content-Type: ${contentType}\r\nCache-Control: no-store\r\n${own}`;
    this.fields = this.#constantFields;
  }

  /** `retrySeconds` −1 = no wait cures it: no Retry-After. `quotaLines` end with CRLF, or are empty. */
  prepare(retrySeconds: number, quotaLines: string): this {
    if (retrySeconds === this.#lastRetry && quotaLines === this.#lastQuota) return this;
    this.#lastRetry = retrySeconds;
    this.#lastQuota = quotaLines;
    const retry = retrySeconds < 0 ? '' : `Retry-After: ${retrySeconds}\r\n`;
    this.fields = `${this.#constantFields}${retry}${quotaLines}`;
    return this;
  }
}

function problemBody(status: number, title: string, label: string): string {
  return JSON.stringify({ type: PROBLEM_TYPE, title, status, 'violated-policies': [label] });
}

/** UTF-8 as one char per byte, the form in which the proxy writes heads and bodies. */
function toByteString(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}
