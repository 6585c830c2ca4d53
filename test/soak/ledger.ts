// What the clients of a soak know: of each request they sent whole, what has to have become of it.
import { rules } from './soak-policies.ts';
import type { RuleName } from './soak-policies.ts';

export class Ledger {
  /** Answered, with what the answer says about the verdict. */
  allowed = 0;
  denied = 0;
  exempt = 0;
  /** Requests that are no valid HTTP. */
  malformed = 0;
  /** Sent whole, and left before an answer: admitted, or gone before anything was asked for them. */
  abandoned = 0;
  /** Tokens that the answered requests cost. */
  readonly tokens: Record<RuleName, number> = { all: 0, priced: 0, scarce: 0, aborted: 0 };
  /** Visits by their name. */
  readonly visits: Map<string, number> = new Map<string, number>();
  /** Answers that should not have been, and visits that failed: the first of them, and how many. */
  readonly surprises: string[] = [];
  surpriseCount = 0;
  readonly #onSurprise: (text: string) => void;

  constructor(onSurprise: (text: string) => void = () => undefined) {
    this.#onSurprise = onSurprise;
  }

  /** Requests that were sent whole. */
  get sent(): number {
    return this.allowed + this.denied + this.exempt + this.malformed + this.abandoned;
  }

  /** An admitted request to which `rule` applied besides `all`, at `cost` tokens. */
  admit(rule?: RuleName, cost = 1): void {
    this.allowed += 1;
    this.tokens.all += 1;
    if (rule !== undefined) this.tokens[rule] += cost;
  }

  surprise(text: string): void {
    this.surpriseCount += 1;
    this.#onSurprise(text);
    if (this.surprises.length < MOST_KEPT) this.surprises.push(text);
  }

  visited(name: string): void {
    this.visits.set(name, (this.visits.get(name) ?? 0) + 1);
  }

  /** Tokens by rule in a fixed order, for messages. */
  tokenText(tokens: Readonly<Record<RuleName, number>> = this.tokens): string {
    return rules.map((rule) => `${rule} ${String(tokens[rule])}`).join(', ');
  }
}

/** Enough to see what went wrong. */
const MOST_KEPT = 20;
