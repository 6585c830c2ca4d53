// Puts a pushed configuration into force in this process: the store first, then the rules.
import { BUNDLE_FORMAT, type Bundle, type CompiledPolicy } from '../../contract/bundle.ts';
import { WeirError } from '../../contract/errors.ts';
import { MESSAGE_MAX, type PolicyRefusal } from '../../contract/stream.ts';
import type { Log } from '../log.ts';
import { compileRules } from '../rules/rule-set.ts';
import type { RunConfig } from '../run-config.ts';
import type { PolicyTarget } from '../sidecar.ts';
import type { Store } from '../store/store.ts';
import type { ConfigTarget, PushedConfig, SidecarReport } from './pushed-config.ts';
import { StoreKeeper } from './store-keeper.ts';

export class LocalTarget implements ConfigTarget, AsyncDisposable {
  readonly #target: PolicyTarget;
  readonly #stores: StoreKeeper;
  /** Worker processes of this pod: each stands in with its part while the store is away. */
  readonly #workers: number;

  constructor(
    target: PolicyTarget,
    config: RunConfig,
    { log, absent }: { readonly log: Log; readonly absent: Store },
  ) {
    this.#target = target;
    this.#workers = config.workers;
    this.#stores = new StoreKeeper({
      ...{ limiter: target.limiter, deadlineMs: config.deadline, log, absent },
      onReplaced: () => {
        target.bundles.rearm();
      },
    });
  }

  async apply({ bundle, settings, origin }: PushedConfig): Promise<readonly PolicyRefusal[]> {
    const { bundles } = this.#target;
    // The same content under the same name: levels known here stay known.
    if (bundles.bundle?.version === bundle.version) {
      await this.#stores.use(settings);
      bundles.confirm(origin);
      return [];
    }
    const shared = this.#shareAmongWorkers(bundle);
    await this.#stores.use(settings);
    try {
      await bundles.accept(shared, origin);
    } catch (fault) {
      bundles.rejected += 1;
      return await findFaults(shared.policies, fault);
    }
    this.#target.proxyKeyed.clear();
    return [];
  }

  report(): SidecarReport {
    return { ...this.#stores.report(), clientIpIsProxy: [...this.#target.proxyKeyed].toSorted() };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stores[Symbol.asyncDispose]();
  }

  #shareAmongWorkers(bundle: Bundle): Bundle {
    if (this.#workers === 1) return bundle;
    const policies = bundle.policies.map((policy) => ({
      ...policy,
      replicas: policy.replicas * this.#workers,
    }));
    return { ...bundle, policies };
  }
}

/** Policies that do not compile here: the operator's compiler is of another version, or this process lacks something. */
async function findFaults(
  policies: readonly CompiledPolicy[],
  together: unknown,
): Promise<readonly PolicyRefusal[]> {
  const refusals: PolicyRefusal[] = [];
  for (const policy of policies) {
    await compileRules(
      { format: BUNDLE_FORMAT, version: '', policies: [policy] },
      { nowMs: Date.now },
    ).catch((fault: unknown) => refusals.push(refusalOf(policy, fault)));
  }
  // Each compiles alone and all together do not: that is none of them in particular.
  return refusals.length > 0 ? refusals : policies.map((policy) => refusalOf(policy, together));
}

function refusalOf({ uid, generation }: CompiledPolicy, fault: unknown): PolicyRefusal {
  const known = fault instanceof WeirError ? fault.details : {};
  const { expression, reason } = known;
  const words = [expression, reason].filter((one) => one !== undefined).map(String);
  const message = words.length > 0 ? words.join(': ') : String(fault);
  return {
    ...{ uid, generation, path: 'spec', message: message.slice(0, MESSAGE_MAX) },
    code: fault instanceof WeirError ? 'Invalid' : 'Internal',
  };
}
