// What a real API server makes of the webhook and of injected pods: who is asked, what comes back, what happens when
// nobody answers.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import * as fc from 'fast-check';
import { Registry } from 'prom-client';
import { createAuthority, issueLeaf } from '../../operator/certificates/authority.ts';
import type { WorldView } from '../../operator/injection/admission-review.ts';
import { silentLog } from '../../operator/log.ts';
import {
  webhookConfiguration,
  webhookEntries,
  type ConfigurationOptions,
} from '../../operator/webhook/configuration.ts';
import { openWebhookServer, type WebhookServer } from '../../operator/webhook/server.ts';
import { eventually } from '../support/redis.ts';
import { injectionConfig, podArbitrary, surroundings } from '../support/pods.ts';
import type { Cluster } from './cluster.ts';
import type { JsonAnswer } from './json-exchange.ts';
import { listAt, textAt, valueAt } from './json-value.ts';
import { openCluster, whyNoFaults } from './test-cluster.ts';

const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
/** The bound of the issue: this many pods that got a sidecar are valid to the server. */
const GENERATED = 500;
const SEED = 20_261_130;

type Plain = Readonly<Record<string, unknown>>;

/** What Pod Security's `restricted` asks. */
const RESTRICTED: Plain = {
  runAsNonRoot: true,
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
};

function podOf(name: string, annotations: Plain, metadata: Plain = {}): Plain {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, annotations, ...metadata },
    spec: {
      containers: [
        {
          name: 'app',
          image: 'registry.test/app:1',
          ports: [{ name: 'http', containerPort: 8080 }],
          readinessProbe: { httpGet: { path: '/', port: 'http' } },
          securityContext: RESTRICTED,
        },
      ],
    },
  };
}

