// Who is let in to a stream, decided by a real API server: tokens as a kubelet would ask for them.
// x509, which the control plane's credentials are made with, wants it before it is loaded.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { STREAM_AUDIENCE } from '../../contract/names.ts';
import { openKubeClient, type KubeClient } from '../../operator/kube/client.ts';
import { compiledPolicy } from '../support/compiled-policy.ts';
import { OperatorStream } from '../support/operator-stream.ts';
import { eventually } from '../support/redis.ts';
import { StreamClient } from '../support/stream-client.ts';
import type { Cluster } from './cluster.ts';
import { textAt } from './json-value.ts';
import { openCluster } from './test-cluster.ts';

const NAMESPACE = 'weir-stream';

describe('a stream, with tokens of a real API server', () => {
  let cluster: Cluster;
  let client: KubeClient;
  let operator: OperatorStream;

  before(async () => {
    cluster = await openCluster();
    client = await openKubeClient({ kubeConfig: cluster.kubeconfig });
    operator = await OperatorStream.open({ reviewer: client });
    await cluster.kubectl(['create', 'namespace', NAMESPACE]);
    await eventually('its service account', async () => {
      const path = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/default`;
      return (await cluster.api.request('GET', path)).status === 200;
    });
    operator.world.policies = [];
    operator.world.settings = { store: { url: 'redis://:secret@127.0.0.1:1' } };
  });

  after(async () => {
    await operator[Symbol.asyncDispose]();
    await cluster.kubectl(['delete', 'namespace', NAMESPACE, '--wait=false']);
    await client[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  /** A pod of the cluster, known to the operator, with a policy of its own. Gives its uid. */
  async function addPod(name: string): Promise<string> {
    const container = { name: 'app', image: 'registry.invalid/app' };
    const body = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: { serviceAccountName: 'default', containers: [container] },
    };
    const path = `/api/v1/namespaces/${NAMESPACE}/pods`;
    const created = await cluster.api.request('POST', path, { body });
    assert.equal(created.status, 201, textAt(created.body, 'message'));
    const uid = textAt(created.body, 'metadata', 'uid');
    operator.world.addPod(uid, { namespace: NAMESPACE, name });
    operator.world.ofPod.set(uid, [compiledPolicy({ uid: `policy-${name}`, name: `of-${name}` })]);
    return uid;
  }

  interface TokenOptions {
    readonly audience?: string;
    readonly pod?: { readonly name: string; readonly uid: string };
  }

  async function requestToken({ audience = STREAM_AUDIENCE, pod }: TokenOptions): Promise<string> {
    const bound = { apiVersion: 'v1', kind: 'Pod', ...pod };
    const body = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {
        audiences: [audience],
        expirationSeconds: 600,
        ...(pod === undefined ? {} : { boundObjectRef: bound }),
      },
    };
    const path = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/default/token`;
    const answer = await cluster.api.request('POST', path, { body });
    assert.equal(answer.status, 201, textAt(answer.body, 'message'));
    return textAt(answer.body, 'status', 'token');
  }

  function hello(stream: StreamClient, uid: string, name: string): void {
    stream.send({
      type: 'hello',
      protocol: 1,
      pod: { namespace: NAMESPACE, name, uid },
      sidecar: { version: '1', formats: [1] },
      have: { version: '', sources: [], origin: 'none' },
    });
  }

  it('gives a pod its own rules and the way to the store', async () => {
    const uid = await addPod('right');
    using stream = new StreamClient(operator, {
      token: await requestToken({ pod: { name: 'right', uid } }),
    });

    hello(stream, uid, 'right');
    await eventually('its rules', () => stream.frames.length > 0);

    const [frame] = stream.frames;
    assert(frame?.type === 'config');
    assert.deepEqual(
      frame.policies.map(({ name }) => name),
      ['of-right'],
    );
    assert.match(frame.settings.store?.url ?? '', /secret/);
  });

  it('gives no pod the rules of another by its saying so', async () => {
    const [own, other] = [await addPod('own'), await addPod('other')];
    using stream = new StreamClient(operator, {
      token: await requestToken({ pod: { name: 'own', uid: own } }),
    });

    hello(stream, other, 'other');

    assert.equal(await stream.bye(), 'Unauthorized');
    assert.equal(stream.frames.length, 1, 'neither rules nor settings came before');
  });

  it('is closed to tokens of another audience, of no pod, and of nobody', async () => {
    const uid = await addPod('strangers');
    const pod = { name: 'strangers', uid };
    const good = await requestToken({ pod });
    const [head = '', payload = '', signature = ''] = good.split('.');
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<
      string,
      unknown
    >;
    const forge = (changed: Record<string, unknown>): string =>
      [
        head,
        Buffer.from(JSON.stringify({ ...claims, ...changed })).toString('base64url'),
        signature,
      ].join('.');
    const tokens = {
      'for the API server': await requestToken({ pod, audience: 'https://kubernetes.default.svc' }),
      'for somebody else': await requestToken({ pod, audience: 'weir.dev/stream2' }),
      'bound to no pod': await requestToken({}),
      'with another signature': [head, payload, signature.split('').reverse().join('')].join('.'),
      'with a longer life': forge({ exp: Math.floor(Date.now() / 1_000) + 86_400 }),
      'that has expired': forge({ exp: 1 }),
      'without a signature': `${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload}.x`,
    };

    for (const [which, token] of Object.entries(tokens)) {
      using stream = new StreamClient(operator, { token });
      assert.equal(await stream.answered(), 401, which);
      assert.equal(stream.frames.length, 0);
    }
  });

  it('is closed to the token of a pod that was deleted, whatever our cache still holds', async () => {
    const uid = await addPod('deleted');
    const token = await requestToken({ pod: { name: 'deleted', uid } });
    await cluster.kubectl([
      '-n',
      NAMESPACE,
      'delete',
      'pod',
      'deleted',
      '--grace-period=0',
      '--force',
    ]);

    using stream = new StreamClient(operator, { token });

    assert.equal(await stream.answered(), 401);
  });

  it('is closed to a pod that the operator does not know', async () => {
    const uid = await addPod('unknown');
    const token = await requestToken({ pod: { name: 'unknown', uid } });
    operator.world.removePod(uid);

    using stream = new StreamClient(operator, { token });

    assert.equal(await stream.answered(), 403);
  });

  it('is known to be impossible when tokens may not be reviewed', async () => {
    const kubeConfig = await cluster.kubeConfigFor({
      namespace: NAMESPACE,
      serviceAccount: 'default',
    });
    await using nobody = await openKubeClient({ kubeConfig });
    await using other = await OperatorStream.open({ reviewer: nobody });

    const [may, mayNot] = await Promise.all(
      [operator, other].map(({ server }) => server.whyNotReady(AbortSignal.timeout(10_000))),
    );

    assert.equal(may, undefined);
    assert.match(mayNot ?? '', /tokenreviews/);
  });
});
