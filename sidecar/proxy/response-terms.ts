// Hot path. What the verdict wants of the response: quota fields, and to be shown its head. Copied from the verdict,
// which is valid only during its call.
import type { ResponseHead } from '../http1/response-head.ts';
import { forwardedResponseHead } from './forwarded-head.ts';
import type { AfterResponse, Quota, Verdict } from './gate.ts';
import type { ProxyContext } from './proxy-context.ts';
import { chooseQuota, withoutQuota } from './quota-fields.ts';

export class ResponseTerms {
  readonly #context: ProxyContext;
  #fields = '';
  #quotaForm: Quota['form'] | undefined;
  #remaining = 0;
  #afterResponse: AfterResponse | undefined;

  constructor(context: ProxyContext) {
    this.#context = context;
  }

  copy(verdict: Extract<Verdict, { kind: 'allowed' }>): void {
    this.#fields = verdict.fields;
    this.#quotaForm = verdict.quota?.form;
    this.#remaining = verdict.quota?.remaining ?? 0;
    this.#afterResponse = verdict.afterResponse;
  }

  /** Shows the head to the gate; at most once per exchange. */
  show(head: ResponseHead): void {
    const after = this.#afterResponse;
    if (after === undefined) return;
    this.#afterResponse = undefined;
    after.onResponseHead((name) => head.header(name));
  }

  /** The head for the client. */
  headText(head: ResponseHead, closes: boolean): string {
    const choice =
      this.#quotaForm === undefined
        ? 'absent'
        : chooseQuota(head, this.#quotaForm, this.#remaining);
    return forwardedResponseHead(head, {
      fields: choice === 'theirs' ? withoutQuota(this.#fields) : this.#fields,
      replacesQuota: choice === 'ours',
      dateLine: this.#context.dateLine,
      viaLine: this.#context.viaLine,
      closes,
    });
  }
}
