// A connection of HTTP/2 to the application that stands and brings nothing any more, as behind a lost route or a stopped
// process: a request that waited for it in vain is enough of them.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { frame, FLAG } from '../support/http2-frames.ts';
import { Http2Client } from '../support/http2.ts';
import { ProxyFixture } from '../support/proxy-fixture.ts';
import { RawSocket } from '../support/raw-socket.ts';
import { SidecarProcess } from '../support/sidecar.ts';
import { ScriptedUpstream } from '../support/upstream.ts';

const POLICY = `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: all }
spec:
  selector: {}
  rules:
    - { name: all, buckets: [{ capacity: 100, refill: { tokens: 100, every: 1s } }] }
`;
const GET = { ':path': '/' };
const CALL = { ':method': 'POST', ':path': '/a.B/C', 'content-type': 'application/grpc' };

function text(...frames: readonly Buffer[]): string {
  return Buffer.concat(frames).toString('latin1');
}

/** The next connection to the application, which has said what it can do. */
async function accepted(upstream: ScriptedUpstream): Promise<RawSocket> {
  const connection = await upstream.accept();
  connection.send(text(frame('SETTINGS', 0)));
  return connection;
}

/** Waits for a request without a body. */
async function request(connection: RawSocket, id: number): Promise<void> {
  const flags = FLAG.endHeaders | FLAG.endStream;
  await connection.until(String.fromCharCode(1, flags, 0, 0, 0, id));
}

function answer(connection: RawSocket, id: number): void {
  connection.send(text(frame('HEADERS', id, '\x88', FLAG.endHeaders | FLAG.endStream)));
}

describe('a connection to the application that falls silent', () => {
  it('takes no request after one has waited in vain: the next is served over another', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using sidecar = await SidecarProcess.open({
      files: { 'all.yaml': POLICY },
      upstreamPort: upstream.port,
      flags: ['--upstream-timeout', '1s'],
    });
    await using client = Http2Client.to(sidecar.port);
    const first = client.ask(GET);
    const silent = await accepted(upstream);
    await request(silent, 1);
    answer(silent, 1);
    assert.equal((await first).status, 200);

    assert.equal((await client.ask(GET)).status, 504);
    const next = client.ask(GET);
    const fresh = await Promise.race([accepted(upstream), next]);
    assert(fresh instanceof RawSocket, 'no other connection');
    await request(fresh, 1);
    answer(fresh, 1);

    assert.equal((await next).status, 200);
    await silent.gone();
  });

  it('lets its other streams end, and is closed behind the last', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);
    const call = client.ask(CALL);
    const silent = await accepted(upstream);
    await request(silent, 1);
    const plain = client.ask(GET);
    await request(silent, 3);

    fixture.advance(62_000);
    assert.equal((await plain).status, 504);
    const next = client.ask(GET);
    const fresh = await accepted(upstream);
    await request(fresh, 1);
    answer(silent, 1);
    answer(fresh, 1);

    assert.equal((await call).status, 200);
    assert.equal((await next).status, 200);
    await silent.gone();
    assert.equal(fixture.proxy.counters.upstreamConnectionsTotal, 2);
  });

  it('is one only if it has brought nothing meanwhile: a slow answer costs no connection', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);
    const slow = client.ask(GET);
    const connection = await accepted(upstream);
    await request(connection, 1);
    const quick = client.ask(GET);
    await request(connection, 3);
    answer(connection, 3);
    assert.equal((await quick).status, 200);

    fixture.advance(62_000);

    assert.equal((await slow).status, 504);
    const next = client.ask(GET);
    await request(connection, 5);
    answer(connection, 5);
    assert.equal((await next).status, 200);
    assert.equal(fixture.proxy.counters.upstreamConnectionsTotal, 1);
  });
});

describe('an application that never closes its side', () => {
  it('keeps no sidecar from ending', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using sidecar = await SidecarProcess.open({
      files: { 'all.yaml': POLICY },
      upstreamPort: upstream.port,
    });
    await using client = Http2Client.to(sidecar.port);
    const first = client.ask(GET);
    const connection = await accepted(upstream);
    await request(connection, 1);
    answer(connection, 1);
    assert.equal((await first).status, 200);

    sidecar.kill('SIGTERM');

    assert.equal(await sidecar.exited, 0);
  });
});
