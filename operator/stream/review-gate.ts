// Lets a bounded number of tasks run at once, and a bounded number wait.

/** A storm of a replica's whole fleet waits; what comes on top is told to come again. */
const MOST_WAITING = 5_000;

export class ReviewGate {
  readonly #most: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  /** Undefined when too many wait already. */
  async run<Result>(task: () => Promise<Result>): Promise<Result | undefined> {
    if (this.#running < this.#most) this.#running += 1;
    else if (this.#waiting.length >= MOST_WAITING) return undefined;
    // Whoever ends hands its place over.
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
