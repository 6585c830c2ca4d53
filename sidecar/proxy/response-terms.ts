// Hot path. What the verdict wants of the response: quota fields, and to be shown its head. Copied from the verdict,
// which is valid only during its call.
import { bitOf, RATE_LIMIT, X_RATE_LIMIT_REMAINING } from '../http1/field-kind.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import { forwardedResponseHead } from './forwarded-head.ts';
import type { AfterResponse, Quota, Verdict } from './gate.ts';
import type { ProxyContext } from './proxy-context.ts';
import { chooseQuota, withoutQuota } from './quota-fields.ts';
import type { QuotaChoice, ResponseFields } from './quota-fields.ts';

const remainingBits = bitOf(RATE_LIMIT) | bitOf(X_RATE_LIMIT_REMAINING);

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

  /** Shows the response to the gate; at most once per exchange. */
  show(response: ResponseFields): void {
    const after = this.#afterResponse;
    if (after === undefined) return;
    this.#afterResponse = undefined;
    after.onResponseHead((name) => response.header(name));
  }

  /** Which quota fields the client sees; a response that has none of them need not be searched. */
  choose(response: ResponseFields): QuotaChoice {
    if (this.#quotaForm === undefined) return 'absent';
    return chooseQuota(response, this.#quotaForm, this.#remaining);
  }

  /** Our field lines for a response. */
  fieldsFor(choice: QuotaChoice): string {
    return choice === 'theirs' ? withoutQuota(this.#fields) : this.#fields;
  }

  /** The head for the client. */
  headText(head: ResponseHead, closes: boolean): string {
    const choice = (head.seen & remainingBits) === 0 ? 'absent' : this.choose(head);
    return forwardedResponseHead(head, {
      fields: this.fieldsFor(choice),
      replacesQuota: choice === 'ours',
      dateLine: this.#context.dateLine,
      viaLine: this.#context.viaLine,
      closes,
    });
  }
}
