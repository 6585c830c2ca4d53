// What the stand-in of test/support/api-server.ts believes about a real API server, asked of one.
// x509, which the control plane's credentials are made with, wants it before it is loaded.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import prometheus from 'prom-client';
import { systemClock } from '../../operator/clock.ts';
import { openKubeClient, type KubeClient } from '../../operator/kube/client.ts';
import type { KubeObject } from '../../operator/kube/object.ts';
import type { Change } from '../../operator/kube/object-store.ts';
import { openReflectorMetrics } from '../../operator/kube/reflector-metrics.ts';
import { Reflector, type ReflectorOptions } from '../../operator/kube/reflector.ts';
import { silentLog } from '../../operator/log.ts';
import { eventResource, openEventRecorder } from '../../operator/runtime/events.ts';
import { LeaderElection } from '../../operator/runtime/lease.ts';
import { configMaps, type ConfigMap } from '../support/api-server.ts';
import { eventually } from '../support/redis.ts';
import type { Cluster } from './cluster.ts';
import { openCluster } from './test-cluster.ts';

const NAMESPACE = 'weir-kube-client';
const signal = (): AbortSignal => AbortSignal.timeout(20_000);
const named = (name: string): { readonly namespace: string; readonly name: string } => ({
  namespace: NAMESPACE,
  name,
});
const configMap = (name: string, value = 'x'): ConfigMap => ({
  metadata: named(name),
  data: { value },
});

interface SeriesEvent extends KubeObject {
  readonly reason?: string;
  readonly note?: string;
  readonly series?: { readonly count: number };
}

