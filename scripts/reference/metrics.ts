import type { MetricDefinition } from '../../sidecar/admin/metric.ts';
import { AppHealth } from '../../sidecar/app-health/app-health.ts';
import { EnforcingGate } from '../../sidecar/enforcement/enforcing-gate.ts';
import { RuleTallies } from '../../sidecar/enforcement/rule-tally.ts';
import { sidecarMetrics } from '../../sidecar/metrics.ts';
import { ProxyCounters } from '../../sidecar/proxy/proxy-counters.ts';
import { newRuleCounters } from '../../sidecar/rules/rule-counters.ts';
import { systemClock } from '../../sidecar/store/clock.ts';
import { Limiter } from '../../sidecar/store/limiter.ts';
import { MemoryStore } from '../../sidecar/store/memory-store.ts';
import { GENERATED_NOTE, markdownTable } from './table.ts';

export function writeMetrics(): string {
  const rows = metricDefinitions().map(({ name, kind, labels, help }: MetricDefinition) => [
    `\`${name}\``,
    kind,
    labels.map((label) => `\`${label}\``).join(', '),
    help,
  ]);
  return `${GENERATED_NOTE}

# Metrics

Served by the admin listener at \`/metrics\` in Prometheus' text format. Labels carry names of policies, rules and containers, and words
of Weir; never a key, a path or an address. With several workers the values are added up, except ages and states, of
which the largest is shown.

${markdownTable(['name', 'kind', 'labels', 'what it says'], rows)}

Worth an alert: \`weir_breaker_state\` above 0 for minutes, \`weir_requests_total{verdict="unavailable"}\` growing,
\`weir_config_rejected_total\` growing, \`weir_limit_newer_total\` growing for long after a roll-out.
`;
}

/** Of a sidecar that has counted nothing. */
function metricDefinitions(): readonly MetricDefinition[] {
  const limiter = new Limiter({ store: new MemoryStore(systemClock) });
  const onForwarded = (): void => undefined;
  const metrics = sidecarMetrics({
    limiter,
    gate: new EnforcingGate({ limiter, nowUs: () => 0, mayDebug: undefined, onForwarded }),
    tallies: new RuleTallies(),
    proxy: new ProxyCounters(),
    rules: newRuleCounters(),
    configOrigin: () => 'none',
    configAgeSeconds: () => 0,
    configRejected: () => 0,
    process: () => ({ cpuSeconds: 0, residentBytes: 0 }),
  });
  return [...metrics, new AppHealth([]).metric].map(({ definition }) => definition);
}
