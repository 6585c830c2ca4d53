import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import prometheus from 'prom-client';
import { WeirError } from '../../contract/errors.ts';
import { ApiError } from '../../operator/kube/api-error.ts';
import { clientOf, openKubeClient } from '../../operator/kube/client.ts';
import { openAccount } from '../../operator/kube/credentials.ts';
import { ApiServerStandIn, configMaps, type ConfigMap } from '../support/api-server.ts';
import { makeCertificates } from '../support/certificates.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { SteppedClock } from '../support/stepped-clock.ts';

const signal = (): AbortSignal => AbortSignal.timeout(10_000);
const object: ConfigMap = { metadata: { namespace: 'a', name: 'one' }, data: { value: 'x' } };

async function folder(
  files: Readonly<Record<string, string>>,
): Promise<AsyncDisposable & { path: string }> {
  const where = await mkdtemp(path.join(tmpdir(), 'weir-kube-'));
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(where, name), text);
  return {
    path: where,
    [Symbol.asyncDispose]: () => rm(where, { recursive: true, force: true }),
  };
}

describe('the client', () => {
  it('applies with our field manager, by force, as YAML that is JSON', async () => {
    await using server = await ApiServerStandIn.open();
    await using client = server.client();

    await client.apply(configMaps, object, { signal: signal() });
    await client.apply(configMaps, object, { subresource: 'status', signal: signal() });

    const [first, second] = server.requests;
    assert.equal(first?.method, 'PATCH');
    assert.equal(first.headers['content-type'], 'application/apply-patch+yaml');
    assert.equal(
      first.url.pathname + first.url.search,
      '/api/v1/namespaces/a/configmaps/one?fieldManager=weir-operator&force=true',
    );
    assert.deepEqual(JSON.parse(first.body), { ...object, apiVersion: 'v1', kind: 'ConfigMap' });
    assert.equal(second?.url.pathname, '/api/v1/namespaces/a/configmaps/one/status');
  });

  it('keeps its connections between calls, and counts the calls', async () => {
    await using server = await ApiServerStandIn.open();
    const registry = new prometheus.Registry();
    const access = {
      server: server.url,
      namespace: 'default',
      credentials: () => Promise.resolve({ headers: {}, tls: {} }),
      forget: () => undefined,
    };
    await using client = clientOf(access, { metrics: registry });
    server.put('a', 'one', 'x');

    for (let call = 0; call < 5; call += 1) {
      await client.get(configMaps, { namespace: 'a', name: 'one' }, signal());
    }
    await assert.rejects(client.get(configMaps, { namespace: 'a', name: 'no' }, signal()));

    const text = await registry.metrics();
    assert.match(text, /rest_client_requests_total\{code="200",method="GET",host="[^"]+"\} 5/);
    assert.match(text, /rest_client_requests_total\{code="404",method="GET",host="[^"]+"\} 1/);
    // A call may begin before the connection of the last one is free.
    assert.ok(new Set(server.requests.map(({ port }) => port)).size <= 2);
  });

  it('throws what the server said, and never the token', async () => {
    await using server = await ApiServerStandIn.open();
    await using client = server.client({ token: 'very-secret' });

    const error = await client
      .get(configMaps, { namespace: 'a', name: 'no' }, signal())
      .catch((cause: unknown) => cause);

    assert.ok(error instanceof ApiError);
    assert.deepEqual([error.code, error.reason], [404, 'NotFound']);
    assert.match(error.message, /GET \/api\/v1\/namespaces\/a\/configmaps\/no: it is 404/);
    assert.equal(JSON.stringify(error).includes('very-secret'), false);
  });

  it('gives up at its deadline, at the signal, and when nobody is there', async () => {
    const server = await ApiServerStandIn.open();
    await using hasty = server.client({ deadlineMs: 50 });
    await using client = server.client();
    const never = Promise.withResolvers<undefined>();
    const held = { kind: 'held', release: never.promise.then(() => undefined) } as const;
    server.watchScript.push(held, held);
    const from = { resourceVersion: '1', timeoutSeconds: 240 };
    const own = new AbortController();

    const late = hasty.openWatch({ resource: configMaps }, from, signal());
    await assert.rejects(late, { code: 0, reason: 'Timeout' });
    const aborted = client.openWatch({ resource: configMaps }, from, own.signal);
    own.abort(new Error('enough'));
    await assert.rejects(aborted, /enough/);
    await server[Symbol.asyncDispose]();

    await assert.rejects(client.read('/version', signal()), { code: 0, reason: 'Unreachable' });
  });

  it('refuses as a list what is none, so that nothing is taken for deleted', async () => {
    await using server = await ApiServerStandIn.open();
    await using client = server.client();
    for (const text of [
      '<html>',
      '{}',
      '{"metadata":{"resourceVersion":"1"}}',
      '[',
      '{"items":[]}',
    ]) {
      server.listScript.push({ kind: 'bytes', text });

      await assert.rejects(client.listPage({ resource: configMaps }, {}, signal()), {
        code: 0,
        reason: 'Unreadable',
      });
    }
  });

  it('takes a kubeconfig with a token', async () => {
    await using server = await ApiServerStandIn.open();
    await using files = await folder({
      config: JSON.stringify({
        clusters: [{ name: 'c', cluster: { server: server.url.href } }],
        users: [{ name: 'u', user: { token: 'of-the-file' } }],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace: 'mine' } }],
        'current-context': 'x',
      }),
    });
    await using client = await openKubeClient({ kubeConfig: path.join(files.path, 'config') });
    server.put('a', 'one', 'x');

    await client.get(configMaps, { namespace: 'a', name: 'one' }, signal());

    assert.equal(client.namespace, 'mine');
    assert.equal(server.requests[0]?.headers['authorization'], 'Bearer of-the-file');
  });

  it('says which kubeconfig cannot be used', async () => {
    await using files = await folder({ empty: '{}', broken: '{' });

    for (const name of ['missing', 'empty', 'broken']) {
      const file = path.join(files.path, name);
      const error = await openKubeClient({ kubeConfig: file }).catch((cause: unknown) => cause);

      assert.ok(error instanceof WeirError, name);
      assert.deepEqual([error.code, error.details['file']], ['KUBE_CONFIG_INVALID', file]);
    }
  });

  it('takes a rotated CA without a restart, and trusts no other', async () => {
    await using old = await makeCertificates();
    await using next = await makeCertificates();
    const pair = async ({
      folder: where,
    }: {
      folder: string;
    }): Promise<{ cert: string; key: string }> => ({
      cert: await readFile(path.join(where, 'server.crt'), 'utf8'),
      key: await readFile(path.join(where, 'server.key'), 'utf8'),
    });
    const server = createServer(await pair(old), (_request, response) => {
      response.end('{}');
    });
    const port = await listenOnLoopback(server);
    await using stack = new AsyncDisposableStack();
    stack.defer(() => {
      server.close();
      server.closeAllConnections();
    });
    await using files = await folder({ token: 't', 'ca.crt': old.ca, namespace: 'mine' });
    const clock = new SteppedClock();
    const url = new URL(`https://127.0.0.1:${port}`);
    const access = await openAccount({ server: url, folder: files.path, clock });
    await using client = clientOf(access);
    await client.read('/version', signal());

    server.setSecureContext(await pair(next));
    server.closeAllConnections();
    await assert.rejects(client.read('/version', signal()), { reason: 'Unreachable' });
    await writeFile(path.join(files.path, 'ca.crt'), next.ca);
    await clock.advance(60_000);

    assert.deepEqual(await client.read('/version', signal()), {});
  });

  it("reads a pod's token again after a minute, and at once when it was refused", async () => {
    await using files = await folder({ token: 'first\n', 'ca.crt': 'ca', namespace: 'mine' });
    const clock = new SteppedClock();
    const server = new URL('https://127.0.0.1');
    const access = await openAccount({ server, folder: files.path, clock });
    const token = async (): Promise<string | undefined> =>
      (await access.credentials()).headers['authorization'];

    assert.equal(await token(), 'Bearer first');
    await writeFile(path.join(files.path, 'token'), 'second');
    await clock.advance(59_999);
    assert.equal(await token(), 'Bearer first');
    await clock.advance(1);
    assert.equal(await token(), 'Bearer second');
    await writeFile(path.join(files.path, 'token'), 'third');
    access.forget();

    assert.equal(await token(), 'Bearer third');
    assert.equal(access.namespace, 'mine');
  });
});
