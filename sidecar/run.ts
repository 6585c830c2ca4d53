// One sidecar process, from its configuration to its end: opens everything in order, says when it is ready, serves
// until it is told to stop, and closes in reverse.
import { once } from 'node:events';
import { cpuUsage, memoryUsage } from 'node:process';
import { dumpMetrics, type Metric, renderMetrics } from './admin/metric.ts';
import { openAdmin } from './admin/server.ts';
import { describeRunConfig } from './config.ts';
import { openConfiguredStore } from './configured-store.ts';
import { EnforcingGate } from './enforcement/enforcing-gate.ts';
import { RuleTallies } from './enforcement/rule-tally.ts';
import type { Log } from './log.ts';
import { sidecarMetrics } from './metrics.ts';
import { BundleSwitch } from './policy/bundle-switch.ts';
import { openFileSource } from './policy/file-source.ts';
import type { Surroundings } from './policy/policy-set.ts';
import type { ProxyOptions } from './proxy/proxy-options.ts';
import { openProxy, type Proxy } from './proxy/proxy.ts';
import { Address, Networks, readAddress } from './rules/address.ts';
import { newRuleCounters } from './rules/rule-counters.ts';
import type { RunConfig } from './run-settings.ts';
import type { HostPort } from './setting.ts';
import { systemClock } from './store/clock.ts';
import { Limiter } from './store/limiter.ts';

export interface RunDependencies {
  readonly log: Log;
  /** Prints the one line on stdout that says the sidecar serves. */
  readonly announce: (line: string) => void;
}

/** What is left of the grace period for closing after the last request. */
const CLOSING_MS = 1_000;

/**
 * Serves until `signal` aborts, then drains within `config.grace` and returns.
 * Throws WeirError when it cannot start: POLICY_INVALID, POLICY_UNREADABLE, LISTEN_FAILED, STORE_SETTINGS_INVALID.
 */
export async function runSidecar(
  config: RunConfig,
  { log, announce }: RunDependencies,
  signal: AbortSignal,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const store = stack.use(await openConfiguredStore(config, log));
  const limiter = stack.use(
    new Limiter({
      store,
      deadlineMs: config.deadline,
      onTransition: ({ node, from, to, cause, detail }) => {
        const fields = { event: 'breaker', node, from, to, cause, detail };
        if (to === 'closed') log.info(fields, 'the store answers again');
        else if (from === 'closed')
          log.error(fields, 'the store does not answer; failure modes decide');
        else log.debug(fields, 'the store is being probed');
      },
    }),
  );
  const tallies = new RuleTallies();
  const rules = newRuleCounters();
  const gate = openGate(config, limiter, log);
  const bundles = new BundleSwitch({ gate, tallies, rules, log, origin: 'file' });
  stack.use(
    await openFileSource({
      paths: config.policy,
      surroundings: surroundingsOf(config),
      onBundle: (update) => bundles.accept(update),
      onProblems: (problems) => {
        bundles.reject(problems);
      },
    }),
  );
  const proxy = stack.use(await openDataPath(config, gate, log));
  let isDraining = false;
  const startDraining = (): void => {
    if (!isDraining) log.info({ event: 'draining' }, 'draining: responses close their connections');
    isDraining = true;
    proxy.startDraining();
  };
  const metrics = sidecarMetrics({
    ...{ gate, limiter, tallies, rules, proxy: proxy.counters },
    configOrigin: () => bundles.origin,
    configAgeSeconds: () => bundles.ageSeconds(),
    configRejected: () => bundles.rejected,
    process: readProcess,
  });
  const admin = stack.use(
    await openAdmin(config.admin, {
      whyNotReady: () => (isDraining ? 'draining' : bundles.whyNotReady()),
      metrics: () => render(metrics),
      describe: () => ({ settings: describeRunConfig(config), bundle: bundles.bundle }),
      startDraining,
    }),
  );
  announceReady({ announce, listen: proxy.address, admin: admin.address });
  if (!signal.aborted) await once(signal, 'abort');
  startDraining();
  await proxy.stop(Math.max(0, config.grace - CLOSING_MS));
  log.info({ event: 'stopped' }, 'stopped');
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

function openDataPath(config: RunConfig, gate: EnforcingGate, log: Log): Promise<Proxy> {
  const options: ProxyOptions = {
    listen: { ...config.listen, ipv4Fallback: true },
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
    },
    maxConnections: config.maxConnections,
    ...(config.via === undefined ? {} : { via: config.via }),
  };
  return openProxy(options, gate, {
    now: () => performance.now(),
    wallClock: () => Date.now(),
    onFault: (error) => {
      log.error({ event: 'fault', err: error }, 'a bug was contained in one connection');
    },
  });
}

function readProcess(): { readonly cpuSeconds: number; readonly residentBytes: number } {
  const { user, system } = cpuUsage();
  return { cpuSeconds: (user + system) / 1e6, residentBytes: memoryUsage.rss() };
}

function render(metrics: readonly Metric[]): Promise<string> {
  return renderMetrics([dumpMetrics(metrics)]);
}

interface Ready {
  readonly announce: (line: string) => void;
  readonly listen: HostPort;
  readonly admin: HostPort;
}

function announceReady({ announce, listen, admin }: Ready): void {
  announce(
    JSON.stringify({ event: 'ready', listen: formatAddress(listen), admin: formatAddress(admin) }),
  );
}

function formatAddress({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
