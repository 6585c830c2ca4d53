// Where the operator's certificate comes from, whatever its origin.

export interface ServingIdentity {
  /** PEM texts; `trust` may hold several authorities. */
  readonly cert: string;
  readonly key: string;
  readonly trust: string;
  /** Of `cert`, in ms since 1970. */
  readonly notAfterMs: number;
}

export interface CertificateSource extends AsyncDisposable {
  /** The last good one. */
  current(): ServingIdentity;
  /** Called after every change of certificate or trust; a listener that throws is logged. */
  onChange(listener: (identity: ServingIdentity) => void): Disposable;
  /** Looks at once whether something has changed. Never throws: what is wrong is logged, and the last good stays. */
  refresh(signal: AbortSignal): Promise<void>;
}

/** Listeners of one source. */
export class IdentityListeners {
  readonly #listeners = new Set<(identity: ServingIdentity) => void>();
  readonly #failed: (error: unknown) => void;

  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  add(listener: (identity: ServingIdentity) => void): Disposable {
    this.#listeners.add(listener);
    return {
      [Symbol.dispose]: () => {
        this.#listeners.delete(listener);
      },
    };
  }

  tell(identity: ServingIdentity): void {
    for (const listener of this.#listeners) {
      try {
        listener(identity);
      } catch (error) {
        this.#failed(error);
      }
    }
  }
}
