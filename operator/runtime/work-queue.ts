// Keys that wait for work. A key waits once however often it is added, is worked on by one worker at a time, and comes
// back after a failure at a growing distance. What is added while it is worked on is worked on once more afterwards.
import type { Clock } from '../clock.ts';
import type { QueueMetrics } from './runtime-metrics.ts';

/** As client-go: 5 ms, doubled with each failure in a row of the same key, up to 1 000 s. */
const FIRST_RETRY_MS = 5;
const MOST_RETRY_MS = 1_000_000;
const DEFAULT_CONCURRENCY = 4;

/** Work that cannot succeed until something changes, which will add the key by itself: not tried again. */
export class TerminalError extends Error {
  override readonly name = 'TerminalError';
}

export interface WorkQueueOptions {
  readonly name: string;
  /**
   * Does the work of one key. Resolves with a delay to have the key back then; a rejection brings it back with
   * back-off, a TerminalError never.
   */
  readonly work: (key: string, signal: AbortSignal) => Promise<Again>;
  /** Keys worked on at once; absent: 4. */
  readonly concurrency?: number;
  readonly clock: Clock;
  readonly metrics: QueueMetrics;
}

export interface Again {
  /** Absent: only when it is added. */
  readonly requeueAfterMs?: number;
}

interface Later {
  readonly dueMs: number;
  readonly timer: Disposable;
}

export class WorkQueue implements AsyncDisposable {
  readonly #options: WorkQueueOptions;
  readonly #concurrency: number;
  /** In the order of their coming, with the time. */
  readonly #waiting = new Map<string, number>();
  readonly #working = new Map<string, Promise<void>>();
  /** Added while worked on. */
  readonly #again = new Set<string>();
  readonly #later = new Map<string, Later>();
  readonly #failures = new Map<string, number>();
  readonly #end = new AbortController();
  #isStarted = false;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
    this.#concurrency = options.concurrency ?? DEFAULT_CONCURRENCY;
  }

  /** Keys added before are kept until then: work that needs a synced cache starts when it is. */
  start(): void {
    this.#isStarted = true;
    this.#fill();
  }

  /** Now, whatever delay the key was waiting for. */
  add(key: string): void {
    if (this.#end.signal.aborted) return;
    this.#later.get(key)?.timer[Symbol.dispose]();
    this.#later.delete(key);
    if (this.#working.has(key)) {
      this.#again.add(key);
      return;
    }
    if (this.#waiting.has(key)) return;
    const { clock, metrics, name } = this.#options;
    this.#waiting.set(key, clock.nowMs());
    metrics.added(name);
    metrics.depth(name, this.#waiting.size);
    this.#fill();
  }

  /** Unless it is to come sooner anyway. */
  addAfter(key: string, delayMs: number): void {
    if (this.#end.signal.aborted) return;
    const { clock } = this.#options;
    const dueMs = clock.nowMs() + delayMs;
    const known = this.#later.get(key);
    if (this.#waiting.has(key) || (known !== undefined && known.dueMs <= dueMs)) return;
    known?.timer[Symbol.dispose]();
    const timer = clock.after(delayMs, () => {
      this.#later.delete(key);
      this.add(key);
    });
    this.#later.set(key, { dueMs, timer });
  }

  /** Keys that wait, without those that wait for a time. */
  get depth(): number {
    return this.#waiting.size;
  }

  /** Aborts the work under way and resolves when it has ended; what waits is dropped. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    for (const { timer } of this.#later.values()) timer[Symbol.dispose]();
    this.#later.clear();
    this.#waiting.clear();
    this.#again.clear();
    await Promise.all(this.#working.values());
  }

  #fill(): void {
    if (!this.#isStarted) return;
    for (const [key, sinceMs] of this.#waiting) {
      if (this.#working.size >= this.#concurrency) return;
      this.#waiting.delete(key);
      this.#begin(key, sinceMs);
    }
  }

  #begin(key: string, sinceMs: number): void {
    const { clock, metrics, name } = this.#options;
    const startMs = clock.nowMs();
    metrics.depth(name, this.#waiting.size);
    metrics.waited(name, (startMs - sinceMs) / 1000);
    const end = async (): Promise<void> => {
      await this.#work(key);
      this.#working.delete(key);
      metrics.worked(name, (clock.nowMs() - startMs) / 1000);
      if (this.#again.delete(key)) this.add(key);
      this.#fill();
    };
    this.#working.set(key, end());
  }

  /** Never rejects. */
  async #work(key: string): Promise<void> {
    const { work, metrics, name } = this.#options;
    try {
      const { requeueAfterMs } = await work(key, this.#end.signal);
      this.#failures.delete(key);
      if (requeueAfterMs !== undefined) this.addAfter(key, requeueAfterMs);
    } catch (error) {
      if (error instanceof TerminalError || this.#end.signal.aborted) {
        this.#failures.delete(key);
        return;
      }
      const failures = this.#failures.get(key) ?? 0;
      this.#failures.set(key, failures + 1);
      metrics.retried(name);
      this.addAfter(key, retryAfterMs(failures));
    }
  }
}

/** `failures` in a row before this one. */
export function retryAfterMs(failures: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** failures, MOST_RETRY_MS);
}
