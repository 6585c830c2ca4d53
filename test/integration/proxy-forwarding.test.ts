// What the application sees of a request and the client of a response: fields, framing, statuses, versions.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Quota } from '../../sidecar/proxy/gate.ts';
import { maxInterimResponses } from '../../sidecar/proxy/proxy-options.ts';
import { ProxyFixture } from '../support/proxy-fixture.ts';
import { FieldGate } from '../support/simple-gate.ts';
import { AnsweringUpstream, ScriptedUpstream } from '../support/upstream.ts';

const OK = 'HTTP/1.1 200 OK\r\nDate: then\r\nContent-Length: 2\r\n\r\nok';
const REQUEST = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

/** The head the application gets for a request head. */
async function forwarded(request: string, via?: string): Promise<string> {
  await using upstream = await AnsweringUpstream.open(OK);
  await using fixture = await ProxyFixture.open(upstream, via === undefined ? {} : { via });
  const client = await fixture.connect();
  client.send(request);
  assert.equal((await client.response()).status, 200);
  return upstream.heads[0] ?? '';
}

/** The head and body the client gets for what the application answers. */
async function answered(
  answer: string,
  request = REQUEST,
  gate = new FieldGate(),
): Promise<string> {
  await using upstream = await ScriptedUpstream.open();
  await using fixture = await ProxyFixture.openWith(upstream, gate);
  const client = await fixture.connect();
  client.send(request);
  const application = await upstream.accept();
  await application.until('\r\n\r\n');
  application.end(answer);
  const method = request.slice(0, request.indexOf(' '));
  const response = await client.response(method);
  return response.head + response.body;
}

describe('the request the application sees', () => {
  it('has the same bytes plus what the proxy knows', async () => {
    assert.equal(
      await forwarded('GET /a/%2e%2e//b?c=%20&d HTTP/1.1\r\nhOST: a:81\r\nX-B:  c \r\n\r\n'),
      'GET /a/%2e%2e//b?c=%20&d HTTP/1.1\r\nhOST: a:81\r\nX-B:  c \r\n' +
        'X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a:81\r\n\r\n',
    );
  });

  it('loses the fields of this hop and those that Connection nominates', async () => {
    const head = await forwarded(
      'GET / HTTP/1.1\r\nConnection: keep-alive, X-One\r\nHost: a\r\nKeep-Alive: timeout=5\r\n' +
        'X-One: 1\r\nx-one: 2\r\nX-Two: 3\r\nProxy-Connection: keep-alive\r\nHTTP2-Settings: AAA\r\n' +
        'Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nLast: 4\r\n\r\n',
    );

    assert.equal(
      head,
      'GET / HTTP/1.1\r\nHost: a\r\nX-Two: 3\r\nLast: 4\r\nX-Forwarded-For: 127.0.0.1\r\n' +
        'X-Forwarded-Proto: http\r\nX-Forwarded-Host: a\r\n\r\n',
    );
  });

  it('says TE: trailers where the client does, and nothing else of TE', async () => {
    const withTe = (te: string): string =>
      `GET / HTTP/1.1\r\nHost: a\r\n${te}Connection: TE\r\n\r\n`;

    assert.match(await forwarded(withTe('TE: trailers\r\n')), /\r\nTE: trailers\r\n/);
    assert.match(await forwarded(withTe('te: gzip, Trailers\r\n')), /\r\nTE: trailers\r\n/);
    assert.doesNotMatch(await forwarded(withTe('TE: gzip\r\n')), /\r\nTE:/i);
  });

  it('has one more element in X-Forwarded-For, at the end of its last line', async () => {
    const one = await forwarded('GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1 \r\n\r\n');
    const two = await forwarded(
      'GET / HTTP/1.1\r\nHost: a\r\nx-forwarded-for: 1\r\nX-FORWARDED-FOR: 2\r\nB: c\r\n\r\n',
    );
    const empty = await forwarded('GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For:\r\n\r\n');
    const nominated = await forwarded(
      'GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6\r\nConnection: x-forwarded-for\r\n\r\n',
    );

    assert.match(one, /\r\nX-Forwarded-For: 192\.0\.2\.1, 127\.0\.0\.1\r\n/);
    assert.match(two, /\r\nx-forwarded-for: 1\r\nX-FORWARDED-FOR: 2, 127\.0\.0\.1\r\nB: c\r\n/);
    assert.match(empty, /\r\nX-Forwarded-For: 127\.0\.0\.1\r\n/);
    assert.match(nominated, /\r\nX-Forwarded-For: 127\.0\.0\.1\r\n/);
    assert.doesNotMatch(nominated, /6/);
  });

  it('has one more element in Forwarded only if there is a Forwarded', async () => {
    const without = await forwarded(REQUEST);
    const withOne = await forwarded('GET / HTTP/1.1\r\nHost: a:1\r\nForwarded: for=x\r\n\r\n');
    const oldVersion = await forwarded('GET / HTTP/1.0\r\nForwarded: for=x\r\n\r\n');

    assert.doesNotMatch(without, /\r\nForwarded:/i);
    assert.match(withOne, /\r\nForwarded: for=x, for=127\.0\.0\.1;host="a:1";proto=http\r\n/);
    assert.match(oldVersion, /\r\nForwarded: for=x, for=127\.0\.0\.1;proto=http\r\n/);
  });

  it('keeps X-Forwarded-Proto and -Host that came', async () => {
    const head = await forwarded(
      'GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example\r\n\r\n',
    );

    assert.equal(head.match(/X-Forwarded-Proto/gi)?.length, 1);
    assert.match(head, /\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: shop\.example\r\n/);
  });

  it('passes an absolute target, OPTIONS * and an unknown method as they came', async () => {
    assert.match(
      await forwarded('GET http://a/x HTTP/1.1\r\nHost: a\r\n\r\n'),
      /^GET http:\/\/a\/x /,
    );
    assert.match(
      await forwarded('OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n'),
      /^OPTIONS \* HTTP\/1\.1\r\n/,
    );
    assert.match(
      await forwarded('M-SEARCH /\xe9 HTTP/1.1\r\nHost: a\r\n\r\n'),
      /^M-SEARCH \/\xe9 /,
    );
  });

  it('names the proxy in Via only when told to', async () => {
    assert.doesNotMatch(await forwarded(REQUEST), /\r\nVia:/i);
    assert.match(await forwarded(REQUEST, 'weir'), /\r\nVia: 1\.1 weir\r\n/);
  });

  it('carries body and trailers, without chunk extensions', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(
      'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x="y"\r\nabc\r\n0;z\r\nT: u\r\n\r\n',
    );
    const application = await upstream.accept();

    assert.match(await application.until('\r\n\r\n'), /\r\nTransfer-Encoding: chunked\r\n/);
    assert.equal(await application.until('\r\n\r\n'), '3\r\nabc\r\n0\r\nT: u\r\n\r\n');
  });

  it('has its head and the body that came with it in one write', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n\xffbc');
    const application = await upstream.accept();
    await application.until('\r\n\r\n\xffbc');

    client.send('d');
    await application.until('d');
    client.send('ef\0');

    await application.until('ef\0');
    application.send(OK);
    assert.equal((await client.response()).status, 200);
  });
});

