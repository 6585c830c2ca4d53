// A named loop from keys to reconciliations, observed as controller-runtime's are.
import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.ts';
import { namesOf, type Log } from '../log.ts';
import type { ControllerMetrics } from './runtime-metrics.ts';
import { TerminalError, WorkQueue, type Again } from './work-queue.ts';

export interface ControllerOptions {
  readonly name: string;
  /**
   * Brings the object of that key (see `keyOf`) to what it should be; reads it anew each time. Resolves with
   * `requeueAfterMs` to be asked again then. What it throws is tried again, a TerminalError is not.
   */
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<Again | undefined>;
  /** Absent: 4. */
  readonly concurrency?: number;
}

export interface ControllerContext {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: ControllerMetrics;
}

/** Call `start()` when the caches it reads are synced; `add(key)` at any time; dispose to stop. */
export function openController(
  { clock, log, metrics }: ControllerContext,
  options: ControllerOptions,
): WorkQueue {
  const { name, reconcile, concurrency = 4 } = options;
  let active = 0;
  metrics.mostWorkers(name, concurrency);

  const observed = async (key: string, signal: AbortSignal): Promise<Again> => {
    const startMs = clock.nowMs();
    const seconds = (): number => (clock.nowMs() - startMs) / 1000;
    metrics.activeWorkers(name, ++active);
    try {
      const again = (await reconcile(key, signal)) ?? {};
      const result = again.requeueAfterMs === undefined ? 'success' : 'requeue_after';
      metrics.reconciled(name, result, seconds());
      return again;
    } catch (error) {
      if (!signal.aborted) {
        metrics.reconciled(name, 'error', seconds());
        report(log, { controller: name, key, error });
      }
      throw error;
    } finally {
      metrics.activeWorkers(name, --active);
    }
  };

  return new WorkQueue({ name, work: observed, concurrency, clock, metrics });
}

function report(
  log: Log,
  { controller, key, error }: { controller: string; key: string; error: unknown },
): void {
  const willRetry = !(error instanceof TerminalError);
  const facts = { controller, ...namesOf(key), reconcileID: randomUUID(), willRetry, err: error };
  log.error(facts, 'reconcile failed');
}
