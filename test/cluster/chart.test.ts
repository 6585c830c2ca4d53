// The life of a release on a real API server, with the operator of the checkout in place of its pods: it has the rights
// and the settings that the chart gives it, and keeps the caBundle that the chart must never take away.
import assert from 'node:assert/strict';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { webhookEntries } from '../../operator/webhook/configuration.ts';
import { CHART, operatorEnvironment, render, runHelm, type HelmResult } from '../chart/helm.ts';
import { eventually } from '../support/redis.ts';
import type { Cluster } from './cluster.ts';
import { listAt, textAt, valueAt } from './json-value.ts';
import { OPERATOR_NAMESPACE, OperatorProcess } from './operator-process.ts';
import { openCluster } from './test-cluster.ts';

const CONFIGURATION =
  '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/weir-inject';
const POLICIES = '/apis/weir.dev/v1alpha1/namespaces/default/ratelimitpolicies';
/** A write of the operator's follows its watch within a second. */
const WRITE_TIMEOUT_MS = 30_000;
const { enabled, required, namespace } = webhookEntries;
const IN_ORDER = [enabled, required, namespace];

const POLICY = {
  ...{ apiVersion: 'weir.dev/v1alpha1', kind: 'RateLimitPolicy', metadata: { name: 'kept' } },
  spec: {
    selector: {},
    rules: [{ name: 'all', buckets: [{ capacity: 5, refill: { tokens: 1, every: '2s' } }] }],
  },
};

interface Entry {
  readonly name: string;
  readonly caBundle: string | undefined;
}

class Release implements AsyncDisposable {
  readonly #cluster: Cluster;
  readonly #how: readonly string[];

  constructor(cluster: Cluster, how: readonly string[]) {
    this.#cluster = cluster;
    this.#how = how;
  }

  async install(): Promise<void> {
    await this.#run(['install', 'weir', CHART, '--create-namespace', ...this.#how]);
  }

  async upgrade(flags: readonly string[], chart: string = CHART): Promise<void> {
    // By itself an upgrade without values has those of the last one.
    await this.#run(['upgrade', 'weir', chart, '--reset-values', ...this.#how, ...flags]);
  }

  async rollback(revision: number): Promise<void> {
    await this.#run(['rollback', 'weir', String(revision), ...this.#how]);
  }

  async uninstall(): Promise<void> {
    await this.#run(['uninstall', 'weir']);
  }

