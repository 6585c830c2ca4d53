// The proxy between two ends that speak HTTP/2 as nghttp2 does.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { constants } from 'node:http2';
import { describe, it } from 'node:test';
import { answerTo, closeOf, Http2Client, Http2Upstream } from '../support/http2.ts';
import { ProxyFixture } from '../support/proxy-fixture.ts';
import { eventually } from '../support/redis.ts';
import { AnsweringUpstream } from '../support/upstream.ts';

const { NGHTTP2_CANCEL, NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_REFUSED_STREAM } = constants;
const GRPC = { ':method': 'POST', ':path': '/a.B/C', 'content-type': 'application/grpc' };

describe('a request over HTTP/2', () => {
  it('reaches the application with its fields, and comes back with its own', async () => {
    await using upstream = await Http2Upstream.open((stream) => {
      stream.respond({ ':status': 201, 'x-odd': ['a', 'b'], 'set-cookie': ['c=1', 'd=2'] });
      stream.end('made');
    });
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);

    const answer = await client.ask({
      ...{ ':method': 'POST', ':path': '/%2e/../a?b', 'x-a': '1', te: 'trailers' },
      ...{ cookie: 'a=1; b=2', 'x-forwarded-for': '192.0.2.1' },
    });

    const [request] = upstream.seen;
    assert.equal(request?.[':path'], '/%2e/../a?b');
    assert.equal(request[':method'], 'POST');
    assert.equal(request[':authority'], `127.0.0.1:${fixture.proxy.address.port}`);
    assert.equal(request['x-forwarded-for'], '192.0.2.1, 127.0.0.1');
    assert.equal(request['x-forwarded-proto'], 'http');
    assert.equal(request['x-forwarded-host'], request[':authority']);
    assert.deepEqual(
      [request['x-a'], request['te'], request.cookie],
      ['1', 'trailers', 'a=1; b=2'],
    );
    assert.equal(answer.status, 201);
    assert.deepEqual(answer.headers['set-cookie'], ['c=1', 'd=2']);
    assert.equal(answer.headers['x-odd'], 'a, b');
    assert.equal(answer.body.toString(), 'made');
    assert.equal(typeof answer.headers.date, 'string');
  });

  it('passes interim responses, trailers both ways, and bodies to the byte', async () => {
    const sent = randomBytes(3_000_000);
    await using upstream = await Http2Upstream.open((stream) => {
      const hash = createHash('sha256');
      let trailers: unknown;
      stream.on('trailers', (fields) => (trailers = fields));
      stream.on('data', (bytes: Buffer) => hash.update(bytes));
      stream.additionalHeaders({ ':status': 103, link: '</a.css>' });
      stream.on('end', () => {
        stream.respond({ 'x-hash': hash.digest('hex') }, { waitForTrailers: true });
        stream.on('wantTrailers', () => {
          stream.sendTrailers({ 'x-request-trailers': JSON.stringify(trailers) });
        });
        stream.end(sent);
      });
    });
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);
    const stream = client.session.request(
      { ':method': 'POST', ':path': '/' },
      { endStream: false, waitForTrailers: true },
    );
    stream.on('wantTrailers', () => {
      stream.sendTrailers({ 'x-checksum': 'abc' });
    });
    stream.end(sent);

    const answer = await answerTo(stream);

    const hash = createHash('sha256').update(sent).digest('hex');
    assert.deepEqual(answer.interims, [103]);
    assert.equal(answer.headers['x-hash'], hash);
    assert.equal(createHash('sha256').update(answer.body).digest('hex'), hash);
    assert.match(String(answer.trailers['x-request-trailers']), /"x-checksum":"abc"/);
  });

  it('without a body of the response ends with its fields: HEAD, 204, 304, trailers alone', async () => {
    await using upstream = await Http2Upstream.open((stream, headers) => {
      const status = Number(headers['x-status']);
      const fields = { ':status': status, 'content-length': status === 200 ? '5' : '0' };
      stream.respond(status === 304 ? { ':status': 304 } : fields, { endStream: true });
    });
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);

    const head = await client.ask({ ':method': 'HEAD', 'x-status': '200' });
    const none = await client.ask({ 'x-status': '204' });
    const same = await client.ask({ 'x-status': '304' });

    assert.deepEqual([head.status, head.headers['content-length']], [200, '5']);
    assert.deepEqual([none.status, none.headers['content-length']], [204, undefined]);
    assert.deepEqual([same.status, same.body.length], [304, 0]);
  });

  it('shares connections to the application with those of other clients', async () => {
    await using upstream = await Http2Upstream.open((stream) => {
      stream.respond({}, { endStream: true });
    });
    await using fixture = await ProxyFixture.open(upstream);
    await using first = Http2Client.to(fixture.proxy.address.port);
    await using second = Http2Client.to(fixture.proxy.address.port);

    const answers = await Promise.all(
      [first, second, first, second].map((client) => client.ask({ ':path': '/' })),
    );

    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200, 200],
    );
    assert.equal(upstream.sessions.size, 1);
  });

  it('opens another connection where the application takes no more streams', async () => {
    const waiting: (() => void)[] = [];
    await using upstream = await Http2Upstream.open(
      (stream, headers) => {
        if (headers[':path'] === '/first') stream.respond({}, { endStream: true });
        else
          waiting.push(() => {
            stream.respond({}, { endStream: true });
          });
      },
      { maxConcurrentStreams: 2 },
    );
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);
    await client.ask({ ':path': '/first' });

    const answers = Promise.all(['/a', '/b', '/c'].map((path) => client.ask({ ':path': path })));
    await eventually('all three wait', () => Promise.resolve(waiting.length === 3));
    for (const answer of waiting) answer();

    assert.equal((await answers).length, 3);
    assert.equal(upstream.sessions.size, 2);
  });
});

