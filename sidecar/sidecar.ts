// The parts of one serving process, opened in order and joined: limiter, gate, policies, data path, numbers.
// Whoever opens it brings the store and decides where connections and signals come from.
import { cpuUsage, memoryUsage } from 'node:process';
import type { Bundle } from '../contract/bundle.ts';
import { dumpMetrics, type MetricDump } from './admin/metric.ts';
import { describeRunConfig } from './config.ts';
import { EnforcingGate } from './enforcement/enforcing-gate.ts';
import { RuleTallies } from './enforcement/rule-tally.ts';
import type { Log } from './log.ts';
import { sidecarMetrics } from './metrics.ts';
import { BundleSwitch } from './policy/bundle-switch.ts';
import { openFileSource } from './policy/file-source.ts';
import type { Surroundings } from './policy/policy-set.ts';
import { type AccessLine, AccessLog } from './proxy/access-log.ts';
import type { ProxyOptions } from './proxy/proxy-options.ts';
import { openProxy, type Proxy, type ProxyDependencies } from './proxy/proxy.ts';
import { Address, Networks, readAddress } from './rules/address.ts';
import { newRuleCounters } from './rules/rule-counters.ts';
import type { RunConfig } from './run-settings.ts';
import type { HostPort } from './setting.ts';
import { systemClock } from './store/clock.ts';
import { Limiter } from './store/limiter.ts';
import type { BreakerTransition } from './store/node-breakers.ts';
import type { Store } from './store/store.ts';

export interface SidecarParts {
  readonly log: Log;
  /** Where shared levels live. Disposed by whoever opened it. */
  readonly store: Store;
  /** Where levels of `scope: Pod` live; absent = in this process. */
  readonly podStore?: Store;
  /** What was in force before this process started; see `FileSourceOptions.inherited`. */
  readonly inherited?: Bundle | undefined;
  /** Told of every bundle that is in force from now on. */
  readonly onInForce?: (bundle: Bundle) => void;
  /** Undefined = connections are handed in through `proxy.adopt`. */
  readonly listen: HostPort | undefined;
}

export interface Sidecar extends AsyncDisposable {
  readonly proxy: Proxy;
  /** Undefined when ready; else the reason in words. */
  whyNotReady(): string | undefined;
  dumpMetrics(): MetricDump[];
  /** Settings (secrets redacted) and the bundle in force. */
  describe(): unknown;
  /** From now on every response closes its connection; the listener stays open. */
  startDraining(): void;
}

