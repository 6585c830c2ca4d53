// Puts bundles into force, one after the other and each as a whole, and knows which one is.
import type { Bundle } from '../../contract/bundle.ts';
import type { Problem } from '../../crds/problem.ts';
import { ArmedBundle } from '../enforcement/armed-bundle.ts';
import type { EnforcingGate } from '../enforcement/enforcing-gate.ts';
import type { RuleTallies } from '../enforcement/rule-tally.ts';
import type { Log } from '../log.ts';
import type { ConfigOrigin } from '../metrics.ts';
import type { RuleCounters } from '../rules/rule-counters.ts';
import { compileRules } from '../rules/rule-set.ts';
import type { PolicyUpdate } from './policy-set.ts';

export interface BundleSwitchOptions {
  readonly gate: EnforcingGate;
  readonly tallies: RuleTallies;
  readonly rules: RuleCounters;
  readonly log: Log;
  readonly origin: ConfigOrigin;
}

export class BundleSwitch {
  /** Updates that were refused at least in part. */
  rejected = 0;
  readonly #options: BundleSwitchOptions;
  #since = performance.now();

  constructor(options: BundleSwitchOptions) {
    this.#options = options;
  }

  get bundle(): Bundle | undefined {
    return this.#options.gate.bundle?.bundle;
  }

  get origin(): ConfigOrigin {
    return this.bundle === undefined ? 'none' : this.#options.origin;
  }

  whyNotReady(): string | undefined {
    return this.bundle === undefined ? 'no policies yet' : undefined;
  }

  ageSeconds(): number {
    return (performance.now() - this.#since) / 1_000;
  }

  /** In force when the promise settles: from the next request on. */
  async accept({ bundle, elsewhere }: PolicyUpdate): Promise<void> {
    const { gate, tallies, rules, log } = this.#options;
    const compiled = await compileRules(bundle, { nowMs: Date.now, counters: rules });
    gate.swap(new ArmedBundle(bundle, compiled, tallies));
    this.#since = performance.now();
    const policies = bundle.policies.map((one) => `${one.namespace}/${one.name}`);
    log.info(
      { event: 'policies', version: bundle.version, policies, rules: compiled.entries.length },
      policies.length === 0 ? 'no policy applies: every request is forwarded' : 'policies in force',
    );
    if (elsewhere.length > 0) {
      log.warn(
        { event: 'policies-elsewhere', policies: elsewhere },
        'policies for other pods: see --namespace, --labels and spec.ports',
      );
    }
  }

  reject(problems: readonly Problem[]): void {
    this.rejected += 1;
    for (const { file, line, column, path, message, advice } of problems) {
      this.#options.log.error(
        {
          event: 'policy-invalid',
          at: `${file}:${line}:${column}`,
          path,
          problem: message,
          advice,
        },
        'a policy file is not in order; its last good version stays in force',
      );
    }
  }
}
