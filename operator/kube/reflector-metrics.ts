import prometheus, { type Registry } from 'prom-client';
import type { Cause } from './next-step.ts';

export interface ReflectorMetrics {
  listed(resource: string): void;
  watched(resource: string): void;
  restarted(resource: string, cause: Cause): void;
  handlerFailed(resource: string): void;
  /** `size` is read at each scrape. */
  count(resource: string, size: () => number): void;
}

/** One for all reflectors of a process. */
export function openReflectorMetrics(registry: Registry): ReflectorMetrics {
  const registers = [registry];
  const counter = (name: string, help: string, labelNames: string[]): CounterOf =>
    new prometheus.Counter({ name, help, labelNames, registers });
  const lists = counter('weir_reflector_lists_total', 'Lists begun.', ['resource']);
  const watches = counter('weir_reflector_watches_total', 'Watches begun.', ['resource']);
  const restarts = counter(
    'weir_reflector_restarts_total',
    'Lists and watches that ended, by cause; `ended` is the usual rotation.',
    ['resource', 'cause'],
  );
  const failures = counter(
    'weir_reflector_handler_failures_total',
    'Changes that a handler did not take. Any is a bug.',
    ['resource'],
  );
  const sizes = new Map<string, () => number>();
  const items = new prometheus.Gauge({
    name: 'weir_reflector_items',
    help: 'Objects held.',
    labelNames: ['resource'],
    registers,
    collect() {
      for (const [resource, size] of sizes) items.set({ resource }, size());
    },
  });
  return {
    listed: (resource) => {
      lists.inc({ resource });
    },
    watched: (resource) => {
      watches.inc({ resource });
    },
    restarted: (resource, cause) => {
      restarts.inc({ resource, cause });
    },
    handlerFailed: (resource) => {
      failures.inc({ resource });
    },
    count: (resource, size) => {
      sizes.set(resource, size);
    },
  };
}

interface CounterOf {
  inc(labels: Readonly<Record<string, string>>): void;
}
