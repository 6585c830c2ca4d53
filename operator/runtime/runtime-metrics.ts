// The names of controller-runtime and client-go, so that dashboards and alerts made for other controllers work here.
import prometheus, { type Registry } from 'prom-client';

/** controller-runtime's own buckets reach 60 s; a queue of ours that waits a minute is an incident. */
const SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60];

export interface QueueMetrics {
  added(queue: string): void;
  retried(queue: string): void;
  depth(queue: string, keys: number): void;
  waited(queue: string, seconds: number): void;
  worked(queue: string, seconds: number): void;
}

export type ReconcileResult = 'success' | 'requeue_after' | 'error';

export interface ControllerMetrics extends QueueMetrics {
  reconciled(controller: string, result: ReconcileResult, seconds: number): void;
  activeWorkers(controller: string, workers: number): void;
  mostWorkers(controller: string, workers: number): void;
}

/** One for all controllers of a process. */
export function openControllerMetrics(registry: Registry): ControllerMetrics {
  return { ...openQueueMetrics(registry), ...openReconcileMetrics(registry) };
}

function openQueueMetrics(registry: Registry): QueueMetrics {
  const common = { labelNames: ['name'], registers: [registry] };
  const depth = new prometheus.Gauge({
    ...common,
    name: 'workqueue_depth',
    help: 'Keys that wait for a worker.',
  });
  const adds = new prometheus.Counter({
    ...common,
    name: 'workqueue_adds_total',
    help: 'Keys that began to wait.',
  });
  const retries = new prometheus.Counter({
    ...common,
    name: 'workqueue_retries_total',
    help: 'Keys put back after a failure.',
  });
  const queued = new prometheus.Histogram({
    ...common,
    name: 'workqueue_queue_duration_seconds',
    help: 'How long keys waited.',
    buckets: SECONDS,
  });
  const worked = new prometheus.Histogram({
    ...common,
    name: 'workqueue_work_duration_seconds',
    help: 'How long work on a key took.',
    buckets: SECONDS,
  });
  return {
    added: (name) => {
      adds.inc({ name });
    },
    retried: (name) => {
      retries.inc({ name });
    },
    depth: (name, keys) => {
      depth.set({ name }, keys);
    },
    waited: (name, seconds) => {
      queued.observe({ name }, seconds);
    },
    worked: (name, seconds) => {
      worked.observe({ name }, seconds);
    },
  };
}

function openReconcileMetrics(registry: Registry): Omit<ControllerMetrics, keyof QueueMetrics> {
  const common = { labelNames: ['controller'], registers: [registry] };
  const total = new prometheus.Counter({
    name: 'controller_runtime_reconcile_total',
    help: 'Reconciliations, by result.',
    labelNames: ['controller', 'result'],
    registers: [registry],
  });
  const errors = new prometheus.Counter({
    ...common,
    name: 'controller_runtime_reconcile_errors_total',
    help: 'Reconciliations that failed.',
  });
  const time = new prometheus.Histogram({
    ...common,
    name: 'controller_runtime_reconcile_time_seconds',
    help: 'How long reconciliations took.',
    buckets: SECONDS,
  });
  const active = new prometheus.Gauge({
    ...common,
    name: 'controller_runtime_active_workers',
    help: 'Reconciliations under way.',
  });
  const most = new prometheus.Gauge({
    ...common,
    name: 'controller_runtime_max_concurrent_reconciles',
    help: 'Reconciliations that may be under way at once.',
  });
  return {
    reconciled: (controller, result, seconds) => {
      total.inc({ controller, result });
      time.observe({ controller }, seconds);
      if (result === 'error') errors.inc({ controller });
    },
    activeWorkers: (controller, workers) => {
      active.set({ controller }, workers);
    },
    mostWorkers: (controller, workers) => {
      most.set({ controller }, workers);
    },
  };
}
