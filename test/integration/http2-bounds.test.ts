// What a client of HTTP/2 can make the proxy keep, and for how long.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RefusalReason } from '../../sidecar/http1/refusal.ts';
import { maxPendingHeadBytes, maxWaitingBytes } from '../../sidecar/proxy/proxy-options.ts';
import {
  frame,
  FLAG,
  framesIn,
  PREFACE_BYTES,
  settings,
  type SeenFrame,
  uint32,
} from '../support/http2-frames.ts';
import { Http2Client, Http2Upstream } from '../support/http2.ts';
import { ProxyFixture } from '../support/proxy-fixture.ts';
import { eventually, type RawSocket } from '../support/raw-socket.ts';
import { ScriptedUpstream } from '../support/upstream.ts';

const { endHeaders, endStream } = FLAG;
/** GET / http, of a host whose name is the fields' first line in the static table. */
const GET = '\x82\x84\x86\x01\x01a';
const POST = GET.replace('\x82', '\x83');

function text(...frames: readonly Buffer[]): string {
  return Buffer.concat(frames).toString('latin1');
}

/** A client that has sent its preface and, with it, `frames`. */
async function begin(fixture: ProxyFixture, ...frames: readonly Buffer[]): Promise<RawSocket> {
  const client = await fixture.connect();
  client.send(text(PREFACE_BYTES, frame('SETTINGS', 0), ...frames));
  return client;
}

async function framesTo(client: RawSocket): Promise<SeenFrame[]> {
  return framesIn(Buffer.from(await client.rest(), 'latin1'));
}

/** Waits until the proxy has read all that was sent. */
async function untilRead(fixture: ProxyFixture, bytes: number): Promise<void> {
  const { counters } = fixture.proxy;
  await eventually(() => counters.bytesFromClients === bytes, `${bytes} bytes`);
}

describe('a head over HTTP/2', () => {
  it('that does not end is given up in time, also while other requests are under way', async () => {
    await using upstream = await Http2Upstream.open(() => undefined);
    await using fixture = await ProxyFixture.open(upstream);
    const call = '\x0f\x10\x10application/grpc';
    const client = await begin(
      fixture,
      frame('HEADERS', 1, `${GET}${call}`, endHeaders),
      frame('HEADERS', 3, GET, endStream),
    );
    await eventually(() => upstream.seen.length === 1, 'the call of gRPC');

    fixture.advance(12_000);

    const goAway = (await framesTo(client)).at(-1);
    assert.equal(goAway?.name, 'GOAWAY');
    assert.match(goAway.payload.toString('latin1'), /a head that does not end/);
    assert.equal(fixture.proxy.counters.timeouts.head, 1);
  });

  it('has its whole time however long nothing was asked before', async () => {
    await using upstream = await Http2Upstream.open((stream) => {
      stream.respond({}, { endStream: true });
    });
    await using fixture = await ProxyFixture.open(upstream);
    const client = await begin(fixture);
    await untilRead(fixture, PREFACE_BYTES.length + 9);
    fixture.advance(57_000);
    const head = text(frame('HEADERS', 1, GET, endHeaders | endStream));
    client.send(head.slice(0, -1));
    await untilRead(fixture, PREFACE_BYTES.length + 9 + head.length - 1);

    fixture.advance(9_000);
    client.send(head.slice(-1));

    await eventually(() => upstream.seen.length === 1, 'the request');
    assert.equal(fixture.proxy.counters.timeouts.head, 0);
  });

  it('that follows another one has its own time', async () => {
    await using upstream = await Http2Upstream.open(() => undefined);
    await using fixture = await ProxyFixture.open(upstream);
    const head = (id: number): string => text(frame('HEADERS', id, GET, endHeaders | endStream));
    const client = await begin(fixture);
    client.send(head(1).slice(0, 12));
    await untilRead(fixture, PREFACE_BYTES.length + 9 + 12);
    fixture.advance(9_000);

    client.send(head(1).slice(12) + head(3).slice(0, 12));
    await eventually(() => upstream.seen.length === 1, 'the first request');
    fixture.advance(9_000);
    client.send(head(3).slice(12));

    await eventually(() => upstream.seen.length === 2, 'the second request');
  });

  it('counts with all others that have begun and not ended: the one that goes past the bound is given up', async () => {
    await using upstream = await Http2Upstream.open((stream) => {
      stream.respond({}, { endStream: true });
    });
    await using fixture = await ProxyFixture.open(upstream);
    const { counters } = fixture.proxy;
    // Each keeps seven frames of field lines, the last of them in part.
    const begun = [frame('HEADERS', 1, GET, endStream), ...moreFields()];
    const length = text(...begun).length - 100;
    const open = async (): Promise<RawSocket> => {
      const before = counters.bytesFromClients;
      const client = await begin(fixture);
      client.send(text(...begun).slice(0, length));
      const sent = PREFACE_BYTES.length + 9 + length;
      await eventually(() => counters.bytesFromClients === before + sent, 'the head');
      return client;
    };
    const first = await open();
    const second = await open();
    const fitting = Math.floor(maxPendingHeadBytes / length);
    for (let n = 2; n < fitting; n += 1) await open();
    assert.equal(counters.headsShed, 0);

    const last = await open();
    assert.match((await framesTo(last)).at(-1)?.payload.toString('latin1') ?? '', /do not end/);
    first.send(`${text(...begun).slice(length)}${text(frame('CONTINUATION', 1, '', endHeaders))}`);
    await eventually(() => counters.requestsTotal + counters.headsRefused === 1, 'the first one');
    second.reset();
    await eventually(() => counters.connectionsOpen === fitting, 'the reset');
    await open();
    await open();

    assert.equal(counters.headsShed, 1);
  });
});

