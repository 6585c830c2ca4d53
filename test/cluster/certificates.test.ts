// The Secret of our authority and the caBundle, on a real API server and through the operator's own client.
import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { Registry } from 'prom-client';
import { keepCaBundle, type CaBundleOutcome } from '../../operator/certificates/ca-bundle.ts';
import type { CertificateSource } from '../../operator/certificates/certificate-source.ts';
import { openOwnCertificates } from '../../operator/certificates/own-certificates.ts';
import { systemClock, type Clock } from '../../operator/clock.ts';
import { openKubeClient, type KubeClient } from '../../operator/kube/client.ts';
import { silentLog } from '../../operator/log.ts';
import {
  webhookConfiguration,
  webhookConfigurationResource,
} from '../../operator/webhook/configuration.ts';
import type { Cluster } from './cluster.ts';
import { listAt, textAt } from './json-value.ts';
import { openCluster } from './test-cluster.ts';

const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const { signal } = new AbortController();

describe('certificates on an API server', () => {
  const run = randomBytes(4).toString('hex');
  const namespace = `weir-certificates-${run}`;
  const name = `weir-inject-${run}`;
  let cluster: Cluster;
  let client: KubeClient;
  before(async () => {
    cluster = await openCluster();
    client = await openKubeClient({ kubeConfig: cluster.kubeconfig });
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } };
    await cluster.api.request('POST', '/api/v1/namespaces', { body });
  });
  after(async () => {
    await cluster.api.request('DELETE', `${CONFIGURATIONS}/${name}`);
    await cluster.api.request('DELETE', `/api/v1/namespaces/${namespace}`);
    await client[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  function open(clock: Clock = systemClock): Promise<CertificateSource> {
    return openOwnCertificates(
      {
        ...{ api: client, namespace, names: ['127.0.0.1'], clock, random: () => 0 },
        ...{ isLeader: () => true, log: silentLog(), metrics: new Registry() },
      },
      signal,
    );
  }

  it('have one authority when replicas start together, and rotate it together', async () => {
    await using all = new AsyncDisposableStack();
    const sources = await Promise.all(Array.from({ length: 5 }, () => open()));
    for (const source of sources) all.use(source);
    assert.equal(new Set(sources.map((source) => source.current().trust)).size, 1);

    // Nine months on, and both think that they lead.
    const later = { ...systemClock, wallMs: () => Date.now() + 274 * 86_400_000 };
    const [one, other] = await Promise.all([open(later), open(later)]);
    all.use(one);
    all.use(other);

    const trusts = [one, other].map((source) => source.current().trust.match(/BEGIN/g)?.length);
    assert.deepEqual(trusts, [2, 2]);
    assert.equal(one.current().trust, other.current().trust);
  });

  it('keep the caBundle of every entry, and give back what somebody has wiped', async () => {
    const options = { operatorNamespace: namespace, target: { url: 'https://127.0.0.1:1' } };
    const body = webhookConfiguration(options);
    // No pod of other tests: nobody answers at that address.
    const nobody = { matchLabels: { 'weir.dev/none': run } };
    const webhooks = body.webhooks.map((entry) => ({ ...entry, namespaceSelector: nobody }));
    const made = { ...body, metadata: { name }, webhooks };
    const created = await cluster.api.request('POST', CONFIGURATIONS, { body: made });
    assert.equal(created.status, 201, JSON.stringify(created.body));
    await using source = await open();
    const { trust } = source.current();
    const keep = (): Promise<CaBundleOutcome> => {
      const resource = webhookConfigurationResource;
      return keepCaBundle({ api: client, resource, name, trust, signal });
    };
    const bundles = async (): Promise<readonly string[]> => {
      const { body: found } = await cluster.api.request('GET', `${CONFIGURATIONS}/${name}`);
      return listAt(found, 'webhooks').map((entry) => textAt(entry, 'clientConfig', 'caBundle'));
    };
    const expected = Buffer.from(trust).toString('base64');

    assert.deepEqual([await keep(), await keep()], ['written', 'kept']);
    assert.deepEqual(await bundles(), [expected, expected, expected]);

    const wipe = [{ op: 'remove', path: '/webhooks/1/clientConfig/caBundle' }];
    await cluster.api.request('PATCH', `${CONFIGURATIONS}/${name}`, {
      body: wipe,
      contentType: 'application/json-patch+json',
    });
    assert.equal(await keep(), 'written');
    assert.deepEqual(await bundles(), [expected, expected, expected]);
  });

  it('do not make a configuration that is not there', async () => {
    const resource = webhookConfigurationResource;

    const outcome = await keepCaBundle({
      ...{ api: client, resource, name: `absent-${run}`, trust: 'PEM', signal },
    });

    assert.equal(outcome, 'absent');
  });
});
