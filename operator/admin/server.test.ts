import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import prometheus from 'prom-client';
import { openAdminServer, type AdminServer } from './server.ts';

interface Fixture extends AsyncDisposable {
  readonly server: AdminServer;
  problem: string | undefined;
}

async function open(): Promise<Fixture> {
  const metrics = new prometheus.Registry();
  new prometheus.Counter({ name: 'weir_test_total', help: 'x', registers: [metrics] });
  const fixture: Fixture = {
    problem: undefined,
    server: await openAdminServer({
      host: '127.0.0.1',
      port: 0,
      live: [],
      ready: [
        { name: 'cache-pods', problem: () => fixture.problem },
        { name: 'certificate', problem: () => undefined },
      ],
      metrics,
    }),
    [Symbol.asyncDispose]: () => fixture.server[Symbol.asyncDispose](),
  };
  return fixture;
}

describe('the admin server', () => {
  it('says ready check by check, and which one is not, in words or JSON', async () => {
    await using fixture = await open();
    const url = `${fixture.server.url}/readyz`;

    const ready = await fetch(url);
    assert.equal(ready.status, 200);
    assert.equal(await ready.text(), '[+] cache-pods: ok\n[+] certificate: ok\nok\n');
    fixture.problem = 'not listed yet';
    const notReady = await fetch(url);
    const asJson = await fetch(url, { headers: { accept: 'application/json' } });

    assert.equal(notReady.status, 503);
    assert.match(
      await notReady.text(),
      /^\[-\] cache-pods: not listed yet\n\[\+\] certificate: ok\n/,
    );
    assert.deepEqual(await asJson.json(), {
      ok: false,
      checks: [{ name: 'cache-pods', problem: 'not listed yet' }, { name: 'certificate' }],
    });
  });

  it('is alive while it is not ready', async () => {
    await using fixture = await open();
    fixture.problem = 'not listed yet';

    assert.equal((await fetch(`${fixture.server.url}/healthz`)).status, 200);
  });

  it('gives its metrics to Prometheus', async () => {
    await using fixture = await open();

    const answer = await fetch(`${fixture.server.url}/metrics`);

    assert.match(answer.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
    assert.match(await answer.text(), /^weir_test_total 0$/m);
  });

  it('says which address it cannot have', async () => {
    await using fixture = await open();
    const { port } = new URL(fixture.server.url);
    const metrics = new prometheus.Registry();

    const second = openAdminServer({
      host: '127.0.0.1',
      port: Number(port),
      live: [],
      ready: [],
      metrics,
    });

    await assert.rejects(second, {
      code: 'LISTEN_FAILED',
      details: { address: `127.0.0.1:${port}` },
    });
  });
});
