// One operator process, from its configuration to its end.
import { once } from 'node:events';
import { WeirError } from '../contract/errors.ts';
import type { Log } from './log.ts';
import { openOperator } from './operator.ts';
import type { OperatorConfig } from './operator-settings.ts';

export interface RunOperatorDependencies {
  readonly log: Log;
  /** Of the product. */
  readonly version: string;
  /** Prints the one line on stdout that says the operator serves. */
  readonly announce: (line: string) => void;
}

/**
 * Serves until `signal` aborts, then stops within `config.grace` and returns.
 * Throws LEADERSHIP_LOST when it led and lost the Lease: it has to start clean. Throws as `openOperator` does.
 */
export async function runOperator(
  config: OperatorConfig,
  { log, version, announce }: RunOperatorDependencies,
  signal: AbortSignal,
): Promise<void> {
  const lost = new AbortController();
  const end = AbortSignal.any([signal, lost.signal]);
  const onLost = (): void => {
    lost.abort();
  };
  try {
    await using operator = await openOperator({ config, log, version, onLost }, end);
    await operator.synced(end);
    announce(JSON.stringify({ event: 'ready', ...operator.addresses }));
    if (!end.aborted) await once(end, 'abort');
    if (lost.signal.aborted) throw new WeirError('LEADERSHIP_LOST');
    await operator.stop();
  } catch (error) {
    if (!signal.aborted || error instanceof WeirError) throw error;
  }
  log.info({ event: 'stopped' }, 'stopped');
}
