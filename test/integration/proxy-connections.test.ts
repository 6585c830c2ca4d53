// What becomes of connections: order, reuse, refusals, bounds, faults.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { maxPendingHeadBytes, maxRefusedConnections } from '../../sidecar/proxy/proxy-options.ts';
import { ProxyFixture } from '../support/proxy-fixture.ts';
import { eventually } from '../support/raw-socket.ts';
import type { RawSocket } from '../support/raw-socket.ts';
import { openGate } from '../support/simple-gate.ts';
import { AnsweringUpstream, ScriptedUpstream } from '../support/upstream.ts';

const get = (target: string, fields = ''): string =>
  `GET ${target} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
/** An answer that names what was asked for. */
const echo = (head: string): string => {
  const target = head.split(' ')[1] ?? '';
  return `HTTP/1.1 200 OK\r\nContent-Length: ${String(target.length)}\r\n\r\n${target}`;
};

async function bodies(client: RawSocket, count: number): Promise<string[]> {
  const all: string[] = [];
  for (let n = 0; n < count; n += 1) all.push((await client.response()).body);
  return all;
}

describe('a client connection', () => {
  it('carries one request after the other over one upstream connection', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(get('/1'));
    const application = await upstream.accept();
    await application.until('\r\n\r\n');
    application.send(OK);
    await client.response();

    client.send(get('/2'));
    assert.match(await application.until('\r\n\r\n'), /^GET \/2 /);
    application.send(OK);

    await client.response();
    assert.equal(upstream.connections.length, 1);
    assert.equal(fixture.proxy.counters.requestsTotal, 2);
  });

  it('answers pipelined requests in order, denials among them', async () => {
    await using upstream = await AnsweringUpstream.open(echo);
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();

    client.send(
      get('/1') +
        get('/2', 'X-Verdict: deny\r\n') +
        'POST /3 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n' +
        get('/4', 'X-Verdict: deny\r\n') +
        get('/5'),
    );

    assert.deepEqual(await bodies(client, 5), ['/1', 'slow down\n', '/3', 'slow down\n', '/5']);
    assert.deepEqual(fixture.gate.seen, ['/1', '/2', '/3', '/4', '/5']);
    assert.equal(upstream.heads.length, 3);
  });

  it('answers pipelined requests in order however they are cut', async () => {
    await using upstream = await AnsweringUpstream.open(echo);
    await using fixture = await ProxyFixture.open(upstream);
    const text = get('/1') + get('/2', 'X-Verdict: deny\r\n') + get('/3');

    for (let at = 1; at < text.length; at += 7) {
      const client = await fixture.connect();
      client.send(text.slice(0, at));
      await new Promise(setImmediate);
      client.send(text.slice(at));
      assert.deepEqual(await bodies(client, 3), ['/1', 'slow down\n', '/3']);
    }
  });

  it('does not ask about a request before the one ahead has its response', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(get('/1') + get('/2'));
    const application = await upstream.accept();
    await application.until('\r\n\r\n');
    assert.deepEqual(fixture.gate.seen, ['/1']);

    application.send(OK);

    await application.until('\r\n\r\n');
    assert.deepEqual(fixture.gate.seen, ['/1', '/2']);
    application.send(OK);
    await bodies(client, 2);
  });

  it('holds what comes while the gate is thinking', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send('POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nX-Verdict: wait\r\n\r\nab');
    await eventually(() => fixture.gate.waitingCount === 1, 'the gate');
    client.send('cdef' + get('/2'));

    fixture.gate.release();

    const application = await upstream.accept();
    await application.until('abcdef');
    application.send(OK);
    await application.until('GET /2');
    application.send(OK);
    assert.deepEqual(await bodies(client, 2), ['ok', 'ok']);
  });

  it('holds a body that comes after its head while the gate is thinking', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send('POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nX-Verdict: wait\r\n\r\n');
    await eventually(() => fixture.gate.waitingCount === 1, 'the gate');
    const before = fixture.proxy.counters.bytesFromClients;
    client.send('abc');
    await eventually(() => fixture.proxy.counters.bytesFromClients === before + 3, 'the bytes');
    client.send('def');

    fixture.gate.release();

    const application = await upstream.accept();
    await application.until('abcdef');
    application.send(OK);
    assert.equal((await client.response()).body, 'ok');
  });

  it('answers ten thousand pipelined denials without a stack of ten thousand calls', async () => {
    await using upstream = await AnsweringUpstream.open(echo);
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();

    client.send(
      get('/', 'X-Verdict: deny\r\n').repeat(10_000) + get('/last', 'Connection: close\r\n'),
    );

    const text = await client.rest();
    assert.equal(text.match(/HTTP\/1\.1 429 /g)?.length, 10_000);
    assert.match(text, /\/last$/);
  });

  it('closes after the request that says so', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();

    client.send(get('/1', 'Connection: close\r\n') + get('/2'));

    assert.equal((await client.response()).fields.get('connection'), 'close');
    await client.gone();
    assert.deepEqual(fixture.gate.seen, ['/1']);
  });

  it('is closed without a word when the client closes it between requests', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(get('/1'));
    await client.response();

    client.end();

    assert.equal(await client.rest(), '');
    assert.equal(fixture.proxy.counters.clientAborts, 0);
  });
});

describe('a denial', () => {
  const deny = 'X-Verdict: deny\r\n';

  it('keeps the connection when the request has no body', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(get('/', deny));

    const response = await client.response();

    assert.deepEqual(
      [response.status, response.fields.get('retry-after'), response.fields.get('connection')],
      [429, '7', undefined],
    );
    assert.equal(response.fields.get('date'), 'Fri, 02 Jan 2026 03:04:05 GMT');
    assert.equal(response.body, 'slow down\n');
    client.send(get('/2'));
    assert.equal((await client.response()).status, 200);
  });

  it('keeps the connection when the body is already there', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();

    client.send(`POST / HTTP/1.1\r\nHost: a\r\n${deny}Content-Length: 3\r\n\r\nabc${get('/2')}`);
    client.send(
      `POST / HTTP/1.1\r\nHost: a\r\n${deny}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n${get('/3')}`,
    );

    const statuses = [];
    for (let n = 0; n < 4; n += 1) statuses.push((await client.response()).status);
    assert.deepEqual(statuses, [429, 200, 429, 200]);
  });

  it('closes the connection when the body is still to come, and the answer survives its sending', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();

    client.send(`POST / HTTP/1.1\r\nHost: a\r\n${deny}Content-Length: 300000\r\n\r\nab`);
    client.send('c'.repeat(299_998));

    const response = await client.response();
    assert.deepEqual([response.status, response.fields.get('connection')], [429, 'close']);
    assert.equal(await client.rest(), '');
    assert.equal(client.wasReset, false);
  });

  it('closes the connection when the body that is there is not valid', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();

    client.send(
      `POST / HTTP/1.1\r\nHost: a\r\n${deny}Transfer-Encoding: chunked\r\n\r\nzz\r\n${get('/2')}`,
    );

    assert.equal((await client.response()).fields.get('connection'), 'close');
    await client.gone();
    assert.deepEqual(fixture.gate.seen, ['/']);
  });

  it('has no body for HEAD but says its length', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(`HEAD / HTTP/1.1\r\nHost: a\r\n${deny}\r\n`);

    const response = await client.response('HEAD');

    assert.equal(response.fields.get('content-length'), '10');
    client.send(get('/2'));
    assert.equal((await client.response()).status, 200);
  });

  it('for want of a store closes the connection', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(get('/', 'X-Verdict: unavailable\r\n'));

    const response = await client.response();

    assert.deepEqual([response.status, response.fields.get('connection')], [503, 'close']);
  });
});

describe('a refused request', () => {
  const refusals: Readonly<Record<string, readonly [status: number, text: string]>> = {
    'a bare LF': [400, 'GET / HTTP/1.1\nHost: a\n\n'],
    'a head that is too large': [431, get('/', `X: ${'x'.repeat(65_536)}\r\n`)],
    'a target that is too long': [414, get(`/${'x'.repeat(16_384)}`)],
    'too many fields': [431, get('/', 'A: b\r\n'.repeat(128))],
    CONNECT: [501, 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n'],
    'the preface of HTTP/2 behind something else': [505, '\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    'a version from the future': [505, 'GET / HTTP/3.0\r\n\r\n'],
  };

  for (const [claim, [status, text]] of Object.entries(refusals)) {
    it(`gets ${String(status)} and is closed: ${claim}`, async () => {
      await using upstream = await AnsweringUpstream.open(OK);
      await using fixture = await ProxyFixture.open(upstream);
      const client = await fixture.connect();
      client.send(text + get('/after'));

      const response = await client.response();

      assert.deepEqual([response.status, response.fields.get('connection')], [status, 'close']);
      assert.equal(response.fields.get('content-type'), 'application/problem+json');
      assert.match(response.body, new RegExp(`"status":${String(status)}`));
      assert.equal(await client.rest(), '');
      assert.deepEqual([fixture.gate.seen, upstream.heads], [[], []]);
    });
  }

  it('gets 505 when it changes to HTTP/2 on a connection that has served HTTP/1.1', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(get('/'));
    await client.response();

    client.send('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

    assert.equal((await client.response()).status, 505);
  });

  it('is counted by its reason', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send('GET / HTTP/1.1\r\n\r\n');
    await client.response();

    assert.deepEqual([...fixture.proxy.counters.refusals], [['host-missing', 1]]);
    assert.equal(fixture.proxy.counters.responses[4], 1);
  });

  it('has a body that turned out invalid: the application is cut off, the client gets 400', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n');
    const application = await upstream.accept();
    await application.until('1\r\na\r\n');

    client.send('zz\r\n');

    assert.equal((await client.response()).status, 400);
    await application.gone();
    assert.equal(application.received, '');
  });

  it('had a response under way already: both ends are cut', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n');
    const application = await upstream.accept();
    application.send('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf');
    await client.until('half');

    client.send('zz\r\n');

    assert.equal(await client.rest(), '');
    await application.gone();
  });

  it('never reaches the application with the start of an invalid body', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();

    client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n');

    assert.equal((await client.response()).status, 400);
    assert.equal(upstream.connections.length, 0);
  });
});

describe('the number of connections', () => {
  it('is bounded: the next client gets 503 and is closed, and a place that is freed is given', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream, { maxConnections: 2 });
    const first = await fixture.connect();
    const second = await fixture.connect();
    second.send(get('/'));
    assert.equal((await second.response()).status, 200);

    const third = await fixture.connect();
    const refused = await third.response();
    assert.deepEqual([refused.status, refused.fields.get('connection')], [503, 'close']);
    await third[Symbol.asyncDispose]();
    await first[Symbol.asyncDispose]();
    await eventually(() => fixture.proxy.counters.connectionsOpen === 1, 'a free place');

    const fourth = await fixture.connect();
    fourth.send(get('/'));
    assert.equal((await fourth.response()).status, 200);
    assert.equal(fixture.proxy.counters.connectionsRefused, 1);
  });

  it('is bounded for the refused ones too', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream, { maxConnections: 0 });
    const refused: RawSocket[] = [];
    for (let n = 0; n < maxRefusedConnections; n += 1) refused.push(await fixture.connect());
    for (const client of refused) assert.equal((await client.response()).status, 503);

    const last = await fixture.connect();

    assert.equal(await last.rest(), '');
  });
});

describe('the heads that have begun and not ended', () => {
  it('are bounded all together: the one that goes past it gets 503, and what ends makes room', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    const { counters } = fixture.proxy;
    const part = `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(65_000)}`;
    const fitting = Math.floor(maxPendingHeadBytes / part.length);
    const begin = async (): Promise<RawSocket> => {
      const client = await fixture.connect();
      const before = counters.bytesFromClients;
      client.send(part);
      await eventually(() => counters.bytesFromClients === before + part.length, 'the head');
      return client;
    };
    const [first, second] = [await begin(), await begin()];
    for (let n = 2; n < fitting; n += 1) await begin();
    assert.equal(counters.headsShed, 0);

    assert.equal((await (await begin()).response()).status, 503);
    first.send('\r\n\r\n');
    assert.equal((await first.response()).status, 200);
    second.reset();
    await eventually(() => counters.connectionsOpen === fitting, 'the reset');
    await begin();
    await begin();

    assert.equal(counters.headsShed, 1);
    assert.equal((await (await begin()).response()).status, 503);
  });
});

describe('the upstream connections', () => {
  it('are reused last in, first out', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const [a, b] = [await fixture.connect(), await fixture.connect()];
    a.send(get('/a'));
    const forA = await upstream.accept();
    b.send(get('/b'));
    const forB = await upstream.accept();
    forB.send(OK);
    await b.response();
    forA.send(OK);
    await a.response();
    await forA.until('\r\n\r\n');

    b.send(get('/c'));

    assert.match(await forA.until('\r\n\r\n'), /^GET \/c /);
    forA.send(OK);
    await b.response();
    assert.equal(upstream.connections.length, 2);
  });

  it('are not reused when the application says close, speaks HTTP/1.0 or sent too much', async () => {
    for (const answer of [
      'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok',
      'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok HTTP/1.1 200 OK\r\n',
      'HTTP/1.1 200 OK\r\nKeep-Alive: max=5, timeout=1\r\nContent-Length: 2\r\n\r\nok',
    ]) {
      await using upstream = await ScriptedUpstream.open();
      await using fixture = await ProxyFixture.open(upstream);
      const client = await fixture.connect();
      client.send(get('/1'));
      const first = await upstream.accept();
      first.send(answer);
      assert.equal((await client.response()).body, 'ok');
      await first.gone();

      client.send(get('/2'));

      (await upstream.accept()).send(OK);
      assert.equal((await client.response()).body, 'ok');
    }
  });

  it('are closed when the application sends what nobody asked for', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(get('/1'));
    const first = await upstream.accept();
    first.send(OK);
    await client.response();

    first.send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong');
    await first.gone();
    client.send(get('/2'));

    (await upstream.accept()).send(OK);
    assert.equal((await client.response()).body, 'ok');
  });

  it('are closed after a while of idleness, or sooner when the application says so', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    const serve = async (fields: string): Promise<RawSocket> => {
      client.send(get('/'));
      const application = await upstream.accept();
      application.send(`HTTP/1.1 200 OK\r\n${fields}Content-Length: 0\r\n\r\n`);
      await client.response();
      return application;
    };

    const long = await serve('Keep-Alive: max=9\r\n');
    fixture.advance(3_500);
    assert.equal(long.ended, false);
    fixture.advance(1_000);
    await long.gone();
    const short = await serve('Keep-Alive: timeout=3\r\n');
    fixture.advance(2_500);
    await short.gone();
  });

  it('are kept idle up to the bound', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream, { maxIdleUpstream: 1 });
    const [a, b] = [await fixture.connect(), await fixture.connect()];
    a.send(get('/a'));
    const forA = await upstream.accept();
    b.send(get('/b'));
    const forB = await upstream.accept();

    forA.send(OK);
    await a.response();
    forB.send(OK);
    await b.response();

    await forB.gone();
    assert.equal(forA.ended, false);
  });
});

describe('a fault', () => {
  it('closes its own connection, is reported, and touches no other', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream, { expectsFaults: true });
    const [victim, other] = [await fixture.connect(), await fixture.connect()];
    other.send(get('/other'));
    const application = await upstream.accept();

    victim.send(get('/', 'X-Verdict: throw\r\n'));

    assert.equal(await victim.rest(), '');
    application.send(OK);
    assert.equal((await other.response()).body, 'ok');
    assert.deepEqual(fixture.faults.map(String), ['Error: a fault in the gate']);
    assert.equal(fixture.proxy.counters.faults, 1);
  });

  it('in the reading of a response closes both ends', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream, { expectsFaults: true });
    const client = await fixture.connect();
    fixture.gate.verdict = {
      kind: 'allowed',
      fields: '',
      quota: undefined,
      afterResponse: {
        onResponseHead() {
          throw new Error('a fault in the charge');
        },
      },
    };
    client.send(get('/'));
    const application = await upstream.accept();

    application.send(OK);

    assert.equal(await client.rest(), '');
    await application.gone();
    assert.deepEqual(fixture.faults.map(String), ['Error: a fault in the charge']);
  });

  it('while a late verdict is carried out stays with its connection', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream, { expectsFaults: true });
    const client = await fixture.connect();
    client.send(get('/', 'X-Verdict: wait\r\n'));
    await eventually(() => fixture.gate.waitingCount === 1, 'the gate');
    const broken = {
      kind: 'allowed',
      get fields(): string {
        throw new Error('a fault in the verdict');
      },
      quota: undefined,
      afterResponse: undefined,
    } as const;

    fixture.gate.release(broken);

    assert.equal(await client.rest(), '');
    assert.deepEqual(fixture.faults.map(String), ['Error: a fault in the verdict']);
  });
});

describe('a gate that answers at once', () => {
  it('is all a proxy needs', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.openWith(upstream, openGate);
    const client = await fixture.connect();
    client.send(get('/'));

    assert.equal((await client.response()).body, 'ok');
  });
});