describe('the response the client sees', () => {
  it('keeps reason, case and order of fields, and body', async () => {
    const answer =
      'HTTP/1.1 299 Quite  Well\r\nx-B: 1\r\nDate: d\r\nX-a:2\r\nContent-Length: 3\r\n\r\n\xff\0c';

    assert.equal(await answered(answer), answer);
  });

  it('loses the fields of the other hop', async () => {
    const answer =
      'HTTP/1.1 200 OK\r\nDate: d\r\nConnection: keep-alive, x-c\r\nKeep-Alive: timeout=9\r\nX-C: 1\r\n' +
      'Upgrade: h2c\r\nProxy-Connection: a\r\nContent-Length: 0\r\n\r\n';

    assert.equal(await answered(answer), 'HTTP/1.1 200 OK\r\nDate: d\r\nContent-Length: 0\r\n\r\n');
  });

  it('gets a Date when the application sent none', async () => {
    const text = await answered('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');

    assert.match(text, /\r\nDate: Fri, 02 Jan 2026 03:04:05 GMT\r\n/);
  });

  it('has no body for HEAD, 204 and 304, whatever its fields say', async () => {
    const head = 'HTTP/1.1 200 OK\r\nDate: d\r\nContent-Length: 5\r\n\r\n';
    const notModified = 'HTTP/1.1 304 Not Modified\r\nDate: d\r\nContent-Length: 5\r\n\r\n';
    const noContent = 'HTTP/1.1 204 No Content\r\nDate: d\r\n\r\n';

    assert.equal(await answered(head, 'HEAD / HTTP/1.1\r\nHost: a\r\n\r\n'), head);
    assert.equal(await answered(notModified), notModified);
    assert.equal(await answered(noContent), noContent);
  });

  it('keeps its chunks and trailers but not their extensions', async () => {
    const start = 'HTTP/1.1 200 OK\r\nDate: d\r\nTransfer-Encoding: chunked\r\n\r\n';

    assert.equal(
      await answered(`${start}1;a=b\r\nx\r\n0\r\nT: u\r\n\r\n`),
      `${start}1\r\nx\r\n0\r\nT: u\r\n\r\n`,
    );
  });

  it('closes when the application’s body ends with its connection', async () => {
    const text = await answered('HTTP/1.1 200 OK\r\nDate: d\r\n\r\nall of it');

    assert.equal(text, 'HTTP/1.1 200 OK\r\nDate: d\r\nConnection: close\r\n\r\nall of it');
  });

  it('is HTTP/1.1 when the application speaks HTTP/1.0', async () => {
    const text = await answered('HTTP/1.0 200 OK\r\nDate: d\r\nContent-Length: 2\r\n\r\nok');

    assert.equal(text, 'HTTP/1.1 200 OK\r\nDate: d\r\nContent-Length: 2\r\n\r\nok');
  });

  it('closes for a client of HTTP/1.0', async () => {
    const text = await answered(OK, 'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n');

    assert.match(text, /\r\nConnection: close\r\n\r\nok$/);
  });

  it('is 502 for a client of HTTP/1.0 that could not read the chunks', async () => {
    const text = await answered(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'GET / HTTP/1.0\r\n\r\n',
    );

    assert.match(text, /^HTTP\/1\.1 502 /);
  });

  it('says Upgrade where it is about upgrading', async () => {
    const answer =
      'HTTP/1.1 426 Upgrade Required\r\nDate: d\r\nUpgrade: x\r\nConnection: Upgrade\r\n';
    const text = await answered(`${answer}Content-Length: 0\r\n\r\n`);
    const closing = await answered(
      `${answer}Content-Length: 0\r\n\r\n`,
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    );

    assert.match(text, /\r\nUpgrade: x\r\nContent-Length: 0\r\nConnection: Upgrade\r\n\r\n$/);
    assert.match(closing, /\r\nConnection: close, Upgrade\r\n\r\n$/);
  });

  it('comes after the interim responses, which pass for HTTP/1.1 only', async () => {
    const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x\r\nX: y\r\n\r\n';
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    const old = await fixture.connect();
    client.send(REQUEST);
    const first = await upstream.accept();
    old.send('GET / HTTP/1.0\r\n\r\n');
    const second = await upstream.accept();

    first.send(`${hints}HTTP/1.1 102 Processing\r\n\r\n${OK}`);
    second.send(`${hints}${OK}`);

    assert.equal(await client.until('\r\n\r\n'), 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n');
    assert.equal(await client.until('\r\n\r\n'), 'HTTP/1.1 102 Processing\r\n\r\n');
    assert.equal((await client.response()).status, 200);
    assert.equal((await old.response()).status, 200);
  });

  it('comes after as many interim responses as are allowed, and is 502 after one more', async () => {
    const interim = 'HTTP/1.1 102 Processing\r\n\r\n';
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const statusAfter = async (count: number): Promise<string> => {
      const client = await fixture.connect();
      client.send('POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
      (await upstream.accept()).send(
        interim.repeat(count) + OK.replace('\r\n', '\r\nConnection: close\r\n'),
      );
      const text = await client.rest();
      return text.slice(text.lastIndexOf('HTTP/1.1') + 9).slice(0, 3);
    };

    assert.equal(await statusAfter(maxInterimResponses), '200');
    assert.equal(await statusAfter(maxInterimResponses + 1), '502');
  });

  it('names the proxy in Via only when told to', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using fixture = await ProxyFixture.open(upstream, { via: 'weir' });
    const client = await fixture.connect();

    client.send(REQUEST);

    assert.equal((await client.response()).fields.get('via'), '1.1 weir');
  });
});

describe('a request that expects 100-continue', () => {
  const expecting = (extra: string): string =>
    `PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n${extra}\r\n`;

  it('is decided before its body is read, and continued by the application', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(expecting(''));
    const application = await upstream.accept();
    assert.match(await application.until('\r\n\r\n'), /\r\nExpect: 100-continue\r\n/);

    application.send('HTTP/1.1 100 Continue\r\n\r\n');
    assert.equal(await client.until('\r\n\r\n'), 'HTTP/1.1 100 Continue\r\n\r\n');
    client.send('body');

    await application.until('body');
    application.send(OK);
    assert.equal((await client.response()).body, 'ok');
  });

  it('is answered 429 and closed without reading the body', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();

    client.send(expecting('X-Verdict: deny\r\n'));

    const response = await client.response();
    assert.deepEqual([response.status, response.fields.get('connection')], [429, 'close']);
    await client.gone();
    assert.equal(upstream.connections.length, 0);
  });
});

