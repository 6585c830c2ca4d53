import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openAdmin, type Admin } from './server.ts';

interface State {
  reason: string | undefined;
  drained: number;
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

  it('names the address that is taken', async () => {
    await using admin = await openSubject({ reason: undefined, drained: 0 });

    await assert.rejects(
      openAdmin(admin.address, {
        whyNotReady: () => undefined,
        metrics: () => Promise.resolve(''),
        describe: () => ({}),
        startDraining: () => undefined,
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
      },
    );

    const answer = await ask(admin, '/metrics');

    assert.equal(answer.status, 500);
    assert.equal((await ask(admin, '/healthz')).status, 200);
  });
});
