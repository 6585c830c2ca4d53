// What happens when one side goes away, lies or stalls.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { maxLingerBytes, sweepIntervalMs } from '../../sidecar/proxy/proxy-options.ts';
import { ProxyFixture } from '../support/proxy-fixture.ts';
import { eventually, untilStill } from '../support/raw-socket.ts';
import type { RawSocket } from '../support/raw-socket.ts';
import { AnsweringUpstream, closedPort, ScriptedUpstream } from '../support/upstream.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const get = (target: string, fields = ''): string =>
  `GET ${target} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;

/** A client and the application's side of a connection that has served one exchange and is idle. */
async function warm(
  fixture: ProxyFixture,
  upstream: ScriptedUpstream,
): Promise<{ client: RawSocket; application: RawSocket }> {
  const client = await fixture.connect();
  client.send(get('/warm'));
  const application = await upstream.accept();
  await application.until('\r\n\r\n');
  application.send(OK);
  await client.response();
  return { client, application };
}

async function assertClosing(client: RawSocket, status: number): Promise<void> {
  const response = await client.response();
  assert.deepEqual([response.status, response.fields.get('connection')], [status, 'close']);
  assert.equal(response.fields.get('content-type'), 'application/problem+json');
  await client.gone();
}

describe('a client that goes away', () => {
  it('frees the upstream while it waits for the response', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    for (const leave of ['end', 'reset'] as const) {
      const client = await fixture.connect();
      client.send(get('/'));
      const application = await upstream.accept();
      await application.until('\r\n\r\n');

      client[leave]();

      await application.gone();
    }
    assert.equal(fixture.proxy.counters.clientAborts, 2);
  });

  it('frees the upstream in the middle of its body', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf');
    const application = await upstream.accept();
    await application.until('half');

    client.reset();

    await application.gone();
  });

  it('frees the upstream in the middle of the response', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(get('/'));
    const application = await upstream.accept();
    application.send('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf');
    await client.until('half');

    client.reset();

    await application.gone();
  });

  it('takes its question to the gate back', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    for (const leave of ['end', 'reset'] as const) {
      const client = await fixture.connect();
      client.send(get('/', 'X-Verdict: wait\r\n'));
      await eventually(() => fixture.gate.waitingCount === 1, 'the gate');
      const { cancelled } = fixture.gate;
      const before = cancelled.length;

      client[leave]();

      await eventually(() => cancelled.length === before + 1, 'the cancellation');
      fixture.gate.release();
    }
    assert.equal(upstream.connections.length, 0);
    assert.equal(fixture.proxy.counters.clientAborts, 2);
  });

  it('in the middle of a head leaves nothing behind', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send('GET / HT');

    client.end();

    assert.equal(await client.rest(), '');
    assert.equal(fixture.proxy.counters.requestsTotal, 0);
  });
});

describe('an application that fails before its response', () => {
  it('is 503 when nothing listens', async () => {
    await using fixture = await ProxyFixture.open({ port: await closedPort() });
    const client = await fixture.connect();
    client.send(get('/'));

    await assertClosing(client, 503);
    assert.equal(fixture.proxy.counters.upstreamErrors.connect, 1);
  });

  it('is 502 when it closes or resets a new connection', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    for (const leave of ['end', 'reset'] as const) {
      const client = await fixture.connect();
      client.send(get('/'));
      const application = await upstream.accept();
      await application.until('\r\n\r\n');

      application[leave]();

      await assertClosing(client, 502);
    }
    const { upstreamErrors, upstreamRetries } = fixture.proxy.counters;
    assert.deepEqual([upstreamErrors.closed, upstreamErrors.reset], [1, 1]);
    assert.equal(upstreamRetries, 0);
  });

  for (const [claim, answer] of Object.entries({
    'a status line that is none': 'HTTP/1.1 OK\r\n\r\n',
    'a bare LF': 'HTTP/1.1 200 OK\nContent-Length: 0\n\n',
    'two framings': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    'an upgrade nobody asked for': 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n',
    'a first chunk that is none': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
  })) {
    it(`is 502 when it sends ${claim}`, async () => {
      await using upstream = await ScriptedUpstream.open();
      await using fixture = await ProxyFixture.open(upstream);
      const client = await fixture.connect();
      client.send(get('/'));
      const application = await upstream.accept();

      application.send(answer);

      await assertClosing(client, 502);
      await application.gone();
      assert.equal(fixture.proxy.counters.upstreamErrors['bad-response'], 1);
    });
  }

  it('is 502 when it closes in the middle of a head', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(get('/'));

    (await upstream.accept()).end('HTTP/1.1 200 OK\r\nConte');

    await assertClosing(client, 502);
  });
});

describe('an application of HTTP/2 that is asked in HTTP/1.1', () => {
  for (const then of ['close', 'go on'] as const) {
    it(`is said to be one, though its first frame is not the end of it: ${then}`, async () => {
      await using upstream = await ScriptedUpstream.open();
      await using fixture = await ProxyFixture.open(upstream);
      const client = await fixture.connect();
      client.send(get('/'));
      const application = await upstream.accept();
      // SETTINGS with one of them, as servers begin with; then what they say of a preface that is none.
      application.send('\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64');
      if (then === 'close') application.end();
      else application.send('\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01\r\n');

      const { status, body } = await client.response();

      assert.equal(status, 502);
      assert.match(body, /The application speaks HTTP\/2, and was asked in HTTP\/1\.1\./);
    });
  }
});

describe('an application that fails after its head', () => {
  const starts: Readonly<Record<string, string>> = {
    'a length': 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf',
    chunks: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n',
  };

  for (const [claim, start] of Object.entries(starts)) {
    it(`cuts the client of a response with ${claim}`, async () => {
      await using upstream = await ScriptedUpstream.open();
      await using fixture = await ProxyFixture.open(upstream);
      for (const leave of ['end', 'reset'] as const) {
        const client = await fixture.connect();
        client.send(get('/'));
        const application = await upstream.accept();
        application.send(start);
        await client.until('half');

        application[leave]();

        await client.gone();
        assert.doesNotMatch(client.received, /HTTP/);
      }
    });
  }

  it('cuts the client of a response with invalid chunks', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(get('/'));
    const application = await upstream.accept();
    application.send(starts['chunks'] ?? '');
    await client.until('half');

    application.send('zz\r\n');

    await client.gone();
    await application.gone();
  });

  it('resets the client whose response would look complete otherwise', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(get('/'));
    const application = await upstream.accept();
    application.send('HTTP/1.1 200 OK\r\n\r\nhalf');
    await client.until('half');

    application.reset();

    await client.waitFor(() => client.wasReset, 'a reset');
  });
});

describe('a stale upstream connection', () => {
  it('is replaced once for an idempotent request, and the client sees nothing of it', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    for (const leave of ['end', 'reset'] as const) {
      const { client, application } = await warm(fixture, upstream);
      client.send(get('/again'));
      await application.until('\r\n\r\n');

      application[leave]();

      const fresh = await upstream.accept();
      assert.match(await fresh.until('\r\n\r\n'), /^GET \/again /);
      fresh.send(OK.replace('\r\n', '\r\nConnection: close\r\n'));
      assert.equal((await client.response()).body, 'ok');
    }
    assert.equal(fixture.proxy.counters.upstreamRetries, 2);
    assert.deepEqual(
      fixture.gate.seen.filter((target) => target === '/again'),
      ['/again', '/again'],
      'charged once each',
    );
  });

  it('is not replaced twice', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const { client, application } = await warm(fixture, upstream);
    client.send(get('/'));
    await application.until('\r\n\r\n');
    application.end();

    (await upstream.accept()).end();

    await assertClosing(client, 502);
  });

  it('is not replaced for a request that may do harm twice', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const { client, application } = await warm(fixture, upstream);
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n');
    await application.until('\r\n\r\n');

    application.end();

    await assertClosing(client, 502);
    assert.equal(upstream.connections.length, 1);
  });

  it('is not replaced once a byte of the body has left, and is before that', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const put = 'PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n';
    const first = await warm(fixture, upstream);
    first.client.send(`${put}a`);
    await first.application.until('\r\n\r\na');
    first.application.end();
    await assertClosing(first.client, 502);

    const second = await warm(fixture, upstream);
    second.client.send(put);
    await second.application.until('\r\n\r\n');
    second.application.end();

    const fresh = await upstream.accept();
    await fresh.until('\r\n\r\n');
    second.client.send('ab');
    await fresh.until('ab');
    fresh.send(OK);
    assert.equal((await second.client.response()).body, 'ok');
  });

  it('is not replaced once a byte of the response has come', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const { client, application } = await warm(fixture, upstream);
    client.send(get('/'));
    await application.until('\r\n\r\n');

    application.end('H');

    await assertClosing(client, 502);
    assert.equal(upstream.connections.length, 1);
  });
});

describe('a response that overtakes its request', () => {
  it('reaches the client, and neither connection is used again', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nstart');
    const application = await upstream.accept();
    await application.until('start');

    application.send('HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno');

    assert.equal((await client.response()).status, 413);
    await client.gone();
    await application.gone();
    assert.equal(client.wasReset, false);
  });
});

describe('a timeout', () => {
  it('answers 408 to a head that does not end, however it drips', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    let fed = 0;
    const drip = async (text: string): Promise<void> => {
      client.send(text);
      fed += text.length;
      await eventually(() => fixture.proxy.counters.bytesFromClients === fed, 'the bytes');
    };

    await drip('GET / HTTP/1.1\r\n');
    for (let second = 0; second < 9; second += 1) {
      fixture.advance(1_000);
      assert.equal(client.received, '');
      await drip(`A: ${String(second)}\r\n`);
    }
    fixture.advance(2_000);

    await assertClosing(client, 408);
    assert.equal(fixture.proxy.counters.timeouts.head, 1);
  });

  it('closes a connection that has been idle, before and after a request', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    const fresh = await fixture.connect();
    const used = await fixture.connect();
    used.send(get('/'));
    await used.response();
    await eventually(() => fixture.proxy.counters.connectionsOpen === 2, 'both connections');

    fixture.advance(59_000);
    assert.deepEqual([fresh.ended, used.ended], [false, false]);
    fixture.advance(2_000);

    assert.deepEqual([await fresh.rest(), await used.rest()], ['', '']);
    assert.equal(fixture.proxy.counters.timeouts.idle, 2);
  });

  it('answers 504 when the application does not', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(get('/'));
    const application = await upstream.accept();
    await application.until('\r\n\r\n');

    fixture.advance(59_500);
    assert.equal(client.received, '');
    fixture.advance(1_500);

    await assertClosing(client, 504);
    await application.gone();
    const { timeouts, upstreamErrors } = fixture.proxy.counters;
    assert.deepEqual([timeouts.response, upstreamErrors.timeout], [1, 1]);
  });

  it('answers 504 when the application cannot be reached in time', async () => {
    // TEST-NET-1 (RFC 5737) is routed nowhere; where the machine refuses it at once the connection fails instead.
    await using fixture = await ProxyFixture.open(
      { port: 9, host: '192.0.2.1' },
      { timeouts: { connectMs: 1_000 } },
    );
    const client = await fixture.connect();
    client.send(get('/'));
    await eventually(() => fixture.gate.seen.length === 1, 'the request');

    fixture.advance(3_000);

    const { status } = await client.response();
    const { timeouts, upstreamErrors } = fixture.proxy.counters;
    assert.deepEqual(
      [status, timeouts.connect + upstreamErrors.connect],
      status === 504 ? [504, 1] : [503, 1],
    );
  });

  it('answers 408 when the client owes its body, and frees the application', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab');
    const application = await upstream.accept();
    await application.until('ab');
    fixture.advance(50_000);
    client.send('cd');
    await application.until('cd');
    fixture.advance(50_000);
    assert.equal(client.received, '');

    fixture.advance(12_000);

    await assertClosing(client, 408);
    await application.gone();
    assert.equal(fixture.proxy.counters.timeouts['client-stall'], 1);
  });

  it('cuts a response whose application has stopped sending, after its longer patience', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(get('/'));
    const application = await upstream.accept();
    application.send('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf');
    await client.until('half');

    fixture.advance(590_000);
    assert.equal(client.closed || client.ended, false);
    fixture.advance(12_000);

    await client.gone();
    await application.gone();
    assert.equal(fixture.proxy.counters.timeouts['upstream-stall'], 1);
  });

  it('cuts a client that does not read its response', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.socket.pause();
    client.send(get('/'));
    const application = await upstream.accept();
    await application.until('\r\n\r\n');
    application.send(
      `HTTP/1.1 200 OK\r\nContent-Length: 99000000\r\n\r\n${'x'.repeat(30_000_000)}`,
    );
    const { counters } = fixture.proxy;
    await untilStill(() => counters.bytesToClients);

    fixture.advance(62_000);

    await application.gone();
    assert.equal(counters.timeouts['client-stall'], 1);
  });

  it('closes a client that only sends and never reads its answers', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.socket.pause();
    client.send(get('/', 'X-Verdict: deny\r\n').repeat(200_000));
    const { counters } = fixture.proxy;
    await untilStill(() => counters.requestsTotal);
    assert(counters.requestsTotal < 200_000, 'reading has stopped');

    fixture.advance(62_000);

    await eventually(() => counters.connectionsOpen === 0, 'the close');
    assert.equal(counters.timeouts['client-stall'] + counters.timeouts.idle, 1);
  });

  it('ends the reading of a connection that was closed and goes on sending', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send('GET / HTTP/1.1\r\n\r\n');
    await client.response();
    await client.gone();
    const { counters } = fixture.proxy;
    assert.equal(counters.connectionsOpen, 1);

    fixture.advance(3_000);

    assert.equal(counters.connectionsOpen, 0);
  });

  it('ends the reading of a closed connection after so many bytes', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    const { counters } = fixture.proxy;
    const client = await fixture.connect();
    client.send('GET / HTTP/1.1\r\n\r\n');
    await client.gone();
    const before = counters.bytesFromClients;
    client.send('x'.repeat(maxLingerBytes));
    await eventually(() => counters.bytesFromClients === before + maxLingerBytes, 'the bytes');
    assert.equal(counters.connectionsOpen, 1);

    client.send('x');

    await eventually(() => counters.connectionsOpen === 0, 'the close');
  });

  it('does not pass while the process is frozen', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send('GET / HTTP/1.1\r\n');
    await eventually(() => fixture.proxy.counters.bytesFromClients > 0, 'the bytes');

    fixture.jump(600_000);

    client.send('Host: a\r\n\r\n');
    (await upstream.accept()).send(OK);
    assert.equal((await client.response()).status, 200);
  });

  it('does not pass while the process is frozen twice, either', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream, { timeouts: { headMs: 1_000 } });
    const client = await fixture.connect();
    client.send('GET / HTTP/1.1\r\n');
    await eventually(() => fixture.proxy.counters.bytesFromClients > 0, 'the bytes');

    fixture.jump(600_000);
    fixture.jump(600_000);

    client.send('Host: a\r\n\r\n');
    (await upstream.accept()).send(OK);
    assert.equal((await client.response()).status, 200);
  });

  it('is looked at behind what has come: of a process that was held up, timers are the first to run', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream, { timeouts: { headMs: 1_000 } });
    const client = await fixture.connect();
    client.send('GET / HTTP/1.1\r\n');
    await eventually(() => fixture.proxy.counters.bytesFromClients > 0, 'the bytes');
    fixture.advance(1_000);

    // As libuv runs timers: before it reads.
    await new Promise<void>((resolve) => {
      setTimeout(() => {
        client.send('Host: a\r\n\r\n');
        fixture.tick(sweepIntervalMs, t.mock.timers);
        resolve();
      }, 0);
    });

    (await upstream.accept()).send(OK);
    assert.equal((await client.response()).status, 200);
  });
});
