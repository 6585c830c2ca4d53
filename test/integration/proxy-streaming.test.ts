// Bodies flow both ways without being kept: backpressure reaches the sender, memory stays flat, bytes arrive intact.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { memoryUsage } from 'node:process';
import { describe, it } from 'node:test';
import { maxJoinedBytes } from '../../sidecar/proxy/proxy-options.ts';
import { ProxyFixture } from '../support/proxy-fixture.ts';
import { untilStill } from '../support/raw-socket.ts';
import type { RawSocket } from '../support/raw-socket.ts';
import { ScriptedUpstream } from '../support/upstream.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const MiB = 1_048_576;

/** Bytes of both kernels' socket buffers, of streams and of what is in flight; far below the bodies sent here. */
const BUFFERED_AT_MOST = 24 * MiB;

/** Writes `total` bytes as fast as the socket takes them; resolves with their hash when the last is handed over. */
async function pour(into: RawSocket, total: number): Promise<string> {
  const hash = createHash('sha1');
  const block = Buffer.alloc(65_536);
  for (let i = 0; i < block.length; i += 1) block[i] = (i * 31 + (i >> 8)) & 255;
  for (let sent = 0; sent < total; sent += block.length) {
    const part = block.subarray(0, Math.min(block.length, total - sent));
    hash.update(part);
    if (!into.socket.write(part))
      await new Promise((resolve) => into.socket.once('drain', resolve));
  }
  return hash.digest('hex');
}

/** Reads everything without keeping it; resolves with the hash of `total` bytes after the first `mark`. */
function drain(from: RawSocket, total: number): Promise<string> {
  const hash = createHash('sha1');
  hash.update(Buffer.from(from.received, 'latin1'));
  let left = total - from.received.length;
  from.received = '';
  from.socket.removeAllListeners('data');
  return new Promise((resolve) => {
    from.socket.on('data', (bytes: Buffer) => {
      hash.update(bytes);
      left -= bytes.length;
      if (left <= 0) resolve(hash.digest('hex'));
    });
  });
}

async function openExchange(
  fixture: ProxyFixture,
  upstream: ScriptedUpstream,
  requestHead: string,
): Promise<{ client: RawSocket; application: RawSocket }> {
  const client = await fixture.connect();
  client.send(requestHead);
  const application = await upstream.accept();
  await application.until('\r\n\r\n');
  return { client, application };
}

describe('a large body', () => {
  // Client and application are in this process too, whose garbage alone has passed 64 MiB: a kept body would not hide in it.
  const total = 256 * MiB;

  it('reaches the application intact in flat memory', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${String(total)}\r\n\r\n`;
    const { client, application } = await openExchange(fixture, upstream, head);
    const before = memoryUsage().rss;

    const received = drain(application, total);
    const sent = await pour(client, total);

    assert.equal(await received, sent);
    assert(memoryUsage().rss - before < total, 'the body was not kept');
    application.send(OK);
    assert.equal((await client.response()).body, 'ok');
  });

  it('reaches the client intact in flat memory', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const { client, application } = await openExchange(
      fixture,
      upstream,
      'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
    );
    application.send(`HTTP/1.1 200 OK\r\nContent-Length: ${String(total)}\r\n\r\n`);
    await client.until('\r\n\r\n');
    const before = memoryUsage().rss;

    const received = drain(client, total);
    const sent = await pour(application, total);

    assert.equal(await received, sent);
    assert(memoryUsage().rss - before < total, 'the body was not kept');
  });

  it('passes intact in chunks of every size, both ways at once', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    let chunks = '';
    for (let size = 1; size < 3_000; size = Math.ceil(size * 1.3)) {
      chunks += `${size.toString(16)};x=${String(size)}\r\n${'\r\n0'.repeat(size).slice(0, size)}\r\n`;
    }
    const plain = chunks.replaceAll(/;x=\d+/g, '');
    const { client, application } = await openExchange(
      fixture,
      upstream,
      'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n',
    );
    application.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
    await client.until('\r\n\r\n');

    for (let at = 0; at < chunks.length; at += 997) {
      client.send(chunks.slice(at, at + 997));
      application.send(chunks.slice(at, at + 997));
      await new Promise(setImmediate);
    }
    client.send('0\r\n\r\n');
    application.send('0\r\n\r\n');

    assert.equal(await application.bytes(plain.length + 5), `${plain}0\r\n\r\n`);
    assert.equal(await client.bytes(plain.length + 5), `${plain}0\r\n\r\n`);
  });
});

describe('a body around the size that is joined to its head', () => {
  for (const size of [maxJoinedBytes - 1, maxJoinedBytes, maxJoinedBytes + 1, 3 * maxJoinedBytes]) {
    it(`of ${size} bytes passes intact both ways`, async () => {
      await using upstream = await ScriptedUpstream.open();
      await using fixture = await ProxyFixture.open(upstream);
      const body = '\xff\0x'.repeat(size).slice(0, size);
      const { client, application } = await openExchange(
        fixture,
        upstream,
        `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${size}\r\n\r\n${body}`,
      );
      assert.equal(await application.bytes(size), body);

      application.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n${body}`);

      assert.equal((await client.response()).body, body);
    });
  }
});