  /** So that a test that failed half-way leaves the name to the next. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { kubeconfig } = this.#cluster;
    await runHelm(['uninstall', 'weir', '--namespace', OPERATOR_NAMESPACE], { kubeconfig });
  }

  async #run(args: readonly string[]): Promise<HelmResult> {
    const { kubeconfig } = this.#cluster;
    const result = await runHelm([...args, '--namespace', OPERATOR_NAMESPACE], { kubeconfig });
    assert.equal(result.code, 0, `helm ${args.join(' ')}: ${result.stderr}`);
    return result;
  }
}

/** As flags, but for what a process beside the cluster has to choose for itself. */
async function settings(): Promise<readonly string[]> {
  const environment = operatorEnvironment(await render());
  const ownChoice = new Set(['WEIR_WEBHOOK', 'WEIR_STREAM', 'WEIR_ADMIN']);
  return Object.entries(environment)
    .filter(([name]) => name.startsWith('WEIR_') && !ownChoice.has(name))
    .flatMap(([name, value]) => [
      `--${name.slice('WEIR_'.length).toLowerCase().replaceAll('_', '-')}`,
      value,
    ]);
}

async function entriesOf(cluster: Cluster): Promise<readonly Entry[]> {
  const { body } = await cluster.api.request('GET', CONFIGURATION);
  return listAt(body, 'webhooks').map((entry) => ({
    name: textAt(entry, 'name'),
    caBundle: valueAt(entry, 'clientConfig', 'caBundle') as string | undefined,
  }));
}

/** The entries are these, and the operator's CA is in each. */
async function trusted(cluster: Cluster, names: readonly string[]): Promise<void> {
  await eventually(
    `the CA is in ${names.join(', ')}`,
    async () => {
      const entries = await entriesOf(cluster);
      const [first] = entries;
      return (
        JSON.stringify(entries.map(({ name }) => name)) === JSON.stringify(names) &&
        entries.every(({ caBundle }) => caBundle !== undefined && caBundle === first?.caBundle)
      );
    },
    WRITE_TIMEOUT_MS,
  );
}

/** The chart with other names for its entries, as a later version might have them. */
async function renamedChart(): Promise<AsyncDisposable & { readonly folder: string }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-chart-'));
  await cp(CHART, folder, { recursive: true });
  const file = path.join(folder, 'templates', 'webhook-configuration.yaml');
  const text = await readFile(file, 'utf8');
  await writeFile(file, text.replace(`name: ${namespace}`, 'name: renamed.inject.weir.dev'));
  return {
    folder,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}

async function createPod(cluster: Cluster, name: string): Promise<number> {
  const { status } = await cluster.api.request('POST', '/api/v1/namespaces/default/pods', {
    body: {
      ...{ apiVersion: 'v1', kind: 'Pod' },
      metadata: { name, annotations: { 'weir.dev/inject': 'required' } },
      spec: { containers: [{ name: 'app', image: 'app', ports: [{ containerPort: 8080 }] }] },
    },
  });
  return status;
}

const ways: Readonly<Record<string, readonly string[]>> = {
  'server-side apply': ['--server-side=true'],
  'client-side apply': ['--server-side=false'],
};

describe('a release of the chart', () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await openCluster();
    // Whoever is stricter than the chart's pods would have none of them.
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    await cluster.api.request('POST', '/api/v1/namespaces', {
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: OPERATOR_NAMESPACE, labels } },
    });
  });
  after(async () => {
    await cluster[Symbol.asyncDispose]();
  });

  for (const [way, how] of Object.entries(ways)) {
    it(`is installed, upgraded, rolled back, removed and installed anew by ${way}`, async () => {
      await using stack = new AsyncDisposableStack();
      for (const path of [`${POLICIES}/kept`, '/api/v1/namespaces/default/pods/free']) {
        stack.defer(async () => {
          await cluster.api.request('DELETE', path);
        });
      }
      await using release = new Release(cluster, how);
      await release.install();
      await podsAreMade();
      await using operator = await startOperator();

      await operator.ready();
      await trusted(cluster, IN_ORDER);
      const [before] = await entriesOf(cluster);
      await release.upgrade(['--set', 'webhookConfiguration.timeoutSeconds=5']);
      assert.deepEqual((await entriesOf(cluster))[0], before, 'an upgrade leaves the CA');
      await release.upgrade(['--set', 'webhookConfiguration.entries.enabled=false']);
      await trusted(cluster, [required, namespace]);
      await release.upgrade([]);
      await trusted(cluster, IN_ORDER);
      await using renamed = await renamedChart();
      await release.upgrade([], renamed.folder);
      await trusted(cluster, [enabled, required, 'renamed.inject.weir.dev']);
      await release.rollback(3);
      await trusted(cluster, [required, namespace]);
      await release.rollback(1);
      await trusted(cluster, IN_ORDER);

      const created = await cluster.api.request('POST', POLICIES, { body: POLICY });
      assert.equal(created.status, 201, JSON.stringify(created.body));
      assert.notEqual(await createPod(cluster, 'refused'), 201, 'nobody answers');
      await release.uninstall();
      // Its pods would have gone with it, and their account.
      await operator.stop('SIGKILL');
      assert.equal((await cluster.api.request('GET', CONFIGURATION)).status, 404);
      assert.equal((await cluster.api.request('GET', `${POLICIES}/kept`)).status, 200);
      assert.equal(await createPod(cluster, 'free'), 201, 'no pod is blocked');
      await release.install();
      await using again = await startOperator();
      await again.ready();
      await trusted(cluster, IN_ORDER);
      assert.equal((await cluster.api.request('GET', `${POLICIES}/kept`)).status, 200);
    });
  }

  async function startOperator(): Promise<OperatorProcess> {
    const flags = await settings();
    return OperatorProcess.start({ cluster, isBehindService: true, flags });
  }

  async function podsAreMade(): Promise<void> {
    const url = `/api/v1/namespaces/${OPERATOR_NAMESPACE}/pods`;
    await eventually(
      'the pods of both Deployments are made, in a namespace that enforces restricted',
      async () => listAt((await cluster.api.request('GET', url)).body, 'items').length === 3,
      WRITE_TIMEOUT_MS,
    );
  }

  it('shows no difference to what was applied once the operator has written its CA', async () => {
    await using release = new Release(cluster, ['--server-side=true']);
    await release.install();
    await using operator = await startOperator();
    await operator.ready();
    const [configuration] = (await render()).filter(
      ({ kind }) => kind === 'MutatingWebhookConfiguration',
    );
    const input = JSON.stringify(configuration);

    // As a controller would compare that is not Helm.
    const byServer = await cluster.kubectl(
      ['diff', '--server-side', '--field-manager=gitops', '-f', '-'],
      { input },
    );
    const byClient = await cluster.kubectl(['diff', '-f', '-'], { input });

    for (const { stdout, stderr } of [byServer, byClient]) {
      const changed = stdout.split('\n').filter((line) => /^[+-](?!--|\+\+)/.test(line));
      assert.deepEqual(
        changed.filter((line) => !/^[+-] +generation: /.test(line)),
        [],
        stderr,
      );
    }
    await release.uninstall();
  });

  for (const [title, flags] of [
    ['values-ha.yaml', ['--values', path.join(CHART, 'values-ha.yaml')]],
    ['watched namespaces', ['--set', 'watchNamespaces={default}']],
    [
      'files, network policies and a dashboard',
      [
        ...['--set', 'certificates.mode=files,certificates.files.secretName=own-tls'],
        ...['--set', 'networkPolicy.enabled=true,monitoring.dashboard.enabled=true'],
      ],
    ],
  ] as const) {
    it(`is taken by the API server, every object of it, with ${title}`, async () => {
      await using release = new Release(cluster, [...flags, '--server-side=true']);

      await release.install();
      await release.uninstall();
    });
  }
});
