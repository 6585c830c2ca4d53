// Keeps the key sets that policies name: fetches each, again when it is due, and tells what changed. Every replica
// keeps its own; the last good keys of an address stay for as long as a policy names it.
import type { PublicKey } from '../../crds/key-set.ts';
import { NOT_FETCHED, type KeySetState } from '../policy/key-set-state.ts';
import { planKeySet, type KeySetProgress } from '../policy/key-set-plan.ts';
import type { Clock, Random } from '../clock.ts';
import type { KeySetFetch } from './key-set-fetch.ts';

/** At once: issuers are few, and a cold start names them all. */
export const FETCHES_MAX = 8;

export interface KeySetsOptions {
  readonly fetch: KeySetFetch;
  readonly clock: Clock;
  readonly random: Random;
  /** Keys of an address were fetched; they may be the same as before. */
  readonly onKeys: (uri: string, keys: readonly PublicKey[]) => void;
  /** The state of an address is another one: statuses that name it may read differently. */
  readonly onState: (uri: string) => void;
}

interface Entry {
  progress: KeySetProgress;
  timer: Disposable | undefined;
}

export class KeySets implements AsyncDisposable {
  readonly #options: KeySetsOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #waiting = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #end = new AbortController();

  constructor(options: KeySetsOptions) {
    this.#options = options;
  }

  stateOf(uri: string): KeySetState {
    return this.#entries.get(uri)?.progress.state ?? NOT_FETCHED;
  }

  /** The addresses that policies name now: new ones are fetched at once, others forgotten. */
  keep(uris: Iterable<string>): void {
    const wanted = new Set(uris);
    for (const [uri, { timer }] of this.#entries) {
      if (wanted.has(uri)) continue;
      timer?.[Symbol.dispose]();
      this.#entries.delete(uri);
      this.#waiting.delete(uri);
    }
    for (const uri of wanted) {
      if (this.#entries.has(uri)) continue;
      this.#entries.set(uri, { progress: { state: NOT_FETCHED, failures: 0 }, timer: undefined });
      this.#waiting.add(uri);
    }
    this.#startWaiting();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    this.#waiting.clear();
    for (const { timer } of this.#entries.values()) timer?.[Symbol.dispose]();
    await Promise.all(this.#running.values());
  }

  #startWaiting(): void {
    for (const uri of this.#waiting) {
      if (this.#end.signal.aborted || this.#running.size >= FETCHES_MAX) return;
      // Named again while its last fetch still runs: that one's outcome is taken.
      if (this.#running.has(uri)) continue;
      this.#waiting.delete(uri);
      this.#running.set(uri, this.#fetch(uri));
    }
  }

  async #fetch(uri: string): Promise<void> {
    const outcome = await this.#options.fetch(uri, this.#end.signal);
    this.#running.delete(uri);
    const entry = this.#entries.get(uri);
    if (entry !== undefined && !this.#end.signal.aborted) {
      const { clock, random } = this.#options;
      const before = entry.progress.state;
      const step = planKeySet(entry.progress, outcome, { nowMs: clock.wallMs(), random });
      entry.progress = step;
      // It was named again while this ran: here is its outcome.
      this.#waiting.delete(uri);
      entry.timer?.[Symbol.dispose]();
      entry.timer = clock.after(step.nextInMs, () => {
        this.#waiting.add(uri);
        this.#startWaiting();
      });
      this.#tell(uri, before, step.state);
    }
    this.#startWaiting();
  }

  #tell(uri: string, before: KeySetState, after: KeySetState): void {
    if (after.good !== undefined && after.good !== before.good) {
      this.#options.onKeys(uri, after.good.keys);
    }
    const isSame =
      before.failure?.message === after.failure?.message &&
      (before.good === undefined) === (after.good === undefined);
    if (!isSame) this.#options.onState(uri);
  }
}