describe('quota fields', () => {
  const ours = 'RateLimit-Policy: "p";q=9\r\nRateLimit: "p";r=5\r\nX-Debug: rule\r\n';
  const oursX = 'X-RateLimit-Limit: 9\r\nX-RateLimit-Remaining: 5\r\nX-RateLimit-Reset: 1\r\n';

  async function merged(theirs: string, fields: string, quota: Quota | undefined): Promise<string> {
    const gate = new FieldGate();
    gate.verdict = { kind: 'allowed', fields, quota, afterResponse: undefined };
    const answer = `HTTP/1.1 200 OK\r\nDate: d\r\n${theirs}Content-Length: 0\r\n\r\n`;
    const text = await answered(answer, REQUEST, gate);
    return text.replace('HTTP/1.1 200 OK\r\nDate: d\r\n', '').replace('Content-Length: 0\r\n', '');
  }

  const quota: Quota = { form: 'RateLimit', remaining: 5 };
  const quotaX: Quota = { form: 'XRateLimit', remaining: 5 };

  it('of ours are added', async () => {
    assert.equal(await merged('', ours, quota), `${ours}\r\n`);
    assert.equal(await merged('', 'X-Debug: rule\r\n', undefined), 'X-Debug: rule\r\n\r\n');
  });

  it('of the application stay when they leave less or as much, and ours are not sent', async () => {
    for (const theirs of [
      'RateLimit: "app";r=5\r\n',
      'RateLimit: "a";r=9, "b";r=4;t=3\r\n',
      'RateLimit: "a";r=9\r\nRateLimit: "b";r=1\r\n',
      'RateLimit: limit=10, remaining=5, reset=3\r\n',
    ]) {
      assert.equal(await merged(theirs, ours, quota), `${theirs}X-Debug: rule\r\n\r\n`);
    }
    assert.equal(
      await merged('x-ratelimit-remaining: 0\r\n', oursX, quotaX),
      'x-ratelimit-remaining: 0\r\n\r\n',
    );
  });

  it('of the application give way when they leave more', async () => {
    assert.equal(
      await merged('RateLimit: "app";r=6\r\nRateLimit-Policy: "app";q=8\r\n', ours, quota),
      `${ours}\r\n`,
    );
    assert.equal(
      await merged(
        'X-RateLimit-Limit: 8\r\nX-RateLimit-Remaining: 6\r\nX-RateLimit-Reset: 2\r\n',
        oursX,
        quotaX,
      ),
      `${oursX}\r\n`,
    );
    assert.equal(await merged('RateLimit: limit=10, remaining=6\r\n', ours, quota), `${ours}\r\n`);
  });

  it('of the application that cannot be read stay', async () => {
    for (const theirs of [
      'RateLimit: ???\r\n',
      'RateLimit: "app"\r\n',
      'RateLimit: remaining=(1 2)\r\n',
      'RateLimit: remaining=a\r\n',
    ]) {
      assert.equal(await merged(theirs, ours, quota), `${theirs}X-Debug: rule\r\n\r\n`);
    }
    assert.equal(
      await merged('X-RateLimit-Remaining: few\r\n', oursX, quotaX),
      'X-RateLimit-Remaining: few\r\n\r\n',
    );
  });

  it('of the other form are not touched', async () => {
    const theirs = 'X-RateLimit-Remaining: 1\r\n';

    assert.equal(await merged(theirs, ours, quota), `${theirs}${ours}\r\n`);
  });
});

describe('the head of a response', () => {
  it('is shown to the gate when the verdict asks for it, interim heads are not', async () => {
    const seen: (string | undefined)[] = [];
    const gate = new FieldGate();
    gate.verdict = {
      kind: 'allowed',
      fields: '',
      quota: undefined,
      afterResponse: {
        onResponseHead: (header) => seen.push(header('x-cost'), header('x-none')),
      },
    };

    await answered(
      'HTTP/1.1 103 Early Hints\r\nX-Cost: 1\r\n\r\nHTTP/1.1 200 OK\r\nX-Cost: 7\r\nContent-Length: 0\r\n\r\n',
      REQUEST,
      gate,
    );

    assert.deepEqual(seen, ['7', undefined]);
  });
});
