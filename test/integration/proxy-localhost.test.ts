import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { openProxy } from '../../sidecar/proxy/proxy.ts';
import { RawSocket } from '../support/raw-socket.ts';
import { openGate } from '../support/simple-gate.ts';
import { closedPort } from '../support/upstream.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** Undefined where this machine has no such address. */
async function listenAt(
  host: string,
): Promise<(AsyncDisposable & { readonly port: number }) | undefined> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => socket.write(OK));
  });
  server.listen({ host, port: 0 });
  const opened = await Promise.race([
    once(server, 'listening').then(() => true),
    once(server, 'error').then(() => false),
  ]);
  if (!opened) return undefined;
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async [Symbol.asyncDispose]() {
      server.close();
      await Promise.resolve();
    },
  };
}

function onFault(error: unknown): void {
  assert.fail(String(error));
}

async function statusThrough(upstreamPort: number): Promise<number> {
  await using proxy = await openProxy(
    { listen: { host: '127.0.0.1', port: 0 }, upstream: { host: 'localhost', port: upstreamPort } },
    openGate,
    { now: () => performance.now(), wallClock: () => Date.now(), onFault },
  );
  await using client = await RawSocket.connect(proxy.address.port);
  client.send('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  return (await client.response()).status;
}

describe('an upstream named localhost', () => {
  for (const host of ['127.0.0.1', '::1']) {
    it(`is found on ${host}`, async (context) => {
      await using upstream = await listenAt(host);
      if (upstream === undefined) {
        context.skip(`this machine has no ${host}`);
        return;
      }

      assert.equal(await statusThrough(upstream.port), 200);
    });
  }

  it('that listens on neither is a 502 or 503 at once', async () => {
    const status = await statusThrough(await closedPort());

    assert([502, 503].includes(status), `${status}`);
  });
});
