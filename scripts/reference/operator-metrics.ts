import { Registry } from 'prom-client';
import { openCertificateMetrics } from '../../operator/certificates/certificate-metrics.ts';
import { openClientMetrics } from '../../operator/kube/client-metrics.ts';
import { openReflectorMetrics } from '../../operator/kube/reflector-metrics.ts';
import { openEventMetrics } from '../../operator/runtime/events.ts';
import { openLeaderMetrics } from '../../operator/runtime/lease.ts';
import { openControllerMetrics } from '../../operator/runtime/runtime-metrics.ts';
import { openUninjectedMetric } from '../../operator/leader-tasks.ts';
import { StreamMetrics } from '../../operator/stream/stream-metrics.ts';
import { WebhookMetrics } from '../../operator/webhook/webhook-metrics.ts';
import { GENERATED_NOTE, markdownTable } from './table.ts';

export async function writeOperatorMetrics(): Promise<string> {
  const registry = new Registry();
  openClientMetrics(registry);
  openReflectorMetrics(registry);
  openControllerMetrics(registry);
  openLeaderMetrics(registry);
  openEventMetrics(registry);
  openUninjectedMetric(registry);
  openCertificateMetrics(registry);
  new StreamMetrics(registry);
  new WebhookMetrics(registry);
  const metrics = await registry.getMetricsAsJSON();
  const rows = metrics
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, type, help }) => [`\`${name}\``, String(type), help]);
  return `${GENERATED_NOTE}

# Metrics of the operator

Served at \`/metrics\` of \`--admin\`. Where controller-runtime and client-go have a name for a thing, it has that name
here, so that dashboards and alerts made for other controllers work.

${markdownTable(['name', 'kind', 'what it says'], rows)}

Worth an alert: \`weir_uninjected_pods\` above 0, \`weir_config_push_total{result="nack"}\` growing,
\`weir_tls_not_after_seconds\` less than a day away, \`leader_election_master_status\` 0 on every replica, and, of the API
server, \`apiserver_admission_webhook_fail_open_count\` growing for an entry that ends in \`inject.weir.dev\`: pods that
asked for a sidecar start without one.
`;
}