describe('a real API server', () => {
  let cluster: Cluster;
  let client: KubeClient;
  before(async () => {
    cluster = await openCluster();
    client = await openKubeClient({ kubeConfig: cluster.kubeconfig });
    await cluster.kubectl(['create', 'namespace', NAMESPACE]);
  });
  after(async () => {
    await cluster.kubectl(['delete', 'namespace', NAMESPACE, '--wait=false']);
    await client[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  function reflect(
    changes: Change<ConfigMap>[],
    options: Partial<ReflectorOptions<ConfigMap>> = {},
  ): Reflector<ConfigMap> {
    const reflector = new Reflector<ConfigMap>(
      {
        collections: client,
        clock: systemClock,
        random: Math.random,
        log: silentLog(),
        metrics: openReflectorMetrics(new prometheus.Registry()),
      },
      { resource: configMaps, namespaces: [NAMESPACE], labelSelector: 'weir.dev/test', ...options },
    );
    reflector.onChange((change) => changes.push(change));
    reflector.start();
    return reflector;
  }

  it('says its version', async () => {
    const { gitVersion } = await client.read<{ readonly gitVersion: string }>('/version', signal());

    assert.match(gitVersion, /^v1\.\d+/);
  });

  it('does not change what is applied again unchanged, and gives it to us by force', async () => {
    const other = configMap('applied', 'theirs');
    await client.create(configMaps, other, signal());

    const first = await client.apply(configMaps, configMap('applied'), { signal: signal() });
    const second = await client.apply(configMaps, configMap('applied'), { signal: signal() });

    assert.equal(first.data?.['value'], 'x');
    assert.equal(first.metadata.resourceVersion, second.metadata.resourceVersion);
    assert.equal('managedFields' in first.metadata, false);
  });

  it('refuses with 404, 409 and 422, each with its reason', async () => {
    const created = await client.create(configMaps, configMap('refused'), signal());
    const stale = { ...created, metadata: { ...created.metadata, resourceVersion: '1' } };
    const operations = [{ op: 'test', path: '/data/value', value: 'y' } as const];

    await assert.rejects(client.get(configMaps, named('nobody'), signal()), {
      code: 404,
      reason: 'NotFound',
    });
    await assert.rejects(client.replace(configMaps, stale, signal()), {
      code: 409,
      reason: 'Conflict',
    });
    await assert.rejects(client.create(configMaps, configMap('refused'), signal()), {
      code: 409,
      reason: 'AlreadyExists',
    });
    await assert.rejects(
      client.jsonPatch(configMaps, named('refused'), { operations, signal: signal() }),
      { code: 422, reason: 'Invalid' },
    );
  });

  it('pages its lists, with one version for all pages', async () => {
    for (const name of ['page-1', 'page-2', 'page-3']) {
      await client.create(configMaps, configMap(name), signal());
    }
    const collection = { resource: configMaps, namespace: NAMESPACE };

    const first = await client.listPage<ConfigMap>(collection, { limit: 2 }, signal());
    const { continueToken = '' } = first;
    const second = await client.listPage<ConfigMap>(
      collection,
      { limit: 500, continueToken },
      signal(),
    );

    assert.equal(first.items.length, 2);
    assert.equal(second.continueToken, undefined);
    assert.equal(second.resourceVersion, first.resourceVersion);
    assert.deepEqual(new Set(second.items.map(({ kind }) => kind)), new Set(['ConfigMap']));
  });

  it('is followed from list to watch, objects that leave the selector included', async () => {
    const labels = { 'weir.dev/test': 'yes' };
    const labelled = (name: string): ConfigMap => ({
      ...configMap(name),
      metadata: { ...named(name), labels },
    });
    await client.create(configMaps, labelled('before'), signal());
    const changes: Change<ConfigMap>[] = [];
    await using reflector = reflect(changes);
    await using metadata = reflect([], { isMetadataOnly: true });
    await reflector.synced(signal());

    await client.create(configMaps, labelled('after'), signal());
    await client.apply(configMaps, labelled('unseen'), { signal: signal() });
    await client.jsonPatch(configMaps, named('after'), {
      operations: [{ op: 'remove', path: '/metadata/labels' }],
      signal: signal(),
    });
    await client.delete(configMaps, named('before'), signal());
    await eventually('all is told', async () => changes.length === 5);
    await eventually('the other has it too', async () => metadata.store.size === 1);

    const told = changes.map(({ key, before, after }) => {
      if (before === undefined) return `+${key}`;
      return after === undefined ? `-${key}` : `~${key}`;
    });
    assert.deepEqual(
      told,
      ['+before', '+after', '+unseen', '-after', '-before'].map(
        (one) => `${one.slice(0, 1)}${NAMESPACE}/${one.slice(1)}`,
      ),
    );
    const [kept] = metadata.store.list();
    assert.equal(kept?.metadata.name, 'unseen');
    assert.equal(kept.kind, 'ConfigMap');
    assert.equal(kept.data, undefined);
  });

  it('keeps a Lease that passes on when it is given away', async () => {
    const times = { durationMs: 3_000, renewDeadlineMs: 2_000, retryMs: 100 };
    const open = (identity: string): LeaderElection => {
      const election = new LeaderElection({
        api: client,
        lease: named('leader'),
        identity,
        onLeading: () => undefined,
        onLost: () => undefined,
        clock: systemClock,
        random: Math.random,
        log: silentLog(),
        metrics: new prometheus.Registry(),
        times,
      });
      election.start();
      return election;
    };
    const one = open('one');
    await eventually('one leads', async () => one.isLeading);
    await using two = open('two');
    await eventually('two knows', async () => two.leader === 'one');

    await one[Symbol.asyncDispose]();

    await eventually('two leads', async () => two.isLeading);
    const { stdout } = await cluster.kubectl([
      ...['get', 'lease', 'leader', '-n', NAMESPACE],
      ...['-o', 'jsonpath={.spec.holderIdentity} {.spec.leaseTransitions}'],
    ]);
    assert.equal(stdout, 'two 1');
  });

  it('takes our Events and counts them up', async () => {
    const regarding = await client.create(configMaps, configMap('told-about'), signal());
    const recorder = openEventRecorder({
      api: client,
      instance: 'test',
      clock: systemClock,
      random: Math.random,
      log: silentLog(),
      metrics: new prometheus.Registry(),
    });
    const occurrence = {
      regarding: {
        ...{ apiVersion: 'v1', kind: 'ConfigMap', uid: regarding.metadata.uid ?? '' },
        ...named('told-about'),
      },
      type: 'Warning',
      reason: 'Bypassable',
      action: 'CheckServices',
      note: 'é'.repeat(600),
    } as const;

    for (let said = 0; said < 3; said += 1) recorder.record(occurrence);
    await recorder[Symbol.asyncDispose]();

    const { items } = await client.listPage<SeriesEvent>(
      { resource: eventResource, namespace: NAMESPACE, fieldSelector: 'reason=Bypassable' },
      {},
      signal(),
    );
    assert.deepEqual(
      items.map(({ reason, series }) => [reason, series?.count]),
      [['Bypassable', 3]],
    );
  });
});
