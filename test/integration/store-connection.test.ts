// Getting to the store: TLS with a private authority and a client certificate, credentials, and what is said
// when it cannot be reached.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { describe, test } from 'node:test';
import { WeirError } from '../../contract/errors.ts';
import { Limiter } from '../../sidecar/store/limiter.ts';
import { openStore } from '../../sidecar/store/open-store.ts';
import { parseStoreSettings, type StoreSettingsInput } from '../../contract/store-settings.ts';
import { ask } from '../support/asking.ts';
import { makeCertificates, type Certificates } from '../support/certificates.ts';
import { tierOf, type Told } from '../support/limiter-fixture.ts';
import { freePort, openRedisServer } from '../support/redis.ts';

/** Opens a store, asks once, closes it. */
async function askOnce(input: StoreSettingsInput): Promise<Told> {
  await using store = openStore(parseStoreSettings(input));
  await store.connected(AbortSignal.timeout(5_000));
  await using limiter = new Limiter({ store, deadlineMs: 5_000 });
  return await ask(limiter, [limiter.keyed(tierOf({ policy: { uid: randomUUID() } }), 'client')]);
}

/** The sentence with which a store says within half a second that it is not reachable. */
async function whyUnreachable(input: StoreSettingsInput): Promise<string> {
  await using store = openStore(parseStoreSettings(input));
  const error: unknown = await store.connected(AbortSignal.timeout(500)).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof WeirError && error.code === 'STORE_UNREACHABLE');
  return String(error.details['reason']);
}

describe('a store behind TLS', () => {
  /** A server that speaks TLS on `port` and wants a client certificate. */
  async function openTls(
    stack: AsyncDisposableStack,
  ): Promise<{ port: number; certificates: Certificates }> {
    const certificates = stack.use(await makeCertificates());
    const port = await freePort();
    const file = (name: string): string => path.join(certificates.folder, name);
    const args = [
      ...[
        '--tls-port',
        String(port),
        '--tls-auth-clients',
        'yes',
        '--tls-ca-cert-file',
        file('ca.crt'),
      ],
      ...['--tls-cert-file', file('server.crt'), '--tls-key-file', file('server.key')],
    ];
    const server = stack.use(await openRedisServer({ args }));
    await server.client().call('ACL', 'SETUSER', 'weir', 'on', '>s3cret', '~*', '+@all');
    return { port, certificates };
  }

  test('is used with its authority, a client certificate and a user', async () => {
    await using stack = new AsyncDisposableStack();
    const { port, certificates } = await openTls(stack);
    const { ca, cert, key } = certificates;

    const told = await askOnce({
      url: `rediss://127.0.0.1:${port}`,
      credentials: { username: 'weir', password: 's3cret' },
      tls: { ca, cert, key },
    });

    assert.deepEqual([told.kind, told.degraded], ['allowed', false]);
  });

  test('is used under the name its certificate carries', async () => {
    await using stack = new AsyncDisposableStack();
    const { port, certificates } = await openTls(stack);
    const { ca, cert, key } = certificates;
    const url = `rediss://weir:s3cret@127.0.0.1:${port}`;

    const told = await askOnce({ url, tls: { ca, cert, key, serverName: 'redis.test' } });
    const reason = await whyUnreachable({ url, tls: { ca, cert, key, serverName: 'other.test' } });

    assert.equal(told.kind, 'allowed');
    assert.match(reason, /other\.test/);
  });

  test('is not trusted without its authority', async () => {
    await using stack = new AsyncDisposableStack();
    const { port, certificates } = await openTls(stack);
    const { cert, key } = certificates;

    const reason = await whyUnreachable({ url: `rediss://127.0.0.1:${port}`, tls: { cert, key } });

    assert.match(reason, /certificate/);
  });
});

describe('a store that cannot be reached', () => {
  test('says so, and why', async () => {
    const port = await freePort();

    assert.match(await whyUnreachable({ url: `redis://127.0.0.1:${port}` }), /ECONNREFUSED/);
    assert.match(
      await whyUnreachable({ url: `redis+cluster://127.0.0.1:${port}` }),
      /ECONNREFUSED/,
    );
    assert.match(
      await whyUnreachable({ url: `redis+sentinel://127.0.0.1:${port}/main` }),
      /ECONNREFUSED|sentinels/,
    );
  });

  test('because the password is wrong says that', async () => {
    await using server = await openRedisServer();
    await server.client().call('ACL', 'SETUSER', 'weir', 'on', '>s3cret', '~*', '+@all');

    const reason = await whyUnreachable({ url: `redis://weir:guess@127.0.0.1:${server.port}` });

    assert.match(reason, /WRONGPASS/);
  });

  test('says so at once to somebody who does not want to wait', async () => {
    await using store = openStore(parseStoreSettings({ url: 'redis://127.0.0.1:1' }));

    await assert.rejects(store.connected(AbortSignal.abort()), { code: 'STORE_UNREACHABLE' });
  });

  test('but is up later is used then, without being told', async () => {
    await using server = await openRedisServer();
    await server.stop();
    await using store = openStore(parseStoreSettings({ url: server.url }));
    const connected = store.connected(AbortSignal.timeout(10_000));

    assert.ok(await server.start());
    await connected;

    await store.connected(AbortSignal.abort());
  });
});

describe('a store with its own database', () => {
  test('keeps its buckets there', async () => {
    await using server = await openRedisServer();

    await askOnce({ url: `${server.url}/3` });

    assert.match(await server.client().info('keyspace'), /db3:keys=1,/);
  });
});