// The API server of another cluster cannot reach a webhook on this machine's loopback.
describe('injection on an API server', { skip: whyNoFaults() }, () => {
  const run = randomBytes(4).toString('hex');
  const spaces = {
    plain: `weir-plain-${run}`,
    restricted: `weir-restricted-${run}`,
    labelled: `weir-labelled-${run}`,
  };
  const labels: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    [spaces.plain]: {},
    [spaces.restricted]: { 'pod-security.kubernetes.io/enforce': 'restricted' },
    [spaces.labelled]: { 'weir.dev/inject': 'enabled' },
  };
  /** Names of the pods that the webhook was asked about, one for each call. */
  const asked: string[] = [];
  let cluster: Cluster;
  let webhook: WebhookServer;

  const world: WorldView = {
    surroundingsOf: (namespace, pod) => {
      asked.push(pod.metadata.name ?? pod.metadata.generateName ?? '');
      return surroundings({ namespace, namespaceLabels: labels[namespace] ?? {} });
    },
    workloadOf: (namespace, { kind, name }) => ({ apiVersion: 'apps/v1', kind, namespace, name }),
  };

  before(async () => {
    cluster = await openCluster();
    const nowMs = Date.now();
    const authority = await createAuthority(nowMs);
    const certificate = await issueLeaf(authority, { names: ['127.0.0.1'], nowMs });
    webhook = await openWebhookServer({
      ...{ host: '127.0.0.1', port: 0, certificate, world, log: silentLog() },
      ...{ config: () => injectionConfig(), events: { record: () => undefined } },
      metrics: new Registry(),
    });
    for (const name of Object.values(spaces)) await createNamespace(name);
    await install({
      operatorNamespace: 'weir-system',
      target: { url: webhook.url },
      caPem: authority.cert,
    });
  });
  after(async () => {
    await cluster[Symbol.asyncDispose]();
    await webhook[Symbol.asyncDispose]();
  });

  async function createNamespace(name: string): Promise<void> {
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: labels[name] } };
    const { status } = await cluster.api.request('POST', '/api/v1/namespaces', { body });
    assert.equal(status, 201);
    const account = `/api/v1/namespaces/${name}/serviceaccounts/default`;
    await eventually(`${name} has its account`, async () => {
      return (await cluster.api.request('GET', account)).status === 200;
    });
  }

  /** Until the server asks: it learns of a configuration a moment after it is written. */
  async function install(options: ConfigurationOptions): Promise<void> {
    const body = webhookConfiguration(options);
    const { status, body: answer } = await cluster.api.request('POST', CONFIGURATIONS, { body });
    assert.equal(status, 201, JSON.stringify(answer));
    await eventually('the API server asks the webhook', async () => {
      const probe = podOf('probe', { 'weir.dev/inject': 'enabled' });
      const { body: pod } = await create(spaces.plain, probe, '?dryRun=All');
      return containersOf(pod).includes('weir');
    });
    asked.length = 0;
  }

  function create(namespace: string, pod: Plain, query = ''): Promise<JsonAnswer> {
    return cluster.api.request('POST', `/api/v1/namespaces/${namespace}/pods${query}`, {
      body: pod,
    });
  }

  async function created(namespace: string, pod: Plain): Promise<unknown> {
    const { status, body } = await create(namespace, pod);
    assert.equal(status, 201, JSON.stringify(body));
    return body;
  }

  function callsFor(name: string): number {
    return asked.filter((one) => one === name).length;
  }

  it('is accepted as it was written, and keeps its names', async () => {
    const { body } = await cluster.api.request('GET', `${CONFIGURATIONS}/weir-inject`);

    assert.deepEqual(
      listAt(body, 'webhooks').map((entry) => textAt(entry, 'name')),
      Object.values(webhookEntries),
    );
  });

  it('gives a pod its sidecar in each mode, with one call each', async () => {
    const takeover = await created(
      spaces.plain,
      podOf('takeover', { 'weir.dev/inject': 'enabled', 'weir.dev/mode': 'takeover' }),
    );
    const redirect = await created(
      spaces.plain,
      podOf('redirect', { 'weir.dev/inject': 'required', 'weir.dev/mode': 'redirect' }),
    );
    const ordinary = await created(
      spaces.plain,
      podOf('ordinary', { 'weir.dev/inject': 'enabled', 'weir.dev/native': 'false' }),
    );

    assert.deepEqual(containersOf(takeover), ['weir', 'app']);
    assert.deepEqual(containersOf(redirect), ['weir-redirect', 'weir', 'app']);
    assert.deepEqual(namesOf(ordinary, 'containers'), ['weir', 'app']);
    assert.deepEqual(namesOf(ordinary, 'initContainers'), []);
    for (const name of ['takeover', 'redirect', 'ordinary']) assert.equal(callsFor(name), 1, name);
  });

  it("adds nothing of the app's account to the sidecar, and takes nothing from the app", async () => {
    const pod = await created(spaces.plain, podOf('mounts', { 'weir.dev/inject': 'enabled' }));

    const [sidecar] = listAt(pod, 'spec', 'initContainers');
    const [app] = listAt(pod, 'spec', 'containers');
    assert.deepEqual(mountsOf(sidecar), ['weir-identity', 'weir-cache']);
    assert.match(mountsOf(app).join(' '), /^kube-api-access-/);
    assert.equal(callsFor('mounts'), 1);
  });

  it('passes Pod Security restricted in takeover mode, from a Deployment as well', async () => {
    const annotations = { 'weir.dev/inject': 'required' };
    await created(spaces.restricted, podOf('strict', annotations));
    const { spec } = podOf('x', {});
    const deployment = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'api' },
      spec: {
        selector: { matchLabels: { app: 'api' } },
        template: { metadata: { labels: { app: 'api' }, annotations }, spec },
      },
    };
    const path = `/apis/apps/v1/namespaces/${spaces.restricted}/deployments`;
    const { status } = await cluster.api.request('POST', path, { body: deployment });
    assert.equal(status, 201);

    await eventually('the Deployment has an injected pod', async () => {
      const pods = `/api/v1/namespaces/${spaces.restricted}/pods?labelSelector=app%3Dapi`;
      const { body } = await cluster.api.request('GET', pods);
      const [pod] = listAt(body, 'items');
      return containersOf(pod).join(' ') === 'weir app';
    });
    const redirect = podOf('redirect', { ...annotations, 'weir.dev/mode': 'redirect' });
    const refused = await create(spaces.restricted, redirect);
    assert.equal(refused.status, 403);
    assert.match(textAt(refused.body, 'message'), /required: redirect needs NET_ADMIN/);
  });

  it('is not asked about a pod that did not ask', async () => {
    const before = asked.length;
    const inject = 'weir.dev/inject';

    await created(spaces.plain, podOf('silent', {}));
    await created(spaces.plain, podOf('other', { 'weir.dev/mode': 'redirect' }));
    await created(spaces.plain, podOf('no', { [inject]: 'disabled' }));
    await created(spaces.plain, podOf('empty', { [inject]: '' }));
    await created(
      spaces.plain,
      podOf('beaten', { [inject]: 'disabled' }, { labels: { [inject]: 'required' } }),
    );
    await created(spaces.labelled, podOf('out', { [inject]: 'disabled' }));
    const ours = { labels: { 'app.kubernetes.io/part-of': 'weir' } };
    await created(spaces.plain, podOf('ours', { [inject]: 'required' }, ours));

    assert.equal(asked.length, before);
  });

  it('is asked by a label, by the namespace, and about a word that it does not know', async () => {
    const label = { labels: { 'weir.dev/inject': 'enabled' } };
    const byLabel = await created(spaces.plain, podOf('label', {}, label));
    const bySpace = await created(spaces.labelled, podOf('space', {}));
    const misspelt = await created(spaces.plain, podOf('yes', { 'weir.dev/inject': 'yes' }));

    assert.deepEqual(containersOf(byLabel), ['weir', 'app']);
    assert.deepEqual(containersOf(bySpace), ['weir', 'app']);
    assert.deepEqual(containersOf(misspelt), ['app']);
    assert.deepEqual([callsFor('label'), callsFor('space'), callsFor('yes')], [1, 1, 1]);
  });

  it(`makes nothing of ${GENERATED} generated pods that the server would refuse`, async () => {
    let injected = 0;
    for (const pod of fc.sample(podArbitrary(), { numRuns: 3 * GENERATED, seed: SEED })) {
      if (injected === GENERATED) break;
      const { status, body } = await create(spaces.plain, pod, '?dryRun=All');
      if (status === 201 && containersOf(body).includes('weir')) injected += 1;
      const isOurRefusal = textAt(body, 'message').includes('weir.dev/inject is required:');
      assert.ok(status === 201 || isOurRefusal, JSON.stringify([body, pod]));
    }
    assert.equal(injected, GENERATED);
  });

  it('lets a pod start bare when it is away, and a pod that requires it not, in words', async () => {
    await webhook[Symbol.asyncDispose]();

    const bare = await created(spaces.plain, podOf('bare', { 'weir.dev/inject': 'enabled' }));
    const bySpace = await created(spaces.labelled, podOf('bare', {}));
    const refused = await create(spaces.plain, podOf('never', { 'weir.dev/inject': 'required' }));
    await created(spaces.plain, podOf('unconcerned', {}));

    assert.deepEqual(containersOf(bare), ['app']);
    assert.deepEqual(containersOf(bySpace), ['app']);
    assert.equal(refused.status, 500);
    assert.match(
      textAt(refused.body, 'message'),
      /failed calling webhook "start-weir-operator-or-set-inject-to-enabled\.required/,
    );
  });
});

function namesOf(pod: unknown, list: 'containers' | 'initContainers'): readonly string[] {
  const found = valueAt(pod, 'spec', list);
  return found === undefined ? [] : listAt(pod, 'spec', list).map((one) => textAt(one, 'name'));
}

/** Init containers first. */
function containersOf(pod: unknown): readonly string[] {
  return [...namesOf(pod, 'initContainers'), ...namesOf(pod, 'containers')];
}

function mountsOf(container: unknown): readonly string[] {
  return listAt(container, 'volumeMounts').map((one) => textAt(one, 'name'));
}
