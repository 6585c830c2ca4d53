import type { KeyedBuckets } from '../limiter/bucket.ts';

/** What a request asks of one lane: `weights[i]` tokens from every bucket of `parts[i]`, for the first `count`. */
export interface Ask {
  readonly parts: readonly KeyedBuckets[];
  readonly weights: readonly number[];
  readonly count: number;
  readonly shadow: boolean;
  /** When the request came, in µs: its deadline counts from here. */
  readonly sinceUs: number;
}

/** One object for all requests: whoever is asked copies what it keeps before anybody is called back. */
export class AskScratch implements Ask {
  parts: readonly KeyedBuckets[] = [];
  weights: readonly number[] = [];
  count = 0;
  shadow = false;
  sinceUs = 0;
  readonly #one: KeyedBuckets[] = [];
  readonly #weight: number[] = [];

  set(parts: readonly KeyedBuckets[], weights: readonly number[], count: number): this {
    this.parts = parts;
    this.weights = weights;
    this.count = count;
    this.shadow = false;
    return this;
  }

  /** A shadow rule's decision of its own. */
  setShadow(part: KeyedBuckets, weight: number): this {
    this.#one[0] = part;
    this.#weight[0] = weight;
    this.set(this.#one, this.#weight, 1);
    this.shadow = true;
    return this;
  }
}
