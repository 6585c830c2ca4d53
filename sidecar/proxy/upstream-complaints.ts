// What went wrong at the application, for the log: a failing application is busy failing, so not a line a request.
import type { UpstreamErrorKind } from './proxy-counters.ts';

/** Between two complaints: what a person wants to read again, and an alert to be found by. */
const EVERY_MS = 60_000;

export type UpstreamFailures = Readonly<Partial<Record<UpstreamErrorKind, number>>>;

export class UpstreamComplaints {
  readonly #errors: Readonly<Record<UpstreamErrorKind, number>>;
  readonly #tell: (failures: UpstreamFailures) => void;
  #told: Readonly<Record<UpstreamErrorKind, number>>;
  #toldMs = -Infinity;

  /** `errors` is counted up by others; `tell` is given what has been added since it was called last. */
  constructor(
    errors: Readonly<Record<UpstreamErrorKind, number>>,
    tell: (failures: UpstreamFailures) => void,
  ) {
    this.#errors = errors;
    this.#tell = tell;
    this.#told = { ...errors };
  }

  /** Tells what is new, at most once a minute. To be called now and then. */
  look(nowMs: number): void {
    if (nowMs - this.#toldMs < EVERY_MS) return;
    const kinds = Object.keys(this.#errors) as UpstreamErrorKind[];
    const added = kinds
      .map((kind) => [kind, this.#errors[kind] - this.#told[kind]] as const)
      .filter(([, count]) => count > 0);
    if (added.length === 0) return;
    this.#told = { ...this.#errors };
    this.#toldMs = nowMs;
    this.#tell(Object.fromEntries(added));
  }
}
