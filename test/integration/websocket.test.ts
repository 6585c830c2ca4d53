// A WebSocket library on both ends of a sidecar, and the browsers' EventSource: what stays open for hours.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { EventSource } from 'undici';
import { WebSocket, WebSocketServer } from 'ws';
import { listenOnLoopback } from '../support/loopback.ts';
import { eventually } from '../support/redis.ts';
import { SidecarProcess } from '../support/sidecar.ts';

function policy(capacity: number): string {
  return `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: opened }
spec:
  selector: {}
  rules:
    - name: all
      match: [{ methods: [GET] }]
      buckets: [{ capacity: ${capacity}, refill: { tokens: 1, every: 1h } }]
`;
}

/** Sends back what it hears, as it heard it. */
class EchoServer implements AsyncDisposable {
  readonly port: number;
  readonly #server: WebSocketServer;

  private constructor(server: WebSocketServer) {
    this.#server = server;
    const { port } = server.address() as AddressInfo;
    this.port = port;
  }

  static async open(): Promise<EchoServer> {
    const server = new WebSocketServer({
      ...{ port: 0, host: '127.0.0.1', perMessageDeflate: true, maxPayload: 8_000_000 },
      handleProtocols: () => 'echo.v1',
    });
    await once(server, 'listening');
    server.on('connection', (socket) => {
      socket.on('error', () => undefined);
      socket.on('message', (data, isBinary) => {
        if (!isBinary && (data as Buffer).toString() === 'close') socket.close(4_001, 'as asked');
        else socket.send(data, { binary: isBinary });
      });
    });
    return new EchoServer(server);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#server.clients) client.terminate();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

async function connect(port: number): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/chat`, 'echo.v1');
  await once(socket, 'open');
  return socket;
}

async function echo(socket: WebSocket, data: Buffer | string): Promise<Buffer> {
  const heard = once(socket, 'message') as Promise<[Buffer, boolean]>;
  socket.send(data);
  return (await heard)[0];
}

describe('a WebSocket through a sidecar', () => {
  it('carries texts, bytes of every length, fragments, pings, and the close of either side', async () => {
    await using server = await EchoServer.open();
    await using sidecar = await SidecarProcess.open({
      files: { 'p.yaml': policy(10) },
      upstreamPort: server.port,
    });
    const socket = await connect(sidecar.port);

    assert.equal(socket.protocol, 'echo.v1');
    assert.match(socket.extensions, /permessage-deflate/);
    for (const length of [0, 1, 125, 126, 65_535, 65_536, 3_000_000]) {
      const data = randomBytes(length);
      assert.deepEqual(await echo(socket, data), data, `${length} bytes`);
    }
    assert.equal(String(await echo(socket, 'grüße ✓')), 'grüße ✓');
    const whole = once(socket, 'message') as Promise<[Buffer, boolean]>;
    for (const part of ['one ', 'two ', 'three']) socket.send(part, { fin: part === 'three' });
    assert.equal(String((await whole)[0]), 'one two three');
    const pong = once(socket, 'pong') as Promise<[Buffer]>;
    socket.ping('are you there');
    assert.equal(String((await pong)[0]), 'are you there');
    socket.send('close');
    const [code, reason] = (await once(socket, 'close')) as [number, Buffer];
    assert.deepEqual([code, String(reason)], [4_001, 'as asked']);
  });

  it('is charged once, however much it carries, and refused with 429 over the limit', async () => {
    await using server = await EchoServer.open();
    await using sidecar = await SidecarProcess.open({
      files: { 'p.yaml': policy(2) },
      upstreamPort: server.port,
    });
    const [first, second] = [await connect(sidecar.port), await connect(sidecar.port)];
    for (let i = 0; i < 20; i += 1) await echo(first, `message ${i}`);

    const third = new WebSocket(`ws://127.0.0.1:${sidecar.port}/chat`);
    const [, response] = (await once(third, 'unexpected-response')) as [
      unknown,
      { statusCode: number },
    ];

    assert.equal(response.statusCode, 429);
    assert.equal(await sidecar.metric('weir_tunnels'), 2);
    for (const socket of [first, second]) socket.terminate();
    third.on('error', () => undefined);
    third.terminate();
    await eventually('both have gone', async () => (await sidecar.metric('weir_tunnels')) === 0);
  });

  it('lives through the drain of its pod for as long as the grace lasts', async () => {
    await using server = await EchoServer.open();
    await using sidecar = await SidecarProcess.open({
      files: { 'p.yaml': policy(2) },
      upstreamPort: server.port,
    });
    const socket = await connect(sidecar.port);

    await sidecar.ask('/drain', 'POST');
    sidecar.kill('SIGTERM');

    assert.equal(String(await echo(socket, 'still here')), 'still here');
    socket.close();
    await once(socket, 'close');
    assert.equal(await sidecar.exited, 0);
  });
});

describe('an EventSource through a sidecar', () => {
  it('hears each event when it is sent, and comes back after the stream was cut', async () => {
    let streams = 0;
    const server = createServer((request, response) => {
      streams += 1;
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
      const last = String(request.headers['last-event-id'] ?? 'nothing');
      response.write(`retry: 10
id: ${streams}
data: from ${last}

`);
      if (streams === 1) setImmediate(() => response.destroy());
    });
    await using sidecar = await SidecarProcess.open({
      files: { 'p.yaml': policy(2) },
      upstreamPort: await listenOnLoopback(server),
    });
    const source = new EventSource(`http://127.0.0.1:${sidecar.port}/events`);
    const heard: string[] = [];
    source.addEventListener('message', (event) => heard.push(String(event.data)));

    await eventually('it has come back', () => Promise.resolve(heard.length === 2));

    assert.deepEqual(heard, ['from nothing', 'from 1']);
    source.close();
    server.closeAllConnections();
    server.close();
  });
});
