import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AppHealthAnswer } from '../app-health/app-health.ts';
import type { Asker } from '../app-health/http-check.ts';
import { RawSocket } from '../../test/support/raw-socket.ts';
import { MOST_CONNECTIONS } from './open-connections.ts';
import { openAdmin, type Admin } from './server.ts';

interface State {
  reason: string | undefined;
  drained: number;
}

/** Says what it was asked. */
function appHealth(path: string, { podAddress, userAgent }: Asker): Promise<AppHealthAnswer> {
  return Promise.resolve({ status: 203, body: [path, podAddress, userAgent].join(' ') });
}

async function openSubject(state: State): Promise<Admin> {
  return openAdmin(
    { host: '127.0.0.1', port: 0 },
    {
      whyNotReady: () => state.reason,
      metrics: () => Promise.resolve('weir_up 1\n'),
      describe: () => ({ listen: 'here' }),
      startDraining: () => {
        state.drained += 1;
      },
      appHealth,
    },
  );
}

function ask(admin: Admin, path: string, method = 'GET'): Promise<Response> {
  return fetch(`http://127.0.0.1:${admin.address.port}${path}`, { method });
}

describe('the admin listener', () => {
  it('is healthy while it answers, and ready while no reason speaks against it', async () => {
    const state: State = { reason: undefined, drained: 0 };
    await using admin = await openSubject(state);

    assert.equal((await ask(admin, '/healthz')).status, 200);
    assert.equal((await ask(admin, '/readyz?verbose')).status, 200);
    state.reason = 'draining';
    const answer = await ask(admin, '/readyz');

    assert.equal(answer.status, 503);
    assert.equal(await answer.text(), 'not ready: draining\n');
  });

  it('serves metrics as text and answers HEAD without a body', async () => {
    await using admin = await openSubject({ reason: undefined, drained: 0 });

    const answer = await ask(admin, '/metrics');
    const head = await ask(admin, '/metrics', 'HEAD');

    assert.match(answer.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
    assert.equal(await answer.text(), 'weir_up 1\n');
    assert.equal(await head.text(), '');
  });

  it('gives its configuration and drains for loopback', async () => {
    const state: State = { reason: undefined, drained: 0 };
    await using admin = await openSubject(state);

    const config: unknown = await (await ask(admin, '/config')).json();
    const drain = await ask(admin, '/drain', 'POST');

    assert.deepEqual(config, { listen: 'here' });
    assert.equal(drain.status, 200);
    assert.equal(state.drained, 1);
  });

  it('does not drain on GET, and says what would', async () => {
    const state: State = { reason: undefined, drained: 0 };
    await using admin = await openSubject(state);

    const answer = await ask(admin, '/drain');

    assert.equal(answer.status, 405);
    assert.equal(await answer.text(), 'use POST /drain\n');
    assert.equal(state.drained, 0);
  });

  it('lists what it knows when asked for something else', async () => {
    await using admin = await openSubject({ reason: undefined, drained: 0 });

    const answer = await ask(admin, '/');

    assert.equal(answer.status, 404);
    assert.match(await answer.text(), /GET \/readyz/);
  });

  it('hands questions about the app on, with who asks and where', async () => {
    await using admin = await openSubject({ reason: 'draining', drained: 0 });
    const url = `http://127.0.0.1:${admin.address.port}/app-health/app/readyz`;

    const answer = await fetch(url, { headers: { 'user-agent': 'kube-probe/1.36' } });
    const posted = await fetch(url, { method: 'POST' });

    assert.equal(answer.status, 203);
    assert.equal(await answer.text(), '/app-health/app/readyz 127.0.0.1 kube-probe/1.36');
    assert.equal(posted.status, 404);
  });

  it('names the address that is taken', async () => {
    await using admin = await openSubject({ reason: undefined, drained: 0 });

    await assert.rejects(
      openAdmin(admin.address, {
        whyNotReady: () => undefined,
        metrics: () => Promise.resolve(''),
        describe: () => ({}),
        startDraining: () => undefined,
        appHealth,
      }),
      { code: 'LISTEN_FAILED' },
    );
  });

  it('reports a failure of what it asks, and stays up', async () => {
    await using admin = await openAdmin(
      { host: '127.0.0.1', port: 0 },
      {
        whyNotReady: () => undefined,
        metrics: () => Promise.reject(new Error('no numbers')),
        describe: () => ({}),
        startDraining: () => undefined,
        appHealth,
      },
    );

    const answer = await ask(admin, '/metrics');

    assert.equal(answer.status, 500);
    assert.equal((await ask(admin, '/healthz')).status, 200);
  });

  it('answers a probe while as many silent connections are open as it holds', async () => {
    await using admin = await openSubject({ reason: undefined, drained: 0 });
    const silent: RawSocket[] = [];
    for (let i = 0; i < MOST_CONNECTIONS; i += 1) {
      silent.push(await RawSocket.connect(admin.address.port));
    }

    const answer = await ask(admin, '/healthz');

    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('connection'), 'close');
    await silent[0]?.gone();
    for (const connection of silent) await connection[Symbol.asyncDispose]();
  });

  it('ends a connection that says nothing', async () => {
    await using admin = await openSubject({ reason: undefined, drained: 0 });
    await using silent = await RawSocket.connect(admin.address.port);

    await silent.gone();
  });

  for (const [route, fields] of [
    ['POST /drain', 'Host: 127.0.0.1\r\nOrigin: http://127.0.0.1:3000\r\n'],
    ['POST /drain', 'Host: localhost\r\nOrigin: null\r\n'],
    ['POST /drain', 'Host: rebound.example:15090\r\n'],
    ['POST /drain', 'Host: localhost.example\r\n'],
    ['GET /config', 'Host: 127.0.0.1.example\r\n'],
    ['GET /config', 'Host: 192.0.2.1\r\n'],
  ] as const) {
    it(`refuses ${route} to a web page: ${fields.trim().replace('\r\n', ', ')}`, async () => {
      const state: State = { reason: undefined, drained: 0 };
      await using admin = await openSubject(state);
      await using client = await RawSocket.connect(admin.address.port);

      client.send(`${route} HTTP/1.1\r\n${fields}\r\n`);

      assert.equal((await client.response()).status, 403);
      assert.equal(state.drained, 0);
    });
  }

  for (const host of ['localhost', 'LOCALHOST:15090', '127.0.0.1', '127.8.8.8:1', '[::1]:15090']) {
    it(`drains for Host: ${host}`, async () => {
      const state: State = { reason: undefined, drained: 0 };
      await using admin = await openSubject(state);
      await using client = await RawSocket.connect(admin.address.port);

      client.send(`POST /drain HTTP/1.1\r\nHost: ${host}\r\n\r\n`);

      assert.equal((await client.response()).status, 200);
      assert.equal(state.drained, 1);
    });
  }
});
