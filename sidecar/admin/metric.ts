// Metrics are plain numbers where they are counted. A definition says how they are called and read; prom-client turns
// them into text, and it is loaded at the first scrape only: a sidecar nobody scrapes does not pay for it.
import type { Histogram } from '../counters/histogram.ts';

export interface MetricDefinition {
  readonly name: string;
  readonly help: string;
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  /** How the values of several workers become one. */
  readonly across: 'sum' | 'max' | 'min';
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** One metric with the function that reads its present values. */
export interface Metric {
  readonly definition: MetricDefinition;
  readonly read: () => readonly Sample[] | Histogram;
}

/** What a worker hands its parent: prom-client's own JSON form, so that its aggregation applies. */
export interface MetricDump {
  readonly name: string;
  readonly help: string;
  readonly type: MetricDefinition['kind'];
  readonly aggregator: MetricDefinition['across'];
  readonly values: readonly DumpedValue[];
}

interface DumpedValue {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

export function dumpMetrics(metrics: readonly Metric[]): MetricDump[] {
  return metrics.map(({ definition, read }) => {
    const now = read();
    return {
      name: definition.name,
      help: definition.help,
      type: definition.kind,
      aggregator: definition.across,
      values: isSamples(now) ? now : dumpHistogram(definition.name, now),
    };
  });
}

function isSamples(now: readonly Sample[] | Histogram): now is readonly Sample[] {
  return Array.isArray(now);
}

/** Prometheus buckets are cumulative and end with +Inf. */
function dumpHistogram(name: string, histogram: Histogram): DumpedValue[] {
  let all = 0;
  const values: DumpedValue[] = histogram.buckets.map(({ upTo, count }) => {
    all += count;
    const le = upTo === Infinity ? '+Inf' : upTo;
    return { metricName: `${name}_bucket`, labels: { le }, value: all };
  });
  values.push({ metricName: `${name}_sum`, labels: {}, value: histogram.sumSeconds });
  values.push({ metricName: `${name}_count`, labels: {}, value: all });
  return values;
}

/** Renders the dumps of one or several workers in Prometheus' text format. */
export async function renderMetrics(dumps: readonly (readonly MetricDump[])[]): Promise<string> {
  // A CommonJS package: its names are found under `default` both in sources and in the bundle.
  const { default: prometheus } = await import('prom-client');
  const registry = prometheus.AggregatorRegistry.aggregate(dumps.map((dump) => [...dump]));
  return registry.metrics();
}
