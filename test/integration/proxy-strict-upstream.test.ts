// Smuggling seen from outside: Node's own strict HTTP server stands behind the proxy and counts what it is asked. It
// must count exactly the requests that the client side saw answered from there, whatever bytes the client sent: no
// request may appear that the gate was not asked about.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { describe, it } from 'node:test';
import { readRequest } from '../support/engine-reading.ts';
import { MessageGenerator } from '../support/http1-messages.ts';
import { closed, listenOnLoopback, portOf } from '../support/loopback.ts';
import { ProxyFixture } from '../support/proxy-fixture.ts';

interface Asked {
  readonly target: string;
  readonly body: string;
}

class StrictUpstream implements AsyncDisposable {
  readonly asked: Asked[] = [];
  readonly parseErrors: string[] = [];
  readonly #server: Server;

  private constructor() {
    this.#server = createServer({ insecureHTTPParser: false }, (request, response) => {
      let body = '';
      request.setEncoding('latin1');
      request.on('data', (text: string) => (body += text));
      request.on('end', () => {
        this.asked.push({ target: request.url ?? '', body });
        response.setHeader('X-Served', String(this.asked.length));
        response.end('served');
      });
      request.on('error', () => undefined);
    });
    this.#server.on('clientError', (error: Error, socket) => {
      this.parseErrors.push(error.message);
      socket.destroy();
    });
    // Protocol switches are not what this is about: they are answered like any request.
    this.#server.on('checkContinue', (request, response) => {
      response.writeContinue();
      this.#server.emit('request', request, response);
    });
  }

  static async open(): Promise<StrictUpstream> {
    const upstream = new StrictUpstream();
    await listenOnLoopback(upstream.#server);
    return upstream;
  }

  get port(): number {
    return portOf(this.#server);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await closed(this.#server);
  }
}

const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n';
const post = (fields: string, body: string): string =>
  `POST /first HTTP/1.1\r\nHost: a\r\n${fields}\r\n${body}`;

/** Requests that hide another for whoever reads them the other way. */
const hiding: Readonly<Record<string, string>> = {
  'CL.TE': post('Content-Length: 6\r\nTransfer-Encoding: chunked\r\n', `0\r\n\r\n${smuggled}`),
  'TE.CL': post(
    'Transfer-Encoding: chunked\r\nContent-Length: 4\r\n',
    `23\r\n${smuggled}\r\n0\r\n\r\n`,
  ),
  'TE.TE with a tab': post(
    'Transfer-Encoding: chunked\r\nTransfer-Encoding:\tx\r\n',
    `0\r\n\r\n${smuggled}`,
  ),
  'TE with a trailing tab': post('Transfer-Encoding: chunked\t\r\n', `0\r\n\r\n${smuggled}`),
  'TE with a space before the colon': post(
    'Transfer-Encoding : chunked\r\n',
    `0\r\n\r\n${smuggled}`,
  ),
  'TE behind a folded line': post(
    'X: y\r\n Transfer-Encoding: chunked\r\n',
    `0\r\n\r\n${smuggled}`,
  ),
  'TE behind a bare CR': post('X: y\rTransfer-Encoding: chunked\r\n', `0\r\n\r\n${smuggled}`),
  'TE behind a bare LF': post('X: y\nTransfer-Encoding: chunked\r\n', `0\r\n\r\n${smuggled}`),
  'TE behind NUL': post(
    'X: y\0\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n',
    `0\r\n\r\n${smuggled}`,
  ),
  'two lengths': post(
    `Content-Length: 0\r\nContent-Length: ${String(smuggled.length)}\r\n`,
    smuggled,
  ),
  'a length with a sign': post(`Content-Length: +${String(smuggled.length)}\r\n`, smuggled),
  'a length with an underscore': post(`Content_Length: ${String(smuggled.length)}\r\n`, smuggled),
  'a length nominated by Connection': post(
    `Connection: Content-Length\r\nContent-Length: ${String(smuggled.length)}\r\n`,
    smuggled,
  ),
  'a chunk size that overflows': post(
    'Transfer-Encoding: chunked\r\n',
    `10000000000000000\r\n${smuggled}\r\n0\r\n\r\n`,
  ),
  'a chunk extension with a bare LF': post(
    'Transfer-Encoding: chunked\r\n',
    `1;\na\r\n0\r\n\r\n${smuggled}`,
  ),
  'a chunk with one byte too many': post(
    'Transfer-Encoding: chunked\r\n',
    `1\r\nab\r\n0\r\n\r\n${smuggled}`,
  ),
  'a trailer that frames': post(
    'Transfer-Encoding: chunked\r\n',
    `0\r\nContent-Length: ${String(smuggled.length)}\r\n\r\n${smuggled}`,
  ),
  'a GET with a body': `GET /first HTTP/1.1\r\nHost: a\r\nContent-Length: ${String(smuggled.length)}\r\n\r\n${smuggled}`,
  'an upgrade with a body': post(
    `Connection: Upgrade\r\nUpgrade: x\r\nContent-Length: ${String(smuggled.length)}\r\n`,
    smuggled,
  ),
  'chunks that hold a request': post(
    'Transfer-Encoding: chunked\r\n',
    `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`,
  ),
};

/** Whether the proxy will end the connection by itself after these bytes, rather than wait for more. */
function endsByItself(bytes: string): boolean {
  let rest = bytes;
  for (;;) {
    const reading = readRequest(rest);
    if (reading.kind === 'incomplete') return false;
    if (reading.kind === 'refused' || ('wantsClose' in reading.head && reading.head.wantsClose))
      return true;
    rest = rest.slice(reading.end);
  }
}

/** A generated request that Node's server knows how to ask for: it refuses some methods and bytes in targets. */
function knownToNode(text: string): string {
  return text.replace(/^(PURGE|WEIRD|get|SOURCE) /, 'POST ').replace('/caf\xe9', '/cafe');
}

describe('a strict server behind the proxy', () => {
  for (const [claim, text] of Object.entries(hiding)) {
    it(`counts what the client side counts: ${claim}`, async () => {
      await using upstream = await StrictUpstream.open();
      await using fixture = await ProxyFixture.open(upstream);
      const client = await fixture.connect();
      const last = 'GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

      client.send(text + last);
      const answers = await client.rest();

      const served = answers.match(/\r\nX-Served: /g)?.length ?? 0;
      const asked = upstream.asked.map(({ target }) => target);
      assert.deepEqual(upstream.parseErrors, []);
      assert.equal(asked.length, served, answers);
      // What the gate saw and the application did not was refused in its body.
      assert.deepEqual(asked, fixture.gate.seen.slice(0, asked.length));
      assert(!asked.includes('/smuggled') || fixture.gate.seen.includes('/smuggled'));
    });
  }

  const seed = randomInt(2 ** 31);

  it(`counts what the client side counts over 2000 generated messages (seed ${String(seed)})`, async () => {
    await using upstream = await StrictUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const generator = new MessageGenerator(seed);
    const last = 'GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
    let served = 0;

    for (let n = 0; n < 2_000; n += 1) {
      const bytes = knownToNode(generator.request()) + last;
      if (!endsByItself(bytes)) continue;
      const client = await fixture.connect();
      client.send(bytes);
      await client.gone();
      served += client.received.match(/\r\nX-Served: /g)?.length ?? 0;
      await client[Symbol.asyncDispose]();
    }

    assert.deepEqual(
      upstream.parseErrors.filter((error) => !/url|method/i.test(error)),
      [],
    );
    assert.equal(upstream.asked.length, served);
    assert(upstream.asked.length <= fixture.gate.seen.length);
    assert(served > 1_000, `only ${String(served)} were served`);
  });
});