describe('a decision over HTTP/2', () => {
  it('is made for each stream, and refuses one beside another', async () => {
    await using upstream = await Http2Upstream.open((stream) => {
      stream.respond({}, { endStream: true });
    });
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);

    const [allowed, denied, unavailable] = await Promise.all([
      client.ask({ ':path': '/1' }),
      client.ask({ ':path': '/2', 'x-verdict': 'deny' }),
      client.ask({ ':path': '/3', 'x-verdict': 'unavailable' }),
    ]);

    assert.equal(allowed.status, 200);
    assert.deepEqual([denied.status, denied.body.toString()], [429, 'slow down\n']);
    assert.equal(denied.headers['retry-after'], '7');
    assert.equal(denied.headers['content-length'], '10');
    assert.equal(unavailable.status, 503);
    assert.deepEqual(fixture.gate.seen, ['/1', '/2', '/3']);
    assert.equal(upstream.seen.length, 1);
  });

  it('tells a call of gRPC by trailers alone: RESOURCE_EXHAUSTED or UNAVAILABLE', async () => {
    await using upstream = await Http2Upstream.open((stream) => {
      stream.respond({}, { endStream: true });
    });
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);

    const denied = await client.ask({ ...GRPC, 'x-verdict': 'deny' }, 'message');
    const unavailable = await client.ask({ ...GRPC, 'x-verdict': 'unavailable' }, 'message');

    const { headers } = denied;
    assert.deepEqual([denied.status, headers['content-type']], [200, 'application/grpc']);
    assert.deepEqual(
      [headers['grpc-status'], headers['grpc-message']],
      ['8', 'Too many: slow down.'],
    );
    assert.deepEqual([headers['retry-after'], headers['grpc-retry-pushback-ms']], ['7', '7000']);
    assert.deepEqual([denied.body.length, headers['content-length']], [0, undefined]);
    assert.equal(unavailable.headers['grpc-status'], '14');
  });

  it('puts the quota fields onto the response, and keeps stricter ones of the application', async () => {
    await using upstream = await Http2Upstream.open((stream, headers) => {
      stream.respond({ 'x-ratelimit-remaining': String(headers['x-theirs']) }, { endStream: true });
    });
    await using fixture = await ProxyFixture.open(upstream);
    fixture.gate.verdict = {
      ...{ kind: 'allowed', fields: 'X-RateLimit-Remaining: 5\r\n', afterResponse: undefined },
      quota: { form: 'XRateLimit', remaining: 5 },
    };
    await using client = Http2Client.to(fixture.proxy.address.port);

    const looser = await client.ask({ 'x-theirs': '9' });
    const stricter = await client.ask({ 'x-theirs': '2' });

    assert.equal(looser.headers['x-ratelimit-remaining'], '5');
    assert.equal(stricter.headers['x-ratelimit-remaining'], '2');
  });

  it('that is late finds the body that came meanwhile, and does not come for a client that has gone', async () => {
    await using upstream = await Http2Upstream.open((stream) => {
      stream.respond({});
      stream.pipe(stream);
    });
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);
    const waits = { ':method': 'POST', ':path': '/', 'x-verdict': 'wait' };

    const kept = client.ask(waits, 'early body');
    const left = client.stream(waits, false);
    await eventually('both wait', () => Promise.resolve(fixture.gate.waitingCount === 2));
    left.close(NGHTTP2_CANCEL);
    await eventually('one was cancelled', () =>
      Promise.resolve(fixture.gate.cancelled.length === 1),
    );
    fixture.gate.release();

    assert.equal((await kept).body.toString(), 'early body');
    assert.equal(upstream.seen.length, 1);
    assert.equal(fixture.proxy.counters.clientAborts, 1);
  });

  it('is not asked for a request that is none: it is reset, or refused with its status', async () => {
    await using upstream = await Http2Upstream.open((stream) => {
      stream.respond({}, { endStream: true });
    });
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);

    const mismatch = await client.ask({ ':authority': 'a', host: 'b' });
    const long = await client.ask({ ':path': `/${'x'.repeat(16_384)}` });
    const fragment = await client.ask({ ':path': '/a#b' });
    const tunnel = await client.ask({ ':method': 'CONNECT', ':authority': 'a:1' });

    assert.deepEqual(
      [mismatch, long, fragment, tunnel].map(({ status }) => status),
      [400, 414, 400, 501],
    );
    assert.deepEqual(fixture.gate.seen, []);
    assert.equal(fixture.proxy.counters.refusals.get('host-mismatch'), 1);
  });

  it('never charges a stream that a fault strikes for another one', async () => {
    await using upstream = await Http2Upstream.open((stream) => {
      stream.respond({}, { endStream: true });
    });
    await using fixture = await ProxyFixture.open(upstream, { expectsFaults: true });
    await using client = Http2Client.to(fixture.proxy.address.port);

    const [struck, other] = await Promise.allSettled([
      client.ask({ 'x-verdict': 'throw' }),
      client.ask({ ':path': '/other' }),
    ]);

    assert.equal(struck.status, 'rejected');
    assert.equal(other.status, 'fulfilled');
    assert.equal(fixture.faults.length, 1);
  });
});