describe('a client that does not read what it makes us answer', () => {
  it('is left when its frames would only add to what waits', async () => {
    await using upstream = await Http2Upstream.open(() => undefined);
    await using fixture = await ProxyFixture.open(upstream);
    const { counters } = fixture.proxy;
    const client = await begin(fixture);
    client.socket.pause();
    const pings = text(frame('PING', 0, '12345678')).repeat(9_000);
    let sent = PREFACE_BYTES.length + 9;
    let answered = 0;

    // As long as all are answered; more would bring the connection's end, and what waits would be lost with it.
    for (let before = -pings.length; answered - before >= pings.length;) {
      before = answered;
      fixture.advance(500);
      client.send(pings);
      sent += pings.length;
      await untilRead(fixture, sent);
      // What was read in one turn is answered in the next.
      await new Promise(setImmediate);
      await new Promise(setImmediate);
      answered = counters.bytesToClients;
    }
    client.socket.resume();

    const said = await client.rest();
    assert.match(said.slice(-100), /too many frames that bring nothing/);
  });
});

describe('responses that wait for clients of HTTP/2', () => {
  it('are bounded all together: who has the most is broken off, and others are served', async () => {
    const body = Buffer.alloc(70_000);
    await using upstream = await Http2Upstream.open((stream) => {
      stream.respond({});
      stream.end(body);
    });
    await using fixture = await ProxyFixture.open(upstream);
    const { counters } = fixture.proxy;
    const asked = Array.from({ length: 250 }, (_, i) =>
      frame('HEADERS', 2 * i + 1, GET, endHeaders | endStream),
    );
    // Nothing may be sent on any stream.
    const stalled = frame('SETTINGS', 0, settings([4, 0]));

    const clients: RawSocket[] = [];
    for (let n = 0; n < 5; n += 1) clients.push(await begin(fixture, stalled, ...asked));

    // The application sends 64 KiB on each stream until it is told that they have been taken.
    const most = Math.ceil((2 * maxWaitingBytes) / 65_535);
    await eventually(() => upstream.seen.length === 1_250, 'the requests');
    await eventually(() => counters.streamsOpen <= most, 'room');
    await using other = Http2Client.to(fixture.proxy.address.port);
    assert.equal((await other.ask({ ':path': '/' })).body.length, body.length);
    assert.equal(counters.streamsShed + counters.streamsOpen, 1_250);

    for (const client of clients) client.reset();
    await eventually(() => counters.streamsOpen === 0, 'the resets');
    const shed = counters.streamsShed;
    await begin(fixture, stalled, ...asked);
    await eventually(() => upstream.seen.length === 1_501, 'the requests after them');
    assert.equal((await other.ask({ ':path': '/' })).status, 200);
    assert.equal(counters.streamsShed, shed);
  });
});