describe('backpressure', () => {
  it('stops the client while the application does not read, and lets it go on after', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const total = 64 * MiB;
    const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${String(total)}\r\n\r\n`;
    const { client, application } = await openExchange(fixture, upstream, head);
    application.socket.pause();

    const pouring = pour(client, total);
    const { counters } = fixture.proxy;
    await untilStill(() => counters.bytesFromClients);
    assert(counters.bytesFromClients < BUFFERED_AT_MOST, String(counters.bytesFromClients));
    const received = drain(application, total);
    application.socket.resume();

    assert.equal(await received, await pouring);
  });

  it('stops the application while the client does not read, and lets it go on after', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const total = 64 * MiB;
    const { client, application } = await openExchange(
      fixture,
      upstream,
      'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
    );
    application.send(`HTTP/1.1 200 OK\r\nContent-Length: ${String(total)}\r\n\r\n`);
    await client.until('\r\n\r\n');
    client.socket.pause();

    const pouring = pour(application, total);
    const { counters } = fixture.proxy;
    await untilStill(() => counters.bytesToClients);
    assert(counters.bytesToClients < BUFFERED_AT_MOST, String(counters.bytesToClients));
    const received = drain(client, total);
    client.socket.resume();

    assert.equal(await received, await pouring);
  });

  it('stops reading requests while the client does not read their answers, and goes on after', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.socket.pause();
    const request = 'GET / HTTP/1.1\r\nHost: a\r\nX-Verdict: deny\r\n\r\n';
    client.send(request.repeat(100_000));
    const { counters } = fixture.proxy;
    await untilStill(() => counters.requestsTotal);
    assert(counters.bytesToClients < BUFFERED_AT_MOST, String(counters.bytesToClients));

    client.socket.resume();
    client.send('GET / HTTP/1.1\r\nHost: a\r\nX-Verdict: deny\r\nConnection: close\r\n\r\n');

    const answers = await client.rest();
    assert.equal(answers.match(/HTTP\/1\.1 429/g)?.length, 100_001);
  });

  it('of one response does not hold up the next on the same upstream connection', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const { client, application } = await openExchange(
      fixture,
      upstream,
      'GET /1 HTTP/1.1\r\nHost: a\r\n\r\n',
    );
    client.socket.pause();
    const size = 8 * MiB;
    application.send(
      `HTTP/1.1 200 OK\r\nContent-Length: ${String(size)}\r\n\r\n${'x'.repeat(size)}`,
    );
    await untilStill(() => fixture.proxy.counters.bytesToClients);
    client.socket.resume();
    assert.equal((await client.response()).body.length, size);

    const other = await fixture.connect();
    other.send('GET /2 HTTP/1.1\r\nHost: a\r\n\r\n');

    assert.match(await application.until('\r\n\r\n'), /^GET \/2 /);
    application.send(OK);
    assert.equal((await other.response()).body, 'ok');
  });
});
