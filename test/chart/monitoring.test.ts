// Alerts and dashboard ask for metrics that exist.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { webhookEntries } from '../../operator/webhook/configuration.ts';
import { find, render, type Manifest } from './helm.ts';

const root = path.join(import.meta.dirname, '..', '..');
/** Of the API server (Kubernetes' own reference of metrics). */
const THE_API_SERVERS: readonly string[] = [
  'apiserver_admission_webhook_fail_open_count',
  'apiserver_admission_webhook_rejection_count',
];
const METRIC =
  /\b(weir|workqueue|controller_runtime|leader_election|rest_client|apiserver|process)_[a-z_]+\b/g;

interface AlertGroup {
  readonly rules: readonly {
    readonly alert: string;
    readonly expr: string;
    readonly annotations: { readonly summary: string; readonly description: string };
  }[];
}

async function read(file: string): Promise<string> {
  return readFile(path.join(root, file), 'utf8');
}

async function alerts(): Promise<AlertGroup['rules']> {
  const groups = parse(await read('charts/weir/files/alerts.yaml')) as readonly AlertGroup[];
  return groups.flatMap(({ rules }) => rules);
}

async function panels(): Promise<readonly string[]> {
  const dashboard = JSON.parse(await read('charts/weir/files/dashboard.json')) as {
    panels: readonly { targets: readonly { expr: string }[] }[];
  };
  return dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
}

async function known(): Promise<ReadonlySet<string>> {
  const names = new Set(THE_API_SERVERS);
  for (const page of ['docs/metrics.md', 'docs/operator-metrics.md']) {
    for (const [, name = '', kind = ''] of (await read(page)).matchAll(/^\| `(\w+)` +\| (\w+)/gm)) {
      names.add(name);
      if (kind === 'histogram') names.add(`${name}_bucket`);
    }
  }
  return names;
}

describe('alerts and dashboard', () => {
  it('ask for metrics that the operator, the sidecars or the API server have', async () => {
    const there = await known();
    const expressions = [...(await alerts()).map(({ expr }) => expr), ...(await panels())];
    const asked = expressions.flatMap((expr) => expr.match(METRIC) ?? []);

    assert(asked.length > 20);
    assert.deepEqual(
      asked.filter((name) => !there.has(name)),
      [],
    );
  });

  it('alert of everything that the pages of metrics call worth an alert', async () => {
    const text = (await alerts()).map(({ expr }) => expr).join('\n');
    for (const page of ['docs/metrics.md', 'docs/operator-metrics.md']) {
      const sentence = (await read(page)).split('Worth an alert:')[1] ?? '';
      for (const [, metric = ''] of sentence.matchAll(/`((?:weir|leader|apiserver)_\w+)/g)) {
        assert(text.includes(metric), `${metric} of ${page}`);
      }
    }
  });

  it('know the entries of the webhook by their names', async () => {
    const selectors = (await alerts()).flatMap(({ expr }) => [
      ...expr.matchAll(/apiserver_\w+\{name(=~?)"([^"]+)"/g),
    ]);
    const matched = Object.values(webhookEntries).filter((entry) =>
      selectors.some(([, operator = '', value = '']) =>
        operator === '=' ? value === entry : new RegExp(`^(?:${value})$`).test(entry),
      ),
    );

    assert.equal(selectors.length, 2);
    assert.deepEqual(matched, Object.values(webhookEntries));
  });

  it('say what it means and what to do', async () => {
    for (const { alert, annotations } of await alerts()) {
      assert(annotations.summary.length > 10 && annotations.description.length > 20, alert);
      assert.match(alert, /^Weir[A-Z]/);
    }
  });

  it('are in the chart as they are in its files', async () => {
    const flags = ['prometheusRule', 'dashboard'].map((kind) => `monitoring.${kind}.enabled=true`);
    const manifests = await render([
      ...flags.flatMap((flag) => ['--set', flag]),
      ...['--api-versions', 'monitoring.coreos.com/v1'],
    ]);
    const { groups } = find(manifests, 'PrometheusRule')['spec'] as { groups: unknown };
    const { data } = find(manifests, 'ConfigMap', 'weir-dashboard') as Manifest & {
      data: { 'weir.json': string };
    };

    assert.deepEqual(groups, parse(await read('charts/weir/files/alerts.yaml')));
    assert.deepEqual(
      JSON.parse(data['weir.json']),
      JSON.parse(await read('charts/weir/files/dashboard.json')),
    );
  });
});
