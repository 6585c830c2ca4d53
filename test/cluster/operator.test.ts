// The whole way on a real API server: kubectl apply, a pod, its sidecar with a token of that pod, requests.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually, openRedisServer, type RedisServer } from '../support/redis.ts';
import { openCluster, whyNoFaults } from './test-cluster.ts';
import type { Cluster } from './cluster.ts';
import { installCrds } from './crd-installation.ts';
import { FakeKubelet } from './fake-kubelet.ts';
import { listAt, textAt, valueAt } from './json-value.ts';
import {
  applyAll,
  installOperatorAccess,
  OPERATOR_NAMESPACE,
  OperatorProcess,
} from './operator-process.ts';

const POLICIES = '/apis/weir.dev/v1alpha1/namespaces/shop/ratelimitpolicies';

describe('the operator beside a real API server', { skip: whyNoFaults() }, () => {
  let cluster: Cluster;
  let operator: OperatorProcess;
  let redis: RedisServer;
  const stack = new AsyncDisposableStack();

  before(async () => {
    redis = stack.use(await openRedisServer());
    cluster = stack.use(await openCluster());
    await installCrds(cluster.api);
    await installOperatorAccess(cluster, ['--store-secret', 'weir-store']);
    await applyAll(cluster, [
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
      {
        ...{ apiVersion: 'v1', kind: 'Secret', stringData: { url: redis.url } },
        metadata: { name: 'weir-store', namespace: OPERATOR_NAMESPACE },
      },
    ]);
    stack.use(new FakeKubelet(cluster.api));
    operator = stack.use(
      await OperatorProcess.start({ cluster, flags: ['--store-secret', 'weir-store'] }),
    );
    await operator.ready();
  });
  after(async () => {
    if (process.env['WEIR_TEST_LOG']) console.error(operator.log.join('\n'));
    await stack.disposeAsync();
  });

  it('says of a policy without pods that it is accepted and what it waits for', async () => {
    await applyAll(cluster, [policy('lonely', { matchLabels: { app: 'nobody' } })]);

    const conditions = await conditionsOf(cluster, 'lonely', (found) => found.size === 4);

    assert.deepEqual(Object.fromEntries(conditions), {
      Accepted: 'True/Accepted',
      ResolvedRefs: 'True/ResolvedRefs',
      Programmed: 'False/NoSidecars',
      Enforced: 'False/NoMatchingPods',
    });
  });
});

function policy(name: string, selector: object): object {
  return {
    ...{ apiVersion: 'weir.dev/v1alpha1', kind: 'RateLimitPolicy' },
    metadata: { name, namespace: 'shop' },
    spec: {
      selector,
      rules: [{ name: 'all', buckets: [{ capacity: 3, refill: { tokens: 1, every: '1h' } }] }],
    },
  };
}

async function conditionsOf(
  cluster: Cluster,
  name: string,
  until: (conditions: ReadonlyMap<string, string>) => boolean,
): Promise<ReadonlyMap<string, string>> {
  let found: ReadonlyMap<string, string> = new Map();
  await eventually(`the conditions of ${name}`, async () => {
    const { body } = await cluster.api.request('GET', `${POLICIES}/${name}`);
    const conditions =
      valueAt(body, 'status', 'conditions') === undefined
        ? []
        : listAt(body, 'status', 'conditions');
    found = new Map(
      conditions.map((one) => [
        textAt(one, 'type'),
        `${textAt(one, 'status')}/${textAt(one, 'reason')}`,
      ]),
    );
    return until(found);
  });
  return found;
}
