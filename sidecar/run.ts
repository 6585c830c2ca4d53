// One sidecar process, from its configuration to its end: opens everything, says when it is ready, serves until it is
// told to stop, and closes in reverse.
import { once } from 'node:events';
import { renderMetrics } from './admin/metric.ts';
import { openAdmin } from './admin/server.ts';
import { openConfiguredStore } from './configured-store.ts';
import type { Log } from './log.ts';
import type { RunConfig } from './run-settings.ts';
import type { HostPort } from './setting.ts';
import { openSidecar } from './sidecar.ts';

export interface RunDependencies {
  readonly log: Log;
  /** Prints the one line on stdout that says the sidecar serves. */
  readonly announce: (line: string) => void;
}

/** What is left of the grace period for closing after the last request. */
export const CLOSING_MS = 1_000;

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
  const sidecar = stack.use(await openSidecar(config, { log, store, listen: config.listen }));
  const admin = stack.use(
    await openAdmin(config.admin, {
      whyNotReady: () => sidecar.whyNotReady(),
      metrics: () => renderMetrics([sidecar.dumpMetrics()]),
      describe: () => sidecar.describe(),
      startDraining: () => {
        sidecar.startDraining();
      },
    }),
  );
  announce(describeReady(sidecar.proxy.address, admin.address));
  if (!signal.aborted) await once(signal, 'abort');
  sidecar.startDraining();
  await sidecar.proxy.stop(Math.max(0, config.grace - CLOSING_MS));
  log.info({ event: 'stopped' }, 'stopped');
}

/** The line on stdout: where requests and admin questions are taken, port 0 resolved. */
export function describeReady(listen: HostPort, admin: HostPort): string {
  return JSON.stringify({
    event: 'ready',
    listen: formatAddress(listen),
    admin: formatAddress(admin),
  });
}

function formatAddress({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
