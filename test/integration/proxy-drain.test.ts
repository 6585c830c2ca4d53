// Leaving without a dropped request: drain first, stop later.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { drainIdleMs } from '../../sidecar/proxy/proxy-options.ts';
import { ProxyFixture } from '../support/proxy-fixture.ts';
import { eventually, RawSocket } from '../support/raw-socket.ts';
import { AnsweringUpstream, ScriptedUpstream } from '../support/upstream.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const get = (target: string, fields = ''): string =>
  `GET ${target} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;

describe('draining', () => {
  it('closes the connection with every response from then on, and still takes new ones', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    const old = await fixture.connect();
    old.send(get('/'));
    assert.equal((await old.response()).fields.get('connection'), undefined);

    fixture.proxy.startDraining();

    for (const client of [old, await fixture.connect()]) {
      client.send(get('/'));
      assert.equal((await client.response()).fields.get('connection'), 'close');
      assert.equal(await client.rest(), '');
    }
    const denied = await fixture.connect();
    denied.send(get('/', 'X-Verdict: deny\r\n'));
    assert.equal((await denied.response()).fields.get('connection'), 'close');
  });

  it('ends a connection that nobody uses, before its application has gone, and leaves new ones their time', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    const kept = await fixture.connect();
    kept.send(get('/'));
    await kept.response();

    fixture.proxy.startDraining();
    fixture.advance(drainIdleMs - 1_000);
    const late = await fixture.connect();
    late.send(get('/'));
    await late.response();
    const unused = await fixture.connect();
    fixture.advance(2_000);

    assert.equal(await kept.rest(), '');
    unused.send(get('/'));
    assert.equal((await unused.response()).status, 200);
  });

  it('says close in a response that starts after it, and lets one that started before keep its word', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const [early, late] = [await fixture.connect(), await fixture.connect()];
    early.send(get('/early'));
    const forEarly = await upstream.accept();
    late.send(get('/late'));
    const forLate = await upstream.accept();
    forEarly.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha');
    await early.until('ha');

    fixture.proxy.startDraining();
    forEarly.send('lf');
    forLate.send(OK);

    assert.equal(await early.until('lf'), 'lf');
    assert.equal((await late.response()).fields.get('connection'), 'close');
    early.send(get('/next'));
    const next = await askedFor(upstream, '/next');
    next.send(OK);
    assert.equal((await early.response()).fields.get('connection'), 'close');
  });
});

describe('a rolling restart', () => {
  it('loses no request of clients that keep their connections until they are told to close', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using old = await ProxyFixture.open(upstream);
    await using fresh = await ProxyFixture.open(upstream);
    const statuses: number[] = [];
    const runClient = async (): Promise<void> => {
      let serving = old;
      let client = await serving.connect();
      for (let n = 0; n < 40; n += 1) {
        client.send(get(`/${n}`));
        const response = await client.response();
        statuses.push(response.status);
        if (statuses.length === 200) old.proxy.startDraining();
        if (response.fields.get('connection') !== 'close') continue;
        await client[Symbol.asyncDispose]();
        serving = fresh;
        client = await serving.connect();
      }
    };

    await Promise.all(Array.from({ length: 16 }, runClient));
    const stopped = old.proxy.stop(10_000);
    old.advance(1_000);
    await stopped;

    assert.equal(statuses.length, 640);
    assert(statuses.every((status) => status === 200));
    assert(fresh.proxy.counters.requestsTotal > 400);
    assert.equal(old.proxy.counters.requestsTotal + fresh.proxy.counters.requestsTotal, 640);
  });
});

/** The application's side of the connection that was asked for `target`. */
async function askedFor(upstream: ScriptedUpstream, target: string): Promise<RawSocket> {
  const find = (): RawSocket | undefined =>
    upstream.connections.find((connection) => connection.received.includes(`GET ${target} `));
  await eventually(() => find() !== undefined, target);
  const found = find();
  assert(found !== undefined);
  return found;
}

describe('stopping', () => {
  it('closes what has been idle for a second and finishes what is under way', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const idle = await fixture.connect();
    const busy = await fixture.connect();
    const sending = await fixture.connect();
    busy.send(get('/'));
    const application = await upstream.accept();
    sending.send('GET /slow HT');
    const { counters } = fixture.proxy;
    await eventually(
      () => counters.connectionsOpen === 3 && counters.bytesFromClients === 39,
      'all',
    );

    const stopped = fixture.proxy.stop(10_000);
    fixture.advance(1_500);

    assert.equal(await idle.rest(), '');
    application.send(OK);
    const response = await busy.response();
    assert.deepEqual([response.status, response.fields.get('connection')], [200, 'close']);
    sending.send('TP/1.1\r\nHost: a\r\n\r\n');
    (await upstream.accept()).send(OK);
    assert.equal((await sending.response()).status, 200);
    busy.end();
    sending.end();
    await stopped;
    const refused = await RawSocket.connect(fixture.proxy.address.port);
    assert.equal(refused.wasReset, true);
  });

  it('serves whoever still comes, until nobody has come for a second or five have passed', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream);
    // Accepted, and its request not sent yet: the kernel may hold it already.
    const early = await fixture.connect();
    await eventually(() => fixture.proxy.counters.connectionsOpen === 1, 'it is there');
    const stopped = fixture.proxy.stop(20_000);
    early.send(get('/early'));
    assert.equal((await early.response()).status, 200);
    early.end();
    for (let half = 0; half < 10; half += 1) {
      const client = await fixture.connect();
      client.send(get(`/${half}`));
      assert.equal((await client.response()).status, 200);
      client.end();
      fixture.advance(500);
    }

    await stopped;

    assert.equal((await RawSocket.connect(fixture.proxy.address.port)).wasReset, true);
  });

  it('closes a connection whose response had promised to stay, once that is done', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(get('/'));
    const application = await upstream.accept();
    application.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha');
    await client.until('ha');

    const stopped = fixture.proxy.stop(10_000);
    fixture.advance(1_000);
    application.send('lf');

    assert.equal(await client.rest(), 'lf');
    client.end();
    await stopped;
    await application.gone();
  });

  it('cuts what has not finished when the grace is over', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(get('/'));
    const application = await upstream.accept();
    await application.until('\r\n\r\n');
    let done = false;
    const stopped = fixture.proxy.stop(10_000).then(() => {
      done = true;
    });
    fixture.advance(9_500);
    await new Promise(setImmediate);
    assert.equal(done, false);

    fixture.advance(1_000);

    await stopped;
    assert.equal(await client.rest(), '');
    await application.gone();
  });

  it('cuts at once without grace, also when a longer one was given before', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(get('/'));
    await (await upstream.accept()).until('\r\n\r\n');
    const first = fixture.proxy.stop(60_000);

    await Promise.all([first, fixture.proxy.stop(0)]);

    assert.equal(await client.rest(), '');
  });

  it('cuts tunnels at the end of the grace', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send('GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n');
    const application = await upstream.accept();
    application.send(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
    );
    await client.response();

    const stopped = fixture.proxy.stop(1_000);
    client.send('still open');
    await application.until('still open');
    fixture.advance(1_500);

    await stopped;
    await client.gone();
  });
});
