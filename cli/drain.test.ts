import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { runDrain } from './drain.ts';

interface FakeAdmin extends AsyncDisposable {
  readonly address: string;
  /** `POST /drain`, one for each request. */
  readonly asked: readonly string[];
}

async function openAdmin(status: number, at = 0): Promise<FakeAdmin> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method ?? ''} ${request.url ?? ''}`);
    response.writeHead(status, { connection: 'close' }).end();
  });
  server.listen(at, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    asked,
    [Symbol.asyncDispose]: async () => {
      server.close();
      await once(server, 'close');
    },
  };
}

describe('weir drain', () => {
  it('asks the sidecar once', async () => {
    await using admin = await openAdmin(200);

    await runDrain({ admin: admin.address });

    assert.deepEqual(admin.asked, ['POST /drain']);
  });

  it('asks on a port that fetch would refuse', async () => {
    await using admin = await openAdmin(200, 6566).catch(() => openAdmin(200, 10_080));

    await runDrain({ admin: admin.address });

    assert.deepEqual(admin.asked, ['POST /drain']);
  });

  it('has asked before it holds, and returns after', async () => {
    await using admin = await openAdmin(200);
    const since = performance.now();

    await runDrain({ admin: admin.address, hold: '200ms' });

    assert.deepEqual(admin.asked, ['POST /drain']);
    assert.ok(performance.now() - since >= 199);
  });

  it('holds as well when nobody answers: the app still needs its time', async () => {
    const gone = await openAdmin(200);
    await gone[Symbol.asyncDispose]();
    const since = performance.now();

    await assert.rejects(runDrain({ admin: gone.address, hold: '200ms' }), {
      code: 'ADMIN_UNREACHABLE',
    });

    assert.ok(performance.now() - since >= 199);
  });

  it('refuses a time that is none, and a sidecar that refuses', async () => {
    await using admin = await openAdmin(403);

    await assert.rejects(runDrain({ admin: admin.address }), { code: 'ADMIN_UNREACHABLE' });
    await assert.rejects(runDrain({ admin: admin.address, hold: 'long' }), {
      code: 'CONFIG_INVALID',
      details: {
        where: '--hold',
        given: 'long',
        right: 'a duration: a whole number and ms, s, m or h, such as 50ms or 10s',
      },
    });
  });
});
