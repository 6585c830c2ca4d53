// The parts of one serving process, opened in order and joined: limiter, gates, policies, data path, numbers. Whoever
// opens it brings the store and the policies, and decides where connections and signals come from.
import { cpuUsage, memoryUsage } from 'node:process';
import type { Bundle } from '../contract/bundle.ts';
import { dumpMetrics, type MetricDump } from './admin/metric.ts';
import { describeRunConfig } from './config.ts';
import { RuleTallies } from './enforcement/rule-tally.ts';
import type { Log } from './log.ts';
import { sidecarMetrics } from './metrics.ts';
import { BundleSwitch } from './policy/bundle-switch.ts';
import { newRuleCounters } from './rules/rule-counters.ts';
import { openGates, Routes } from './routes.ts';
import type { RoutesOptions } from './routes.ts';
import type { RunConfig } from './run-config.ts';
import { Limiter } from './store/limiter.ts';
import type { BreakerTransition } from './store/node-breakers.ts';
import type { Store } from './store/store.ts';

/** What policies are put into. */
export interface PolicyTarget {
  readonly bundles: BundleSwitch;
  readonly limiter: Limiter;
  /** Rules seen to key on the address of a proxy, as `<namespace>/<policy>/<rule>`. */
  readonly proxyKeyed: Set<string>;
}

export interface SidecarParts {
  readonly log: Log;
  /** Where shared levels live. Disposed by whoever opened it. */
  readonly store: Store;
  /** Where levels of `scope: Pod` live; absent = in this process. */
  readonly podStore?: Store;
  /** Puts the first policies into force before it resolves, if there are any, and later ones until it is disposed. */
  readonly openPolicies: (target: PolicyTarget) => Promise<AsyncDisposable>;
  /** False = connections are handed in through `routes`. */
  readonly listens: boolean;
  readonly certificate?: RoutesOptions['certificate'];
}

export interface Sidecar extends AsyncDisposable {
  readonly routes: Routes;
  /** Undefined when ready; else the reason in words. */
  whyNotReady(): string | undefined;
  dumpMetrics(): MetricDump[];
  /** Settings (secrets redacted) and the bundle in force. */
  describe(): { readonly settings: unknown; readonly bundle: Bundle | undefined };
  /** From now on every response closes its connection; the listeners stay open. */
  startDraining(): void;
}

/** Throws LISTEN_FAILED, and what `openPolicies` throws. */
export async function openSidecar(config: RunConfig, parts: SidecarParts): Promise<Sidecar> {
  const { log } = parts;
  await using stack = new AsyncDisposableStack();
  const limiter = stack.use(openLimiter(config, parts));
  const [tallies, rules] = [new RuleTallies(), newRuleCounters()];
  const proxyKeyed = new Set<string>();
  const gates = openGates(config, limiter, (policy, rule) => {
    proxyKeyed.add(`${policy}/${rule}`);
    log.warn(
      { event: 'client-ip-is-proxy', policy, rule },
      "keys on the peer's address, but requests come through a proxy: set spec.clientIP.trustedHops",
    );
  });
  const bundles = new BundleSwitch({ gates, tallies, rules, log });
  stack.use(await parts.openPolicies({ bundles, limiter, proxyKeyed }));
  const routes = stack.use(await Routes.open(config, gates, parts));
  const [first] = gates;
  if (first === undefined) throw new RangeError('a sidecar without a gate');
  const metrics = sidecarMetrics({
    ...{ gate: first.gate, limiter, tallies, rules, proxy: routes.counters },
    configOrigin: () => bundles.origin,
    configAgeSeconds: () => bundles.ageSeconds(),
    configRejected: () => bundles.rejected,
    process: readProcess,
  });
  const open = stack.move();
  let isDraining = false;
  return {
    routes,
    whyNotReady: () => (isDraining ? 'draining' : bundles.whyNotReady()),
    dumpMetrics: () => dumpMetrics(metrics),
    describe: () => ({ settings: describeRunConfig(config), bundle: bundles.bundle }),
    startDraining() {
      if (!isDraining) log.info({ event: 'draining' }, 'draining: responses close connections');
      isDraining = true;
      routes.startDraining();
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

function openLimiter(config: RunConfig, { log, store, podStore }: SidecarParts): Limiter {
  return new Limiter({
    store,
    ...(podStore === undefined ? {} : { podStore }),
    deadlineMs: config.deadline,
    lease: config.lease,
    onTransition: (transition) => {
      reportTransition(log, transition);
    },
  });
}

function reportTransition(log: Log, { node, from, to, cause, detail }: BreakerTransition): void {
  const fields = { event: 'breaker', node, from, to, cause, detail };
  if (to === 'closed') log.info(fields, 'the store answers again');
  else if (from === 'closed') log.error(fields, 'the store does not answer; failure modes decide');
  else log.debug(fields, 'the store is being probed');
}

function readProcess(): { readonly cpuSeconds: number; readonly residentBytes: number } {
  const { user, system } = cpuUsage();
  return { cpuSeconds: (user + system) / 1e6, residentBytes: memoryUsage.rss() };
}
