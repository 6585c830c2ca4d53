// A sidecar that drains while clients of HTTP/2 have not heard of it yet: what they send meanwhile is served.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { frame, FLAG, PREFACE_BYTES, uint32 } from '../support/http2-frames.ts';
import { Http2Upstream } from '../support/http2.ts';
import { ProxyFixture } from '../support/proxy-fixture.ts';
import { eventually, type RawSocket } from '../support/raw-socket.ts';

const GET = frame('HEADERS', 1, '\x82\x84\x86\x01\x01a', FLAG.endHeaders | FLAG.endStream);
const ASKED = frame('GOAWAY', 0, uint32(2 ** 31 - 1, 0)).toString('latin1');
const LEFT = frame('GOAWAY', 0, uint32(1, 0)).toString('latin1');

function answering(): Promise<Http2Upstream> {
  return Http2Upstream.open((stream) => {
    stream.respond({}, { endStream: true });
  });
}

/** A client whose preface has been read. */
async function connect(fixture: ProxyFixture): Promise<RawSocket> {
  const client = await fixture.connect();
  const bytes = Buffer.concat([PREFACE_BYTES, frame('SETTINGS', 0)]);
  client.send(bytes.toString('latin1'));
  const { counters } = fixture.proxy;
  await eventually(() => counters.bytesFromClients === bytes.length, 'the preface');
  return client;
}

describe('a request that was sent before its client heard that the sidecar drains', () => {
  it('is served when it comes behind the order to stop', async () => {
    await using upstream = await answering();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await connect(fixture);
    const stopped = fixture.proxy.stop(10_000);
    await client.until(ASKED);

    client.send(GET.toString('latin1'));

    await eventually(() => upstream.seen.length === 1, 'the request');
    fixture.advance(3_000);
    await client.until(LEFT);
    await client.gone();
    client.end();
    await stopped;
  });

  it('is served when the process was frozen while it came', async () => {
    await using upstream = await answering();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await connect(fixture);
    fixture.proxy.startDraining();
    await client.until(ASKED);

    fixture.jump(60_000);
    client.send(GET.toString('latin1'));

    await eventually(() => upstream.seen.length === 1, 'the request');
  });
});

describe('a client that comes while the sidecar drains', () => {
  it('hears so behind the answer to its first request', async () => {
    await using upstream = await answering();
    await using fixture = await ProxyFixture.open(upstream);
    fixture.proxy.startDraining();
    const client = await connect(fixture);
    assert(!client.received.includes(ASKED));

    client.send(GET.toString('latin1'));

    await client.until(ASKED);
  });

  it('hears so after a while in which it asks nothing, and is left', async () => {
    await using upstream = await answering();
    await using fixture = await ProxyFixture.open(upstream);
    fixture.proxy.startDraining();
    const client = await connect(fixture);

    fixture.advance(2_000);
    await client.until(ASKED);
    fixture.advance(2_000);

    await client.gone();
  });
});
