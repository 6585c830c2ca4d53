// Where the proxy listens, what it says when it cannot, and connections accepted by somebody else.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, Server, Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { WeirError } from '../../contract/errors.ts';
import { listenAt } from '../../sidecar/proxy/listening.ts';
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
      const advice = 'choose a free port, or 0';
      assert.deepEqual(error.details, { host: '127.0.0.1', port, setting: '--listen', advice });
      assert(error.cause instanceof Error && 'code' in error.cause);
      assert.equal(error.cause.code, 'EADDRINUSE');
      return true;
    });
  });

  it('falls back from :: to all IPv4 addresses where there is no IPv6, if told to', async () => {
    const fallback = new WithoutIpv6();
    const plain = new WithoutIpv6();

    await listenAt(fallback, { host: '::', port: 0, ipv4Fallback: true });

    assert.deepEqual(addressOf(fallback).address, '0.0.0.0');
    await assert.rejects(listenAt(plain, { host: '::', port: 0 }), { code: 'LISTEN_FAILED' });
    fallback.close();
  });

  it('fails when the fallback fails too', async () => {
    await using proxy = await open({ host: '0.0.0.0', port: 0 });
    const { port } = proxy.address;

    await assert.rejects(listenAt(new WithoutIpv6(), { host: '::', port, ipv4Fallback: true }), {
      code: 'LISTEN_FAILED',
    });
  });

  // 2001:db8::/32 is for documentation (RFC 3849): no machine has it.
  it('does not fall back from one IPv6 address to all of IPv4', async () => {
    await assert.rejects(open({ host: '2001:db8::1', port: 0, ipv4Fallback: true }), {
      code: 'LISTEN_FAILED',
    });
  });
});

/** A server on a machine whose kernel has no IPv6. */
class WithoutIpv6 extends Server {
  override listen(...values: unknown[]): this {
    const [options, onListening] = values;
    assert(typeof options === 'object' && options !== null && typeof onListening === 'function');
    if ('host' in options && options.host === '::') {
      const error = Object.assign(new Error('listen EAFNOSUPPORT'), { code: 'EAFNOSUPPORT' });
      setImmediate(() => this.emit('error', error));
      return this;
    }
    return super.listen(options, () => {
      Reflect.apply(onListening, this, []);
    });
  }
}

function addressOf(server: Server): AddressInfo {
  const address = server.address();
  assert(typeof address === 'object' && address !== null);
  return address;
}

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
    await using client = await RawSocket.connect(addressOf(server).port);

    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');

    assert.equal((await client.response()).status, 204);
    assert.equal(proxy.counters.connectionsOpen, 1);
    server.close();
  });

  it("is dropped when it has gone already: its requests would be nobody's", async () => {
    await using proxy = await openProxy({ upstream: { host: '127.0.0.1', port: 1 } }, openGate, {
      now: () => 0,
      wallClock: () => 0,
      onFault: fail,
    });
    // As the system has it for a client that reset its connection: without an address.
    const gone = new Socket();

    proxy.adopt(gone);

    assert(gone.destroyed);
    assert.deepEqual([proxy.counters.connectionsTotal, proxy.counters.connectionsOpen], [1, 0]);
  });
});
