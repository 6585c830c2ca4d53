// The Grafana dashboard, from a list of questions: what is asked, of which metrics, in which unit.

interface Panel {
  readonly title: string;
  readonly expr: string;
  readonly legend: string;
  readonly unit: 'short' | 'reqps' | 's' | 'bytes' | 'dateTimeFromNow';
}

const FROM_SIDECARS = 'namespace=~"$namespace"';

const panels: readonly Panel[] = [
  {
    title: 'Requests by verdict',
    expr: `sum by (verdict) (rate(weir_requests_total{${FROM_SIDECARS}}[$__rate_interval]))`,
    ...{ legend: '{{verdict}}', unit: 'reqps' },
  },
  {
    title: 'Refused, by policy and rule',
    expr: `sum by (policy, rule) (rate(weir_rule_decisions_total{${FROM_SIDECARS},verdict="denied"}[$__rate_interval]))`,
    ...{ legend: '{{policy}} {{rule}}', unit: 'reqps' },
  },
  {
    title: 'From a request to its verdict, p99',
    expr: `histogram_quantile(0.99, sum by (le, namespace) (rate(weir_decision_seconds_bucket{${FROM_SIDECARS}}[$__rate_interval])))`,
    ...{ legend: '{{namespace}}', unit: 's' },
  },
  {
    title: 'The store’s answer, p99',
    expr: `histogram_quantile(0.99, sum by (le, namespace) (rate(weir_store_seconds_bucket{${FROM_SIDECARS}}[$__rate_interval])))`,
    ...{ legend: '{{namespace}}', unit: 's' },
  },
  {
    title: 'Calls to the store without an answer',
    expr: `sum by (namespace, kind) (rate(weir_store_errors_total{${FROM_SIDECARS}}[$__rate_interval]))`,
    ...{ legend: '{{namespace}} {{kind}}', unit: 'reqps' },
  },
  {
    title: 'Decided by a failure mode',
    expr: `sum by (namespace) (rate(weir_degraded_total{${FROM_SIDECARS}}[$__rate_interval]))`,
    ...{ legend: '{{namespace}}', unit: 'reqps' },
  },
  {
    title: 'Circuit breaker (0 closed, 2 open)',
    expr: `max by (namespace, node) (weir_breaker_state{${FROM_SIDECARS}})`,
    ...{ legend: '{{namespace}} {{node}}', unit: 'short' },
  },
  {
    title: 'Requests the app did not answer',
    expr: `sum by (namespace, kind) (rate(weir_upstream_errors_total{${FROM_SIDECARS}}[$__rate_interval]))`,
    ...{ legend: '{{namespace}} {{kind}}', unit: 'reqps' },
  },
  {
    title: 'Memory of a sidecar, the most',
    // The metric is everybody's; the container is ours.
    expr: `max by (namespace) (process_resident_memory_bytes{${FROM_SIDECARS},container="weir"})`,
    ...{ legend: '{{namespace}}', unit: 'bytes' },
  },
  {
    title: 'Pods that came by for a sidecar',
    expr: 'sum by (result, reason) (rate(weir_injection_total[$__rate_interval]))',
    ...{ legend: '{{result}} {{reason}}', unit: 'reqps' },
  },
  {
    title: 'Pods without the sidecar they asked for',
    expr: 'max(weir_uninjected_pods)',
    ...{ legend: 'pods', unit: 'short' },
  },
  {
    title: 'Sidecars connected, by replica',
    expr: 'sum by (pod) (weir_stream_clients)',
    ...{ legend: '{{pod}}', unit: 'short' },
  },
  {
    title: 'From a change to its being in force, p99',
    expr: 'histogram_quantile(0.99, sum by (le) (rate(weir_config_lag_seconds_bucket[$__rate_interval])))',
    ...{ legend: 'p99', unit: 's' },
  },
  {
    title: 'Configurations pushed',
    expr: 'sum by (result) (rate(weir_config_push_total[$__rate_interval]))',
    ...{ legend: '{{result}}', unit: 'reqps' },
  },
  {
    title: 'Answer of the webhook, p99',
    expr: 'histogram_quantile(0.99, sum by (le) (rate(controller_runtime_webhook_latency_seconds_bucket{webhook="/mutate"}[$__rate_interval])))',
    ...{ legend: 'p99', unit: 's' },
  },
  {
    title: 'Pods let through unanswered (API server)',
    expr: 'sum by (name) (increase(apiserver_admission_webhook_fail_open_count{name=~".*inject[.]weir[.]dev"}[$__rate_interval]))',
    ...{ legend: '{{name}}', unit: 'short' },
  },
  {
    title: 'Certificates end',
    expr: 'min by (certificate) (weir_tls_not_after_seconds) * 1000',
    ...{ legend: '{{certificate}}', unit: 'dateTimeFromNow' },
  },
];

const COLUMNS = 3;
const GRID_WIDTH = 24;
const HEIGHT = 8;
const source = { type: 'prometheus', uid: '${datasource}' };

export function writeDashboard(): string {
  const dashboard = {
    ...{ uid: 'weir', title: 'Weir', tags: ['weir'], editable: true, schemaVersion: 39 },
    ...{ refresh: '30s', time: { from: 'now-1h', to: 'now' } },
    templating: {
      list: [
        { name: 'datasource', type: 'datasource', query: 'prometheus' },
        {
          ...{ name: 'namespace', type: 'query', datasource: source, includeAll: true },
          ...{ multi: true, allValue: '.*', refresh: 2 },
          query: 'label_values(weir_requests_total, namespace)',
        },
      ],
    },
    panels: panels.map(panelOf),
  };
  return `${JSON.stringify(dashboard, undefined, 2)}\n`;
}

function panelOf({ title, expr, legend, unit }: Panel, index: number): object {
  const w = GRID_WIDTH / COLUMNS;
  const x = (index % COLUMNS) * w;
  const y = Math.floor(index / COLUMNS) * HEIGHT;
  return {
    ...{ id: index + 1, type: unit === 'dateTimeFromNow' ? 'stat' : 'timeseries', title },
    ...{ datasource: source, gridPos: { x, y, w, h: HEIGHT } },
    targets: [{ refId: 'A', datasource: source, expr, legendFormat: legend }],
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
  };
}
