// One sidecar process, from its configuration to its end: opens everything, says when it is ready, serves until it is
// told to stop, and closes in reverse.
import { once } from 'node:events';
import { dumpMetrics, renderMetrics } from './admin/metric.ts';
import { openAdmin } from './admin/server.ts';
import { AppHealth } from './app-health/app-health.ts';
import { openConfiguredStore } from './configured-store.ts';
import type { Log } from './log.ts';
import { filePolicies } from './policy/file-policies.ts';
import type { RunConfig } from './run-config.ts';
import { formatHostPort, type HostPort } from '../contract/setting.ts';
import { settleHeap } from './settled-heap.ts';
import { openSidecar, type SidecarParts } from './sidecar.ts';

export interface RunDependencies {
  readonly log: Log;
  /** Prints the one line on stdout that says the sidecar serves. */
  readonly announce: (line: string) => void;
  /** Of this program; told to the operator. */
  readonly version: string;
}

/** What is left of the grace period for closing after the last request. */
export const CLOSING_MS = 1_000;

/**
 * Serves until `signal` aborts, then drains within `config.grace` and returns.
 * Throws WeirError when it cannot start: POLICY_INVALID, POLICY_UNREADABLE, LISTEN_FAILED, STORE_SETTINGS_INVALID.
 */
export async function runSidecar(
  config: RunConfig,
  dependencies: RunDependencies,
  signal: AbortSignal,
): Promise<void> {
  const { log, announce } = dependencies;
  await using stack = new AsyncDisposableStack();
  const health = await AppHealth.open(config.appProbes);
  const source =
    config.operator === undefined
      ? await fromFiles(config, log)
      : await fromOperator(config, dependencies);
  stack.use(source.store);
  const sidecar = stack.use(await openSidecar(config, { log, ...source, listens: true }));
  const admin = stack.use(
    await openAdmin(config.admin, {
      whyNotReady: () => sidecar.whyNotReady(),
      metrics: () => renderMetrics([sidecar.dumpMetrics(), dumpMetrics([health.metric])]),
      describe: () => sidecar.describe(),
      startDraining: () => {
        sidecar.startDraining();
      },
      appHealth: (path, asker) => health.answer(path, asker),
    }),
  );
  settleHeap();
  announce(describeReady(sidecar.routes.addresses, admin.address));
  if (!signal.aborted) await once(signal, 'abort');
  sidecar.startDraining();
  await sidecar.routes.stop(Math.max(0, config.grace - CLOSING_MS));
  log.info({ event: 'stopped' }, 'stopped');
}

type Source = Pick<SidecarParts, 'store' | 'openPolicies'>;

async function fromFiles(config: RunConfig, log: Log): Promise<Source> {
  const store = await openConfiguredStore(config, log);
  return { store, openPolicies: filePolicies(config, { log }) };
}

/** What only a sidecar with an operator needs is loaded here. */
async function fromOperator(config: RunConfig, { log, version }: RunDependencies): Promise<Source> {
  const [{ openOperatorSource }, { LocalTarget }, { AbsentStore }] = await Promise.all([
    import('./policy/operator-source.ts'),
    import('./policy/local-target.ts'),
    import('./store/absent-store.ts'),
  ]);
  const absent = new AbsentStore();
  return {
    store: absent,
    async openPolicies(policyTarget) {
      await using stack = new AsyncDisposableStack();
      const target = stack.use(new LocalTarget(policyTarget, config, { log, absent }));
      stack.use(await openOperatorSource({ config, target, version, log }));
      return stack.move();
    },
  };
}

/** The line on stdout: where requests and admin questions are taken, port 0 resolved. `listens` only when several. */
export function describeReady(listens: readonly HostPort[], admin: HostPort): string {
  const [listen = '', ...others] = listens.map(formatHostPort);
  return JSON.stringify({
    event: 'ready',
    listen,
    ...(others.length === 0 ? {} : { listens: [listen, ...others] }),
    admin: formatHostPort(admin),
  });
}
