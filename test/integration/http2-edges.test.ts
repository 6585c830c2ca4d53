// HTTP/2 where the two sides of the proxy are not of one mind: early ends, bodies that should not be, applications that
// take few streams, clients that do not read.
import assert from 'node:assert/strict';
import { constants } from 'node:http2';
import { describe, it } from 'node:test';
import { frame, FLAG, PREFACE_BYTES, uint32 } from '../support/http2-frames.ts';
import { answerTo, closeOf, Http2Client, Http2Upstream } from '../support/http2.ts';
import { ProxyFixture } from '../support/proxy-fixture.ts';
import { eventually } from '../support/redis.ts';
import { ScriptedUpstream } from '../support/upstream.ts';

const { NGHTTP2_NO_ERROR } = constants;
const POST = { ':method': 'POST', ':path': '/' };

describe('an application that answers before the upload is over', () => {
  it('has its whole response read, however slowly, before the client is told to stop', async () => {
    const body = Buffer.alloc(300_000, 'x');
    await using upstream = await Http2Upstream.open((stream) => {
      stream.respond({});
      stream.end(body, () => {
        stream.close(NGHTTP2_NO_ERROR);
      });
    });
    await using fixture = await ProxyFixture.open(upstream);
    // Takes a thousand bytes at a time.
    await using client = new Http2Client(`http://127.0.0.1:${fixture.proxy.address.port}`, {
      settings: { initialWindowSize: 1_000 },
    });
    const stream = client.stream(POST, false);
    stream.write('the upload begins');

    const answer = await answerTo(stream);

    assert.equal(answer.body.length, body.length);
  });
});

describe('an answer of the proxy to an upload', () => {
  it('that the client is slow to read is finished, and the upload is not waited for', async () => {
    await using upstream = await Http2Upstream.open(() => undefined);
    await using fixture = await ProxyFixture.open(upstream);
    await using client = new Http2Client(`http://127.0.0.1:${fixture.proxy.address.port}`, {
      settings: { initialWindowSize: 4 },
    });
    const stream = client.stream({ ...POST, 'x-verdict': 'deny' }, false);
    stream.write(Buffer.alloc(60_000));

    const answer = await answerTo(stream);

    assert.deepEqual([answer.status, answer.body.toString()], [429, 'slow down\n']);
    await eventually('the stream is over', () =>
      Promise.resolve(fixture.proxy.counters.streamsOpen === 0),
    );
  });

  it('that the client never reads is given up', async () => {
    await using upstream = await Http2Upstream.open(() => undefined);
    await using fixture = await ProxyFixture.open(upstream);
    await using client = new Http2Client(`http://127.0.0.1:${fixture.proxy.address.port}`, {
      settings: { initialWindowSize: 0 },
    });
    const stream = client.stream({ ...POST, 'x-verdict': 'deny' }, false);
    await eventually('it is there', () => Promise.resolve(fixture.gate.seen.length === 1));

    fixture.advance(62_000);

    await closeOf(stream);
    assert.equal(fixture.proxy.counters.streamsOpen, 0);
    assert.equal(fixture.proxy.counters.timeouts['client-stall'], 1);
  });
});

describe('an application that takes few streams', () => {
  it('gets no more connections than its limit asks for, and refuses nothing', async () => {
    const waiting: (() => void)[] = [];
    await using upstream = await Http2Upstream.open(
      (stream) => {
        waiting.push(() => {
          stream.respond({}, { endStream: true });
        });
      },
      { maxConcurrentStreams: 5 },
    );
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);

    const answers = Promise.all(Array.from({ length: 60 }, () => client.ask(POST)));
    await eventually('all have come', () => Promise.resolve(waiting.length === 60));
    assert.equal(upstream.sessions.size, 12);
    for (const answer of waiting) answer();

    assert((await answers).every(({ status }) => status === 200));
    assert.equal(fixture.proxy.counters.upstreamRetries, 0);
  });
});

describe('an application that breaks off', () => {
  it('in the middle of a response, for no reason that it gives, does not make it look whole', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);
    const stream = client.stream({ ':path': '/' });
    const application = await upstream.accept();
    application.send(frame('SETTINGS', 0).toString('latin1'));
    await application.until('\x01\x05\0\0\0\x01');

    const response = [
      frame('HEADERS', 1, '\x88', FLAG.endHeaders),
      frame('DATA', 1, 'half'),
      frame('RST_STREAM', 1, uint32(NGHTTP2_NO_ERROR)),
    ];
    application.send(Buffer.concat(response).toString('latin1'));
    stream.resume();
    await closeOf(stream);

    assert.equal(stream.rstCode, constants.NGHTTP2_INTERNAL_ERROR);
  });

  it('before it says anything is a 502 that does not call it no speaker of HTTP/2', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);
    const asked = client.ask({ ':path': '/' });

    const application = await upstream.accept();
    await application.until('PRI');
    application.reset();

    const { body, status } = await asked;
    assert.equal(status, 502);
    assert.match(body.toString(), /closed the connection before it said anything/);
  });
});

