// What a response may still cost: known when its head has come, charged then.
import type { KeyedBuckets } from '../limiter/bucket.ts';
import type { AfterResponse } from '../proxy/gate.ts';
import { responseCost } from '../rules/cost.ts';
import type { RuleEntry } from '../rules/evaluation.ts';
import type { Limiter } from '../store/limiter.ts';
import type { ChargeList } from './charge-list.ts';

export class ResponseCharges implements AfterResponse {
  readonly #limiter: Limiter;
  readonly #owed: { readonly part: KeyedBuckets; readonly entry: RuleEntry }[] = [];

  constructor(limiter: Limiter) {
    this.#limiter = limiter;
  }

  /** Remembers the charges whose rules take a cost from the response. */
  addFrom(charges: ChargeList): void {
    for (let i = 0; i < charges.count; i += 1) {
      const [part, entry] = [charges.parts[i], charges.entries[i]];
      if (part === undefined || entry === undefined) continue;
      if (charges.rules[i]?.hasResponseCost === true) this.#owed.push({ part, entry });
    }
  }

  onResponseHead(header: (name: string) => string | undefined): void {
    for (const { part, entry } of this.#owed) {
      const tokens = responseCost(entry.rule, header);
      if (tokens > 0) this.#limiter.chargeDown(part, tokens);
    }
  }
}

export function hasResponseCost(charges: ChargeList): boolean {
  for (let i = 0; i < charges.count; i += 1) {
    if (charges.rules[i]?.hasResponseCost === true) return true;
  }
  return false;
}
