// The Secret that says how to reach the store: read when it changes, its last good settings kept while it is faulty.
// Nothing of its content leaves this file but as settings for sidecars.
import { isDeepStrictEqual } from 'node:util';
import type { KubeObject } from '../kube/object.ts';
import { readStoreSecret, type StoreSettings, type StoreState } from '../policy/store-settings.ts';

export interface SecretObject extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

export interface StoreSecretOptions {
  /** `namespace/name`; undefined = none is named in the operator's settings. */
  readonly name: string | undefined;
  readonly onChange: () => void;
}

export class StoreSecret {
  readonly #options: StoreSecretOptions;
  #settings: StoreSettings | undefined;
  #state: StoreState;
  #isRead = false;

  constructor(options: StoreSecretOptions) {
    this.#options = options;
    const { name } = options;
    this.#state =
      name === undefined
        ? { kind: 'none' }
        : { kind: 'faulty', message: `Secret ${name} was not read yet`, isKept: false };
  }

  /** The same object for as long as it is the same content. */
  get settings(): StoreSettings | undefined {
    return this.#settings;
  }

  get state(): StoreState {
    return this.#state;
  }

  /** As the watch gives it; undefined = it does not exist. */
  apply(object: SecretObject | undefined): void {
    const { name } = this.#options;
    if (name === undefined) return;
    this.#isRead = true;
    const outcome =
      object === undefined
        ? ({ kind: 'faulty', message: `Secret ${name} does not exist` } as const)
        : readStoreSecret({ name, data: object.data ?? {} });
    if (outcome.kind === 'faulty') {
      const isKept = this.#settings !== undefined;
      this.#become({ ...outcome, isKept }, this.#settings);
      return;
    }
    const isSame = isDeepStrictEqual(outcome.settings, this.#settings);
    this.#become({ kind: 'configured' }, isSame ? this.#settings : outcome.settings);
  }

  /** All that there is has been given by now: a watch says nothing of what does not exist. */
  synced(): void {
    if (!this.#isRead) this.apply(undefined);
  }

  #become(state: StoreState, settings: StoreSettings | undefined): void {
    const isSame = isDeepStrictEqual(state, this.#state) && settings === this.#settings;
    this.#state = state;
    this.#settings = settings;
    if (!isSame) this.#options.onChange();
  }
}
