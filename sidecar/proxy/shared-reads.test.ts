import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { readingInto } from './shared-reads.ts';

/** A connection as the proxy's listener gets it, and its other end. */
async function accepted(server: Server): Promise<[accepted: Socket, client: Socket]> {
  const connected = once(server, 'connection');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  const client = connect(address.port, '127.0.0.1');
  const [socket] = (await connected) as [Socket];
  return [socket, client];
}

async function listening(): Promise<Server & AsyncDisposable> {
  const server = createServer({ allowHalfOpen: true });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return server;
}

describe('an accepted connection', () => {
  it('reads into the shared buffer, in this version of Node', async () => {
    const server = await listening();
    const connected = Promise.withResolvers<Socket>();
    const lengths: number[] = [];
    const buffer = Buffer.alloc(16);
    server.on('connection', (socket) => {
      const reading = readingInto(buffer, socket, (length) => lengths.push(length));
      assert.notEqual(reading, socket);
      connected.resolve(reading);
    });
    const [, client] = await accepted(server);
    const socket = await connected.promise;

    client.end('bytes');
    await once(socket.resume(), 'end');

    assert.deepEqual(lengths, [5]);
    assert.equal(buffer.toString('latin1', 0, 5), 'bytes');
    assert.equal(socket.allowHalfOpen, true);
    assert.equal(socket.writable, true);
    socket.destroy();
    server.close();
  });

  it('tells whoever handed it over when it closes', async () => {
    const server = await listening();
    const closed = Promise.withResolvers<boolean>();
    server.on('connection', (socket) => {
      socket.once('close', (failed: boolean) => {
        closed.resolve(failed);
      });
      readingInto(Buffer.alloc(16), socket, () => undefined).destroy();
    });

    await accepted(server);

    assert.equal(await closed.promise, false);
    server.close();
  });

  it('that has gone already stays what it is', async () => {
    const server = await listening();
    const [socket] = await accepted(server);
    socket.destroy();
    await once(socket, 'close');

    assert.equal(
      readingInto(Buffer.alloc(16), socket, () => undefined),
      socket,
    );
    server.close();
  });
});
