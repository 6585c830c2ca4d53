// Streams that we reset of late: what the peer had sent meanwhile may still come, and is no fault of its.

const MAX_IDS = 512;

export class RecentIds {
  readonly #ids = new Set<number>();

  has(id: number): boolean {
    return this.#ids.has(id);
  }

  /** The oldest one is forgotten for it. */
  add(id: number): void {
    this.#ids.add(id);
    if (this.#ids.size <= MAX_IDS) return;
    const [oldest = id] = this.#ids;
    this.#ids.delete(oldest);
  }
}