describe('uploads that come before the application has taken the connection', () => {
  it('are bounded all together, with what waits for clients; what ends makes room', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const { counters } = fixture.proxy;
    const body = Buffer.alloc(16_000);
    // As much as a connection takes: sixteen streams of 64 KiB.
    const upload = Array.from({ length: 16 }, (_, i) => [
      frame('HEADERS', 2 * i + 1, POST, endHeaders),
      ...Array.from({ length: 4 }, () => frame('DATA', 2 * i + 1, body)),
    ]).flat();
    const fitting = Math.floor((2 * maxWaitingBytes) / (4 * body.length));
    const uploads = Math.ceil(fitting / 16) + 1;
    const sent = PREFACE_BYTES.length + 9 + text(...upload).length;

    const clients: RawSocket[] = [];
    for (let n = 1; n <= uploads; n += 1) {
      clients.push(await begin(fixture, ...upload));
      await untilRead(fixture, n * sent);
    }
    assert.equal(counters.streamsOpen, fitting);
    assert.equal(counters.streamsShed, 16 * uploads - fitting);

    for (const client of clients) client.reset();
    await eventually(() => counters.streamsOpen === 0, 'the resets');
    const shed = counters.streamsShed;
    await begin(fixture, ...upload);
    await eventually(() => counters.streamsOpen === 16, 'the uploads after them');
    assert.equal(counters.streamsShed, shed);
  });
});

describe('a connection that a client of HTTP/2 spoils', () => {
  const spoilt: readonly (readonly [claim: string, bytes: Buffer, reason: RefusalReason])[] = [
    ['a flood', frame('PRIORITY', 3, uint32(0, 0).subarray(3)), 'http2-flood'],
    ['a fault', frame('PING', 0, 'short'), 'http2-fault'],
  ];

  for (const [claim, bytes, reason] of spoilt) {
    it(`is counted once as what it was: ${claim}`, async () => {
      await using upstream = await Http2Upstream.open(() => undefined);
      await using fixture = await ProxyFixture.open(upstream);
      const client = await begin(fixture);

      client.send(text(bytes).repeat(10_002));

      await client.gone();
      assert.deepEqual([...fixture.proxy.counters.refusals], [[reason, 1]]);
    });
  }
});

describe('a request over HTTP/2 beyond a maximum', () => {
  const maxima: readonly (readonly [
    reason: RefusalReason,
    maxConnections: number,
    taken: number,
  ])[] = [
    ['too-many-streams', 1_000, 250],
    ['max-connections', 100, 100],
  ];

  for (const [reason, maxConnections, taken] of maxima) {
    it(`is refused and counted as ${reason}`, async () => {
      await using upstream = await Http2Upstream.open(() => undefined);
      await using fixture = await ProxyFixture.open(upstream, { maxConnections });
      const { counters } = fixture.proxy;
      const asked = Array.from({ length: taken + 3 }, (_, i) =>
        frame('HEADERS', 2 * i + 1, GET, endHeaders | endStream),
      );

      await begin(fixture, ...asked);

      await eventually(() => upstream.seen.length === taken, 'the others');
      assert.deepEqual([...counters.refusals], [[reason, 3]]);
      assert.equal(counters.streamsOpen, taken);
    });
  }
});

/** Lines of 4 KiB that no table keeps, in six frames. */
function moreFields(): Buffer[] {
  const line = `\x0f\x11\x7f\x81\x1f${'x'.repeat(4_096)}`;
  return Array.from({ length: 6 }, () => frame('CONTINUATION', 1, line.repeat(3)));
}