describe('what goes wrong over HTTP/2', () => {
  it('a reset of the client ends the stream to the application', async () => {
    await using upstream = await Http2Upstream.open((stream) => {
      stream.respond({});
      stream.write('first');
    });
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);
    const stream = client.stream({ ':path': '/' });
    await once(stream, 'data');

    stream.close(NGHTTP2_CANCEL);

    await eventually('it has ended', () => Promise.resolve(upstream.closed.length === 1));
    assert.deepEqual(upstream.closed, [NGHTTP2_CANCEL]);
    assert.equal((await client.ask({ ':path': '/', 'x-verdict': 'deny' })).status, 429);
  });

  it('a reset of the application reaches the client with its code', async () => {
    await using upstream = await Http2Upstream.open((stream, headers) => {
      if (headers[':path'] === '/late') stream.respond({});
      stream.close(NGHTTP2_ENHANCE_YOUR_CALM);
    });
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);

    for (const path of ['/early', '/late']) {
      const stream = client.stream({ ':path': path });
      await closeOf(stream);
      assert.equal(stream.rstCode, NGHTTP2_ENHANCE_YOUR_CALM, path);
    }
  });

  it('what the application refused unread is sent once more', async () => {
    let count = 0;
    await using upstream = await Http2Upstream.open((stream) => {
      count += 1;
      if (count === 1) stream.close(NGHTTP2_REFUSED_STREAM);
      else stream.respond({ 'x-try': String(count) }, { endStream: true });
    });
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);

    const answer = await client.ask({ ':method': 'POST', ':path': '/' });

    assert.equal(answer.headers['x-try'], '2');
    assert.equal(fixture.proxy.counters.upstreamRetries, 1);
  });

  it('an application that cannot be reached is a 503, to gRPC UNAVAILABLE', async () => {
    const gone = await AnsweringUpstream.open('');
    await gone[Symbol.asyncDispose]();
    await using fixture = await ProxyFixture.open(gone);
    await using client = Http2Client.to(fixture.proxy.address.port);

    const plain = await client.ask({ ':path': '/' });
    const call = await client.ask(GRPC, 'message');

    assert.equal(plain.status, 503);
    assert.deepEqual([call.status, call.headers['grpc-status']], [200, '14']);
    assert.equal(fixture.proxy.counters.upstreamErrors.connect, 2);
  });

  it('an application that speaks HTTP/1.1 only is a 502 that says so', async () => {
    await using upstream = await AnsweringUpstream.open(
      'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
    );
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);

    const answer = await client.ask({ ':path': '/' });

    assert.equal(answer.status, 502);
    assert.match(answer.body.toString(), /does not speak HTTP\/2/);
  });

  it('an application that dies under a response resets it, and the next request finds another', async () => {
    await using upstream = await Http2Upstream.open((stream, headers) => {
      stream.respond({});
      if (headers[':path'] === '/dies') stream.write('half', () => stream.session?.destroy());
      else stream.end('whole');
    });
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);

    await assert.rejects(client.ask({ ':path': '/dies' }), /reset/);
    const next = await client.ask({ ':path': '/lives' });

    assert.equal(next.body.toString(), 'whole');
  });

  it('a response that does not come is a 504; a silent call of gRPC is left alone', async () => {
    await using upstream = await Http2Upstream.open(() => undefined);
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);
    const plain = client.ask({ ':path': '/' });
    const call = client.stream(GRPC, false);
    await eventually('both came', () => Promise.resolve(upstream.seen.length === 2));

    fixture.advance(62_000);

    assert.equal((await plain).status, 504);
    assert.equal(call.closed, false);
    assert.equal(fixture.proxy.counters.timeouts.response, 1);
  });

  it('a connection that says nothing is asked to leave, and closed', async () => {
    await using upstream = await Http2Upstream.open((stream) => {
      stream.respond({}, { endStream: true });
    });
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);
    await client.ask({ ':path': '/' });

    fixture.advance(62_000);
    await client.closed;

    assert.notEqual(client.goaway, undefined);
    assert.equal(fixture.proxy.counters.timeouts.idle, 1);
  });

  it('a preface that breaks off in the middle is given up', async () => {
    await using upstream = await AnsweringUpstream.open('');
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send('PRI * HTTP/2.0\r\n\r\nSM');
    await client.until('\0\0');

    fixture.advance(12_000);

    await client.rest();
    assert.equal(fixture.proxy.counters.timeouts.head, 1);
  });
});

