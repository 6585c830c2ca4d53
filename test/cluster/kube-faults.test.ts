// The reflector through a restart of a real API server and a compaction of its etcd.
// x509, which the control plane's credentials are made with, wants it before it is loaded.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import prometheus from 'prom-client';
import { systemClock } from '../../operator/clock.ts';
import { openKubeClient, type KubeClient } from '../../operator/kube/client.ts';
import type { Change } from '../../operator/kube/object-store.ts';
import { openReflectorMetrics } from '../../operator/kube/reflector-metrics.ts';
import { Reflector } from '../../operator/kube/reflector.ts';
import { silentLog } from '../../operator/log.ts';
import { configMaps, type ConfigMap } from '../support/api-server.ts';
import { eventually } from '../support/redis.ts';
import { openControlPlane, type ControlPlane } from './control-plane.ts';
import { whyNoFaults } from './test-cluster.ts';

const named = (name: string): ConfigMap => ({ metadata: { namespace: 'default', name } });
const signal = (): AbortSignal => AbortSignal.timeout(20_000);

describe('a reflector of a real API server', { skip: whyNoFaults() }, () => {
  let cluster: ControlPlane;
  let client: KubeClient;
  before(async () => {
    cluster = await openControlPlane();
    client = await openKubeClient({ kubeConfig: cluster.kubeconfig });
  });
  after(async () => {
    await client[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  it('goes on after a restart, and after a compaction that it slept through', async () => {
    const changes: Change<ConfigMap>[] = [];
    const registry = new prometheus.Registry();
    await using reflector = new Reflector<ConfigMap>(
      {
        collections: client,
        clock: systemClock,
        random: Math.random,
        log: silentLog(),
        metrics: openReflectorMetrics(registry),
      },
      { resource: configMaps, namespaces: ['default'] },
    );
    reflector.onChange((change) => changes.push(change));
    await client.create(configMaps, named('kept'), signal());
    await client.create(configMaps, named('deleted'), signal());
    reflector.start();
    await reflector.synced(signal());
    changes.length = 0;

    await cluster.restartApiServer();
    await client.delete(configMaps, { namespace: 'default', name: 'deleted' }, signal());
    await client.create(configMaps, named('added'), signal());
    await cluster.compactEtcd();
    await cluster.restartApiServer();

    await eventually('it knows', async () => changes.length === 2, 60_000);
    assert.deepEqual(
      changes.map(({ key, before, after }) => [key, before !== undefined, after !== undefined]),
      [
        ['default/deleted', true, false],
        ['default/added', false, true],
      ],
    );
    await eventually(
      'nothing is wrong any more',
      async () => reflector.problem === undefined,
      60_000,
    );
  });
});
