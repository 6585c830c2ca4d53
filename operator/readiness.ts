// When a replica may be asked: its caches are full, it may review tokens, and the API server has once been seen to trust
// its certificate. The last is not taken back: a webhook configuration that somebody deletes is no reason to send away
// the sidecars that hold their streams here.
import type { Check } from './admin/server.ts';
import type { CertificateSource } from './certificates/certificate-source.ts';
import { pause, type Clock } from './clock.ts';
import type { OperatorConfig } from './operator-settings.ts';
import type { ServingState } from './serving-state.ts';
import type { StreamServer } from './stream/server.ts';
import type { WebhookWatch } from './watching/webhook-watch.ts';

/** A role that was bound a moment ago is in force within a second. */
const REVIEW_AGAIN_MS = 2_000;
const REVIEW_WITHIN_MS = 10_000;

export interface ReadinessOptions {
  readonly config: Pick<OperatorConfig, 'manageCaBundle'>;
  readonly state: { readonly watch: Pick<ServingState['watch'], 'problem'> };
  readonly certificates: Pick<CertificateSource, 'current'>;
  readonly webhookWatch: Pick<WebhookWatch, 'trustProblem'>;
  readonly stream: Pick<StreamServer, 'whyNotReady'>;
  readonly clock: Clock;
}

export class Readiness implements AsyncDisposable {
  readonly checks: readonly Check[];
  readonly #end = new AbortController();
  readonly #asking: Promise<void>;
  #isStopping = false;
  #wasTrusted = false;
  #reviewProblem: string | undefined = 'not asked yet whether tokens may be reviewed';

  constructor(options: ReadinessOptions) {
    const { state, certificates, clock } = options;
    this.checks = [
      { name: 'serving', problem: () => (this.#isStopping ? 'stopping' : undefined) },
      { name: 'caches', problem: () => state.watch.problem },
      {
        name: 'certificate',
        problem: () => expiryProblem(certificates.current().notAfterMs, clock.wallMs()),
      },
      { name: 'ca-bundle', problem: () => this.#trustProblem(options) },
      { name: 'token-reviews', problem: () => this.#reviewProblem },
    ];
    this.#asking = this.#askForReviews(options);
  }

  get isReady(): boolean {
    return this.checks.every(({ problem }) => problem() === undefined);
  }

  stop(): void {
    this.#isStopping = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await this.#asking;
  }

  #trustProblem({ config, certificates, webhookWatch }: ReadinessOptions): string | undefined {
    if (this.#wasTrusted) return undefined;
    const problem = webhookWatch.trustProblem(certificates.current().trust, config.manageCaBundle);
    this.#wasTrusted = problem === undefined;
    return problem;
  }

  async #askForReviews({ stream, clock }: ReadinessOptions): Promise<void> {
    const { signal } = this.#end;
    while (!signal.aborted && this.#reviewProblem !== undefined) {
      const within = AbortSignal.any([signal, AbortSignal.timeout(REVIEW_WITHIN_MS)]);
      this.#reviewProblem = await stream
        .whyNotReady(within)
        .catch((error: unknown) => `not known whether tokens may be reviewed: ${messageOf(error)}`);
      if (this.#reviewProblem !== undefined) await pause(clock, REVIEW_AGAIN_MS, signal);
    }
  }
}

function expiryProblem(notAfterMs: number, nowMs: number): string | undefined {
  return notAfterMs > nowMs ? undefined : `expired ${new Date(notAfterMs).toISOString()}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
