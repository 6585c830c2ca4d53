/** Choices of one round. */
export class Chance {
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  get random(): () => number {
    return this.#random;
  }

  /** Whether something of that probability happens. */
  hits(probability: number): boolean {
    return this.#random() < probability;
  }

  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  one<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new RangeError('nothing to choose from');
    return item;
  }
}