/** Throws WeirError when it cannot serve: POLICY_INVALID, POLICY_UNREADABLE, LISTEN_FAILED. */
export async function openSidecar(config: RunConfig, parts: SidecarParts): Promise<Sidecar> {
  const { log, store, podStore, listen } = parts;
  await using stack = new AsyncDisposableStack();
  const limiter = stack.use(
    new Limiter({
      store,
      ...(podStore === undefined ? {} : { podStore }),
      deadlineMs: config.deadline,
      lease: config.lease,
      onTransition: (transition) => {
        reportTransition(log, transition);
      },
    }),
  );
  const [tallies, rules] = [new RuleTallies(), newRuleCounters()];
  const gate = openGate(config, limiter, log);
  const bundles = new BundleSwitch({ gate, tallies, rules, log, origin: 'file' });
  stack.use(
    await openFileSource({
      paths: config.policy,
      surroundings: surroundingsOf(config),
      inherited: parts.inherited,
      onBundle: async (update) => {
        await bundles.accept(update);
        parts.onInForce?.(update.bundle);
      },
      onProblems: (problems) => {
        bundles.reject(problems);
      },
    }),
  );
  const proxy = stack.use(
    await openProxy(proxyOptions(config, listen), gate, proxyDependencies(config, log)),
  );
  const metrics = sidecarMetrics({
    ...{ gate, limiter, tallies, rules, proxy: proxy.counters },
    configOrigin: () => bundles.origin,
    configAgeSeconds: () => bundles.ageSeconds(),
    configRejected: () => bundles.rejected,
    process: readProcess,
  });
  const open = stack.move();
  let isDraining = false;
  return {
    proxy,
    whyNotReady: () => (isDraining ? 'draining' : bundles.whyNotReady()),
    dumpMetrics: () => dumpMetrics(metrics),
    describe: () => ({ settings: describeRunConfig(config), bundle: bundles.bundle }),
    startDraining() {
      if (!isDraining) log.info({ event: 'draining' }, 'draining: responses close connections');
      isDraining = true;
      proxy.startDraining();
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

function reportTransition(log: Log, { node, from, to, cause, detail }: BreakerTransition): void {
  const fields = { event: 'breaker', node, from, to, cause, detail };
  if (to === 'closed') log.info(fields, 'the store answers again');
  else if (from === 'closed') log.error(fields, 'the store does not answer; failure modes decide');
  else log.debug(fields, 'the store is being probed');
}

function openGate(config: RunConfig, limiter: Limiter, log: Log): EnforcingGate {
  const networks = config.debugFrom.length === 0 ? undefined : new Networks(config.debugFrom);
  const address = new Address();
  return new EnforcingGate({
    limiter,
    nowUs: () => systemClock.nowUs(),
    mayDebug:
      networks === undefined
        ? undefined
        : (peer) => readAddress(peer, address) && networks.has(address),
    onForwarded: (policy, rule) => {
      log.warn(
        { event: 'client-ip-is-proxy', policy, rule },
        "keys on the peer's address, but requests come through a proxy: set spec.clientIP.trustedHops",
      );
    },
  });
}

function surroundingsOf(config: RunConfig): Surroundings {
  const { namespace, labels, upstream, workload, replicas } = config;
  return {
    namespace,
    labels: labels.length === 0 ? undefined : Object.fromEntries(labels),
    port: upstream.port,
    workload: workload === undefined ? undefined : ownerName(workload),
    replicas,
  };
}

/** `Deployment/api` → `deployment.api`, as keys name an owner. */
function ownerName(workload: string): string {
  const slash = workload.indexOf('/');
  return `${workload.slice(0, slash).toLowerCase()}.${workload.slice(slash + 1)}`;
}

function proxyOptions(config: RunConfig, listen: HostPort | undefined): ProxyOptions {
  return {
    ...(listen === undefined ? {} : { listen: { ...listen, ipv4Fallback: true } }),
    upstream: config.upstream,
    limits: {
      maxHeadBytes: config.maxHeaderBytes,
      maxFieldLines: config.maxHeaders,
      maxTargetBytes: config.maxUrlBytes,
    },
    timeouts: {
      headMs: config.headerTimeout,
      idleMs: config.idleTimeout,
      connectMs: config.connectTimeout,
      responseMs: config.upstreamTimeout,
      clientStallMs: config.bodyTimeout,
      upstreamStallMs: config.streamTimeout,
      tunnelIdleMs: config.tunnelTimeout,
      upstreamIdleMs: config.upstreamIdleTimeout,
    },
    maxConnections: config.maxConnections,
    ...(config.via === undefined ? {} : { via: config.via }),
  };
}

function proxyDependencies(config: RunConfig, log: Log): ProxyDependencies {
  const share = config.accessLog;
  const write = (line: AccessLine): void => {
    log.info({ event: 'access', ...line }, 'access');
  };
  return {
    now: () => performance.now(),
    wallClock: () => Date.now(),
    ...(share === 0 ? {} : { accessLog: new AccessLog({ share, random: Math.random, write }) }),
    onFault: (error) => {
      log.error({ event: 'fault', err: error }, 'a bug was contained in one connection');
    },
  };
}

function readProcess(): { readonly cpuSeconds: number; readonly residentBytes: number } {
  const { user, system } = cpuUsage();
  return { cpuSeconds: (user + system) / 1e6, residentBytes: memoryUsage.rss() };
}