describe('backpressure over HTTP/2', () => {
  it('holds the application up while the client does not read, and nobody else', async () => {
    let produced = 0;
    await using upstream = await Http2Upstream.open((stream, headers) => {
      stream.respond({});
      if (headers[':path'] === '/small') {
        stream.end('small');
        return;
      }
      const chunk = Buffer.alloc(16_384);
      const more = (): void => {
        while (!stream.destroyed && stream.write(chunk)) produced += chunk.length;
        produced += chunk.length;
      };
      stream.on('drain', more);
      more();
    });
    await using fixture = await ProxyFixture.open(upstream);
    await using slow = Http2Client.to(fixture.proxy.address.port);
    await using other = Http2Client.to(fixture.proxy.address.port);
    const stream = slow.stream({ ':path': '/endless' });
    await once(stream, 'response');

    // Others are served as long as it takes the endless one to stop.
    let before = -1;
    while (before !== produced) {
      before = produced;
      assert.equal((await other.ask({ ':path': '/small' })).body.toString(), 'small');
      for (let i = 0; i < 20; i += 1) await other.ask({ ':path': '/small' });
    }

    // The windows of both sides, and what Node holds on either.
    assert(produced < 2_000_000, `${produced} bytes were taken for a client that reads none`);
    stream.close(NGHTTP2_CANCEL);
  });
});

