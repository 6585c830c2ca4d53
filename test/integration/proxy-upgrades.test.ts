// WebSocket and other upgrades: one verdict, then a tunnel with both half-closes.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ProxyFixture } from '../support/proxy-fixture.ts';
import { eventually } from '../support/raw-socket.ts';
import type { RawSocket } from '../support/raw-socket.ts';
import { ScriptedUpstream } from '../support/upstream.ts';

const upgrade = (fields = ''): string =>
  `GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${fields}\r\n`;
const switching =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nDate: d\r\n\r\n';

async function openTunnel(
  fixture: ProxyFixture,
  upstream: ScriptedUpstream,
): Promise<{ client: RawSocket; application: RawSocket }> {
  const client = await fixture.connect();
  client.send(upgrade());
  const application = await upstream.accept();
  await application.until('\r\n\r\n');
  application.send(switching);
  assert.equal((await client.response()).status, 101);
  return { client, application };
}

describe('an upgrade', () => {
  it('is asked of the application and answered to the client with its fields', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    fixture.gate.verdict = {
      kind: 'allowed',
      fields: 'RateLimit: "p";r=1\r\n',
      quota: { form: 'RateLimit', remaining: 1 },
      afterResponse: undefined,
    };
    const client = await fixture.connect();
    client.send(upgrade());
    const application = await upstream.accept();

    assert.match(
      await application.until('\r\n\r\n'),
      /\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n$/,
    );
    application.send(switching);

    assert.equal(
      (await client.response()).head,
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nDate: d\r\nRateLimit: "p";r=1\r\n' +
        'Connection: Upgrade\r\n\r\n',
    );
  });

  it('becomes a tunnel for bytes both ways, those that came early first, after one verdict', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(`${upgrade()}GET /early HTTP/1.1\r\n`);
    const application = await upstream.accept();
    await application.until('\r\n\r\n');
    application.send(`${switching}\xffhello`);

    await client.until('\r\n\r\n');
    assert.equal(await client.bytes(6), '\xffhello');
    assert.equal(await application.until('\r\n'), 'GET /early HTTP/1.1\r\n');
    client.send('\0ping');
    assert.equal(await application.bytes(5), '\0ping');
    application.send('pong');
    assert.equal(await client.bytes(4), 'pong');

    assert.deepEqual(fixture.gate.seen, ['/chat']);
    assert.equal(fixture.proxy.counters.tunnelsOpen, 1);
    assert.equal(fixture.proxy.counters.responses[1], 1);
  });

  it('passes the client’s half-close while the application goes on', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const { client, application } = await openTunnel(fixture, upstream);

    client.end('bye');

    assert.equal(await application.rest(), 'bye');
    application.send('still here');
    assert.equal(await client.bytes(10), 'still here');
    application.end('bye too');
    assert.equal(await client.rest(), 'bye too');
    await eventually(() => fixture.proxy.counters.tunnelsOpen === 0, 'the end of the tunnel');
    assert.equal(fixture.proxy.counters.clientAborts, 0);
  });

  it('passes the application’s half-close while the client goes on', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const { client, application } = await openTunnel(fixture, upstream);

    application.end('bye');

    assert.equal(await client.rest(), 'bye');
    client.send('still here');
    assert.equal(await application.bytes(10), 'still here');
    client.end('bye too');
    assert.equal(await application.rest(), 'bye too');
    await eventually(() => fixture.proxy.counters.connectionsOpen === 0, 'the close');
  });

  it('ends on both sides when one is reset', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const one = await openTunnel(fixture, upstream);
    const two = await openTunnel(fixture, upstream);

    one.client.reset();
    two.application.reset();

    await one.application.gone();
    await two.client.gone();
    await two.client[Symbol.asyncDispose]();
    await eventually(() => fixture.proxy.counters.tunnelsOpen === 0, 'the end of the tunnels');
  });

  it('can be refused by the application like any request', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(upgrade());
    const application = await upstream.accept();
    await application.until('\r\n\r\n');
    application.send('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
    assert.equal((await client.response()).status, 403);

    client.send('GET /next HTTP/1.1\r\nHost: a\r\n\r\n');

    assert.match(await application.until('\r\n\r\n'), /^GET \/next /);
  });

  it('can be denied by the gate like any request', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();

    client.send(upgrade('X-Verdict: deny\r\n'));

    assert.equal((await client.response()).status, 429);
    assert.equal(upstream.connections.length, 0);
  });

  it('to h2c is not offered, and the request goes on without it', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\n\r\n',
    );

    assert.doesNotMatch(await (await upstream.accept()).until('\r\n\r\n'), /upgrade|h2c|http2/i);
  });

  it('ends when nothing has moved for long', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream, { timeouts: { tunnelIdleMs: 10_000 } });
    const { client, application } = await openTunnel(fixture, upstream);
    fixture.advance(9_000);
    application.send('x');
    await client.until('x');
    fixture.advance(9_000);
    client.send('y');
    await application.until('y');
    fixture.advance(9_000);
    assert.equal(client.ended, false);

    fixture.advance(3_000);

    await client.gone();
    await application.gone();
    assert.equal(fixture.proxy.counters.timeouts.tunnel, 1);
  });

  it('slows down the faster side', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const { client, application } = await openTunnel(fixture, upstream);
    const large = 'x'.repeat(20_000_000);
    application.socket.pause();
    client.socket.pause();
    client.send(large);
    application.send(large);
    const { counters } = fixture.proxy;
    await eventually(() => counters.bytesFromClients > 100_000, 'some bytes');
    const most = 12_000_000;

    client.socket.resume();
    await client.bytes(large.length);
    assert(counters.bytesFromClients < most, 'the other way is still stopped');
    application.socket.resume();

    await application.bytes(large.length);
  });
});
