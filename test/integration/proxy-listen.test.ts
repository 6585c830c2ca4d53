// Where the proxy listens, what it says when it cannot, and connections accepted by somebody else.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, it } from 'node:test';
import { WeirError } from '../../contract/errors.ts';
import { openProxy } from '../../sidecar/proxy/proxy.ts';
import type { ListenOptions } from '../../sidecar/proxy/proxy-options.ts';
import type { Proxy } from '../../sidecar/proxy/proxy.ts';
import { RawSocket } from '../support/raw-socket.ts';
import { openGate } from '../support/simple-gate.ts';
import { AnsweringUpstream } from '../support/upstream.ts';

function open(listen: ListenOptions): Promise<Proxy> {
  return openProxy({ listen, upstream: { host: '127.0.0.1', port: 9 } }, openGate, {
    now: () => 0,
    wallClock: () => 0,
    onFault: fail,
  });
}

function fail(error: unknown): never {
  throw error;
}

describe('listening', () => {
  it('says where, with port 0 resolved', async () => {
    await using proxy = await open({ host: '127.0.0.1', port: 0 });

    assert.equal(proxy.address.host, '127.0.0.1');
    assert(proxy.address.port > 0);
  });

  it('fails with the address and the cause when the port is taken', async () => {
    await using proxy = await open({ host: '127.0.0.1', port: 0 });
    const { port } = proxy.address;

    await assert.rejects(open({ host: '127.0.0.1', port }), (error) => {
      assert(error instanceof WeirError);
      assert.equal(error.code, 'LISTEN_FAILED');
      assert.deepEqual(error.details, { host: '127.0.0.1', port });
      assert(error.cause instanceof Error && 'code' in error.cause);
      assert.equal(error.cause.code, 'EADDRINUSE');
      return true;
    });
  });

  // 2001:db8::/32 is for documentation (RFC 3849): no machine has it, which is what missing IPv6 looks like to bind.
  it('falls back to all IPv4 addresses where the IPv6 address is not there, if told to', async () => {
    await using proxy = await open({ host: '2001:db8::1', port: 0, ipv4Fallback: true });

    assert.equal(proxy.address.host, '0.0.0.0');
    await assert.rejects(open({ host: '2001:db8::1', port: 0 }), { code: 'LISTEN_FAILED' });
  });

  it('fails when the fallback fails too', async () => {
    await using proxy = await open({ host: '0.0.0.0', port: 0 });
    const { port } = proxy.address;

    await assert.rejects(open({ host: '2001:db8::1', port, ipv4Fallback: true }), {
      code: 'LISTEN_FAILED',
    });
  });
});

describe('a connection that somebody else accepted', () => {
  it('is served like any other, without a listener', async () => {
    await using upstream = await AnsweringUpstream.open('HTTP/1.1 204 No Content\r\n\r\n');
    await using proxy = await openProxy(
      { upstream: { host: '127.0.0.1', port: upstream.port } },
      openGate,
      { now: () => 0, wallClock: () => 0, onFault: fail },
    );
    const server = createServer((socket) => {
      proxy.adopt(socket);
    }).listen({ host: '127.0.0.1', port: 0 });
    await once(server, 'listening');
    const address = server.address();
    assert(typeof address === 'object' && address !== null);
    await using client = await RawSocket.connect(address.port);

    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');

    assert.equal((await client.response()).status, 204);
    assert.equal(proxy.counters.connectionsOpen, 1);
    server.close();
  });
});