describe('draining over HTTP/2', () => {
  it('asks clients to leave, ends what is under way, and loses nothing', async () => {
    const waiting: (() => void)[] = [];
    await using upstream = await Http2Upstream.open((stream) => {
      waiting.push(() => {
        stream.respond({});
        stream.end('done');
      });
    });
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);
    const under = client.ask({ ':path': '/' });
    await eventually('it is under way', () => Promise.resolve(waiting.length === 1));

    fixture.proxy.startDraining();
    await eventually('GOAWAY has come', () => Promise.resolve(client.goaway !== undefined));
    assert.equal(client.goaway, 2 ** 31 - 1);
    fixture.advance(2_000);
    const stopped = fixture.proxy.stop(10_000);
    fixture.advance(1_000);
    for (const answer of waiting) answer();

    assert.equal((await under).body.toString(), 'done');
    await client.closed;
    await stopped;
  });

  it('serves a client that comes while it drains, and asks it to leave too', async () => {
    await using upstream = await Http2Upstream.open((stream) => {
      stream.respond({}, { endStream: true });
    });
    await using fixture = await ProxyFixture.open(upstream);
    fixture.proxy.startDraining();
    await using client = Http2Client.to(fixture.proxy.address.port);

    const answer = await client.ask({ ':path': '/' });

    assert.equal(answer.status, 200);
    await client.closed;
  });
});

describe('CONNECT with a protocol', () => {
  const websocket = { ':method': 'CONNECT', ':protocol': 'websocket', ':path': '/chat' };

  it('is a tunnel both ways where the application takes it, and is seen as GET', async () => {
    await using upstream = await Http2Upstream.open(
      (stream) => {
        stream.respond({ ':status': 200 });
        stream.pipe(stream);
      },
      { enableConnectProtocol: true },
    );
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);
    await once(client.session, 'remoteSettings');
    assert.equal(client.session.remoteSettings.enableConnectProtocol, true);
    const stream = client.stream({ ...websocket, ':scheme': 'http', ':authority': 'a' }, false);
    await once(stream, 'response');

    stream.write('ping');
    const [echo] = (await once(stream, 'data')) as [Buffer];

    assert.equal(echo.toString(), 'ping');
    assert.equal(upstream.seen[0]?.[':protocol'], 'websocket');
    assert.equal(fixture.proxy.counters.tunnelsOpen, 1);
    stream.end();
    await once(stream, 'close');
    assert.equal(fixture.proxy.counters.tunnelsOpen, 0);
  });

  it('is a 501 where the application does not', async () => {
    await using upstream = await Http2Upstream.open(() => undefined);
    await using fixture = await ProxyFixture.open(upstream);
    await using client = Http2Client.to(fixture.proxy.address.port);
    await once(client.session, 'remoteSettings');

    const answer = await client.ask({ ...websocket, ':scheme': 'http', ':authority': 'a' });

    assert.equal(answer.status, 501);
  });
});
