// Puts bundles into force, one after the other and each as a whole, and knows which one is. A sidecar with several
// routes enforces on each what is meant for its port.
import type { Bundle, CompiledPolicy } from '../../contract/bundle.ts';
import { formatPlace, type Problem } from '../../crds/problem.ts';
import { ArmedBundle } from '../enforcement/armed-bundle.ts';
import type { EnforcingGate } from '../enforcement/enforcing-gate.ts';
import type { RuleTallies } from '../enforcement/rule-tally.ts';
import type { Log } from '../log.ts';
import type { ConfigOrigin } from '../metrics.ts';
import type { RuleCounters } from '../rules/rule-counters.ts';
import { compileRules, type RuleSet } from '../rules/rule-set.ts';

/** A gate and the application's port behind it. */
export interface GuardedPort {
  readonly gate: EnforcingGate;
  readonly port: number;
}

export interface BundleSwitchOptions {
  readonly gates: readonly GuardedPort[];
  readonly tallies: RuleTallies;
  readonly rules: RuleCounters;
  readonly log: Log;
}

/** What one or more gates enforce together. */
interface Share {
  readonly gates: readonly EnforcingGate[];
  readonly bundle: Bundle;
  readonly rules: RuleSet;
}

export class BundleSwitch {
  /** Updates that were refused at least in part. */
  rejected = 0;
  readonly #options: BundleSwitchOptions;
  #bundle: Bundle | undefined = undefined;
  #origin: ConfigOrigin = 'none';
  #shares: readonly Share[] = [];
  #since = performance.now();

  constructor(options: BundleSwitchOptions) {
    this.#options = options;
  }

  /** As it was accepted, for all ports. */
  get bundle(): Bundle | undefined {
    return this.#bundle;
  }

  get origin(): ConfigOrigin {
    return this.#origin;
  }

  whyNotReady(): string | undefined {
    return this.#bundle === undefined ? 'no policies yet' : undefined;
  }

  ageSeconds(): number {
    return (performance.now() - this.#since) / 1_000;
  }

  /**
   * In force when the promise settles: from the next request on.
   * Throws POLICY_INVALID when an expression or key set cannot be used: what was in force stays.
   */
  async accept(bundle: Bundle, origin: ConfigOrigin): Promise<void> {
    const { rules, log } = this.#options;
    const shares: Share[] = [];
    for (const { gates, policies } of this.#split(bundle)) {
      const part = { ...bundle, policies };
      const compiled = await compileRules(part, { nowMs: Date.now, counters: rules });
      shares.push({ gates, bundle: part, rules: compiled });
    }
    this.#shares = shares;
    this.#bundle = bundle;
    this.rearm();
    this.confirm(origin);
    const policies = bundle.policies.map((one) => `${one.namespace}/${one.name}`);
    const count = shares.reduce((sum, one) => sum + one.rules.entries.length, 0);
    log.info(
      { event: 'policies', version: bundle.version, origin, policies, rules: count },
      policies.length === 0 ? 'no policy applies: every request is forwarded' : 'policies in force',
    );
  }

  /** What is in force is what `origin` has. */
  confirm(origin: ConfigOrigin): void {
    this.#origin = origin;
    this.#since = performance.now();
  }

  /** Buckets are named anew: the store behind the limiter is another one. */
  rearm(): void {
    for (const { gates, bundle, rules } of this.#shares) {
      const armed = new ArmedBundle(bundle, rules, this.#options.tallies);
      for (const gate of gates) gate.swap(armed);
    }
  }

  reject(problems: readonly Problem[]): void {
    this.rejected += 1;
    for (const problem of problems) {
      const { path, message, advice } = problem;
      this.#options.log.error(
        {
          event: 'policy-invalid',
          ...{ at: formatPlace(problem), path, problem: message, advice },
        },
        'a policy file is not in order; its last good version stays in force',
      );
    }
  }

  /** Gates that enforce the same policies share one armed bundle, and so its buckets. */
  #split({ policies }: Bundle): readonly Split[] {
    const splits = new Map<string, Split>();
    for (const { gate, port } of this.#options.gates) {
      const meant = policies.filter(({ ports }) => ports?.includes(port) ?? true);
      const key = meant.map(({ uid }) => uid).join(' ');
      const known = splits.get(key);
      splits.set(key, { gates: [...(known?.gates ?? []), gate], policies: meant });
    }
    return [...splits.values()];
  }
}

interface Split {
  readonly gates: readonly EnforcingGate[];
  readonly policies: readonly CompiledPolicy[];
}