describe('an application that takes no streams at all', () => {
  it('is asked over one connection: a 503 that says so, to gRPC UNAVAILABLE', async () => {
    await using upstream = await Http2Upstream.open(() => undefined, { maxConcurrentStreams: 0 });
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);

    const plain = await client.ask(POST);
    const call = await client.ask({ ...POST, 'content-type': 'application/grpc' }, 'message');

    assert.equal(plain.status, 503);
    assert.match(plain.body.toString(), /takes no requests over HTTP\/2/);
    assert.equal(call.headers['grpc-status'], '14');
    assert.equal(fixture.proxy.counters.upstreamConnectionsTotal, 2);
    await eventually('both connections have gone', () =>
      Promise.resolve(upstream.sessions.size === 0),
    );
  });
});

describe('an application that takes the connection and says nothing', () => {
  const SETTINGS = '\0\0\0\x04\0\0\0\0\0';

  it('has as long for its SETTINGS as for the connection: a 504, and the next request connects anew', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);
    const first = client.ask({ ':path': '/' });
    await upstream.accept();
    await eventually('it is decided', () => Promise.resolve(fixture.gate.seen.length === 1));

    fixture.advance(6_000);

    assert.equal((await first).status, 504);
    void client.ask({ ':path': '/' }).catch(() => undefined);
    await upstream.accept();
    assert.equal(fixture.proxy.counters.upstreamConnectionsTotal, 2);
  });

  it('is waited for, also when the sidecar has run for long, and when it is told to stop', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    fixture.advance(120_000);
    await using client = Http2Client.to(fixture.proxy.address.port);
    const asked = client.stream({ ':path': '/' });
    const application = await upstream.accept();
    await eventually('it is decided', () => Promise.resolve(fixture.gate.seen.length === 1));
    fixture.advance(2_000);
    const stopped = fixture.proxy.stop(20_000);

    application.send(SETTINGS);

    // HEADERS, the end of both headers and stream, on stream 1.
    await application.until('\x01\x05\0\0\0\x01');
    await fixture.proxy.stop(0);
    await stopped;
    await closeOf(asked);
  });
});

describe('a request over a connection that is new', () => {
  it('has the whole time for its answer, not only that for connecting', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);
    const asked = client.ask({ ':path': '/' });
    const application = await upstream.accept();
    application.send(frame('SETTINGS', 0).toString('latin1'));
    await application.until('\x01\x05\0\0\0\x01');

    fixture.advance(59_000);
    const end = FLAG.endHeaders | FLAG.endStream;
    application.send(frame('HEADERS', 1, '\x88', end).toString('latin1'));

    assert.equal((await asked).status, 200);
  });
});

describe('a message of HTTP/2 that is not what it says', () => {
  it('a request that announces a body and has none is reset, and no application sees it', async () => {
    await using upstream = await Http2Upstream.open((stream) => {
      stream.respond({}, { endStream: true });
    });
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);
    const stream = client.stream({ ...POST, 'content-length': '3' });

    await closeOf(stream);

    assert.equal(stream.rstCode, constants.NGHTTP2_PROTOCOL_ERROR);
    assert.equal(upstream.seen.length, 0);
    assert.equal(fixture.proxy.counters.refusals.get('malformed'), 1);
  });

  it('a response that announces a body and has none is a 502', async () => {
    await using upstream = await Http2Upstream.open((stream) => {
      stream.respond({ 'content-length': '3' }, { endStream: true });
    });
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);

    const answer = await client.ask({ ':path': '/' });

    assert.equal(answer.status, 502);
  });
});

describe('a client that says it leaves', () => {
  // GET / http, and a field that names its host by its index in the static table.
  const request = frame('HEADERS', 1, '\x82\x84\x86\x01\x01a', FLAG.endHeaders | FLAG.endStream);

  it('and asks all the same has its request left alone, as it is told', async () => {
    await using upstream = await Http2Upstream.open(() => undefined);
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    const bytes = [PREFACE_BYTES, frame('SETTINGS', 0), frame('GOAWAY', 0, uint32(0, 0)), request];

    client.send(Buffer.concat(bytes).toString('latin1'));

    const goAway = frame('GOAWAY', 0, uint32(0, 0)).toString('latin1');
    assert.match(await client.rest(), new RegExp(`${goAway}$`));
    assert.deepEqual(fixture.gate.seen, []);
    assert.equal(fixture.proxy.counters.streamsOpen, 0);
  });

  it('is answered what it asked before', async () => {
    const waiting: (() => void)[] = [];
    await using upstream = await Http2Upstream.open((stream) => {
      waiting.push(() => {
        stream.respond({}, { endStream: true });
      });
    });
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);
    const asked = client.ask({ ':path': '/' });
    await eventually('it is under way', () => Promise.resolve(waiting.length === 1));

    client.session.goaway();
    for (const answer of waiting) answer();

    assert.equal((await asked).status, 200);
    await client.closed;
  });
});
