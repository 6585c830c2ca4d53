// Report: an application that sent a body after a 204 had it read as the answer to another client's request, and the
// lengths of 204 and 1xx went on to the client, who waited for a body (RFC 9110 §8.6, RFC 9112 §6.1).
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ProxyFixture } from '../support/proxy-fixture.ts';
import { AnsweringUpstream } from '../support/upstream.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const TEN = 'Content-Length: 10\r\n';
const CHUNKED = 'Transfer-Encoding: chunked\r\n';
const ask = (method: string): string => `${method} / HTTP/1.1\r\nHost: a\r\n\r\n`;

/** What the client is given of the first answer, and over how many connections the application was asked in all. */
async function askTwice(method: string, first: string): Promise<[string, number]> {
  const answers = [first, OK];
  await using upstream = await AnsweringUpstream.open(() => answers.shift() ?? '');
  await using fixture = await ProxyFixture.open(upstream);
  const client = await fixture.connect();
  client.send(ask(method));
  const head = await client.until('\r\nX-Last: 1\r\n');
  const rest = await client.until('\r\n\r\n');

  client.send(ask('GET'));

  assert.equal((await client.response()).status, 200);
  return [head + rest, fixture.proxy.counters.upstreamConnectionsTotal];
}

describe('a response that may have no body but announces one', () => {
  for (const field of [TEN, CHUNKED]) {
    it(`ends its connection when it is a 204 with ${field.trim()}`, async () => {
      const [head, connections] = await askTwice(
        'GET',
        `HTTP/1.1 204 No Content\r\n${field}X-Last: 1\r\n\r\n`,
      );

      assert.match(head, /^HTTP\/1\.1 204 /);
      assert.doesNotMatch(head, /content-length|transfer-encoding/i);
      assert.equal(connections, 2);
    });

    it(`ends its connection when it is a 103 with ${field.trim()}`, async () => {
      const [head, connections] = await askTwice(
        'HEAD',
        `HTTP/1.1 103 Early Hints\r\n${field}\r\nHTTP/1.1 204 No Content\r\nX-Last: 1\r\n\r\n`,
      );

      assert.match(head, /^HTTP\/1\.1 103 .*HTTP\/1\.1 204 /s);
      assert.doesNotMatch(head, /content-length|transfer-encoding/i);
      assert.equal(connections, 2);
    });
  }

  it('loses a length of 0 in a 204, and keeps its connection', async () => {
    const answer = 'HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nX-Last: 1\r\n\r\n';

    const [head, connections] = await askTwice('GET', answer);

    assert.doesNotMatch(head, /content-length/i);
    assert.equal(connections, 1);
  });

  for (const [method, status] of [
    ['HEAD', '200 OK'],
    ['GET', '304 Not Modified'],
  ] as const) {
    it(`keeps length and connection of a ${method} answered ${status}`, async () => {
      const answer = `HTTP/1.1 ${status}\r\n${TEN}X-Last: 1\r\n\r\n`;

      const [head, connections] = await askTwice(method, answer);

      assert.match(head, /Content-Length: 10/);
      assert.equal(connections, 1);
    });
  }
});
