// The store that the operator's settings name, opened, and swapped when they change. A new store has to answer before
// it takes over; the one before stays open until everything that was under way on it has ended. Levels live in the
// store, so that a request in between is decided as any other.
import { WeirError } from '../../contract/errors.ts';
import { MESSAGE_MAX, type SidecarSettings } from '../../contract/stream.ts';
import type { Log } from '../log.ts';
import type { Limiter } from '../store/limiter.ts';
import type { RemoteStore } from '../store/remote-store.ts';
import type { Store } from '../store/store.ts';
import type { SidecarReport } from './pushed-config.ts';

type StoreSettings = NonNullable<SidecarSettings['store']>;

/** As at a start with --redis: first requests need no failure mode, and an unreachable store keeps nobody waiting. */
const FIRST_CONNECTION_MS = 1_000;
/** Longer than any call may take: the default deadline twenty times, with its retries. */
const RETIRED_MS = 2_000;

export interface StoreKeeperOptions {
  readonly limiter: Pick<Limiter, 'replaceStore' | 'setDeadline' | 'counters' | 'breakerStates'>;
  /** Of the sidecar itself, where the settings say nothing. */
  readonly deadlineMs: number;
  readonly log: Log;
  /** Buckets have to be named anew. */
  readonly onReplaced: () => void;
  /** Stands where no store is given. */
  readonly absent: Store;
}

interface Opened {
  /** Of the settings it was opened from. */
  readonly key: string;
  readonly store: RemoteStore;
}

export class StoreKeeper implements AsyncDisposable {
  readonly #options: StoreKeeperOptions;
  #current: Opened | undefined = undefined;
  /** Opened, but it has not answered yet. */
  #candidate: Opened | undefined = undefined;
  #givingUp = new AbortController();
  #problem: string | undefined = undefined;
  readonly #retired = new Map<RemoteStore, NodeJS.Timeout>();

  constructor(options: StoreKeeperOptions) {
    this.#options = options;
  }

  /** Uses what the settings say, at once or as soon as it answers. Never rejects: `report` says what is not in use. */
  async use({ store, deadlineMs }: SidecarSettings): Promise<void> {
    this.#options.limiter.setDeadline(deadlineMs ?? this.#options.deadlineMs);
    const key = JSON.stringify(store ?? null);
    if (key === this.#candidate?.key) return;
    if (key === (this.#current?.key ?? 'null')) {
      await this.#dropCandidate();
      this.#problem = undefined;
      return;
    }
    if (store === undefined) await this.#useNone();
    else await this.#useStore(store, key);
  }

  report(): Pick<SidecarReport, 'store' | 'storeProblem'> {
    const { limiter } = this.#options;
    const problem = this.#problem === undefined ? {} : { storeProblem: this.#problem };
    if (this.#current === undefined) return { store: 'none', ...problem };
    const asked = limiter.counters.storeCalls > 0;
    const isDown = limiter.breakerStates().some(({ state }) => state !== 'closed');
    return { ...(asked ? { store: isDown ? 'down' : 'up' } : {}), ...problem };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dropCandidate();
    for (const [store, timer] of this.#retired) {
      clearTimeout(timer);
      await store[Symbol.asyncDispose]();
    }
    this.#retired.clear();
    await this.#current?.store[Symbol.asyncDispose]();
  }

  async #useNone(): Promise<void> {
    await this.#dropCandidate();
    this.#problem = undefined;
    this.#options.log.warn(
      { event: 'store-none' },
      'the operator gives no store any more; failure modes decide',
    );
    this.#replace(undefined);
  }

  async #useStore(settings: StoreSettings, key: string): Promise<void> {
    const opened = await this.#open(settings, key);
    if (opened === undefined) return;
    await this.#dropCandidate();
    if (this.#current === undefined) {
      const signal = AbortSignal.timeout(FIRST_CONNECTION_MS);
      await opened.store.connected(signal).catch((error: unknown) => {
        this.#say(
          'store-unreachable',
          'the store is not reachable yet; failure modes decide until it is',
          error,
        );
      });
      this.#replace(opened);
      return;
    }
    this.#candidate = opened;
    void this.#proveCandidate(opened);
  }

  async #open(settings: StoreSettings, key: string): Promise<Opened | undefined> {
    const [{ openStore }, { parseStoreSettings }] = await Promise.all([
      import('../store/open-store.ts'),
      import('../../contract/store-settings.ts'),
    ]);
    try {
      return { key, store: openStore(parseStoreSettings(settings)) };
    } catch (error) {
      this.#problem = describe(error);
      this.#say(
        'store-settings-invalid',
        "the operator's store settings cannot be used; the ones before stay",
        error,
      );
      return undefined;
    }
  }

  async #proveCandidate(opened: Opened): Promise<void> {
    this.#problem = 'the store of the new settings has not answered yet; the one before is in use';
    const { signal } = this.#givingUp;
    try {
      await opened.store.connected(signal);
    } catch {
      // Other settings have come.
      return;
    }
    if (this.#candidate !== opened) return;
    this.#candidate = undefined;
    this.#problem = undefined;
    this.#replace(opened);
  }

  #replace(opened: Opened | undefined): void {
    const { limiter, absent, onReplaced, log } = this.#options;
    const before = this.#current;
    this.#current = opened;
    this.#problem = undefined;
    limiter.replaceStore(opened?.store ?? absent);
    onReplaced();
    if (opened !== undefined) log.info({ event: 'store' }, 'the store of the operator is in use');
    if (before !== undefined) this.#retire(before.store);
  }

  #retire(store: RemoteStore): void {
    const timer = setTimeout(() => {
      this.#retired.delete(store);
      void store[Symbol.asyncDispose]();
    }, RETIRED_MS);
    timer.unref();
    this.#retired.set(store, timer);
  }

  async #dropCandidate(): Promise<void> {
    const candidate = this.#candidate;
    this.#candidate = undefined;
    this.#givingUp.abort();
    this.#givingUp = new AbortController();
    await candidate?.store[Symbol.asyncDispose]();
  }

  #say(event: string, sentence: string, error: unknown): void {
    this.#options.log.warn({ event, cause: describe(error) }, sentence);
  }
}

/** As the store's own code tells it, which leaves credentials out. */
function describe(error: unknown): string {
  if (!(error instanceof WeirError)) return 'unknown';
  return Object.values(error.details).map(String).join(': ').slice(0, MESSAGE_MAX);
}
