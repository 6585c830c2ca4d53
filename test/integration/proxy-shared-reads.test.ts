// All connections of a proxy read into one buffer: what one of them leaves for later must be its own.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ProxyFixture } from '../support/proxy-fixture.ts';
import { ScriptedUpstream } from '../support/upstream.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const NOISE = `GET / HTTP/1.1\r\nHost: b\r\nX-Noise: ${'#'.repeat(8_000)}\r\n\r\n`;

/** Sends `bytes` in one piece, lets another client fill the buffer, and answers both. Gives what A's upstream saw. */
async function seenAfterNoise(bytes: string, requests: number): Promise<string> {
  await using upstream = await ScriptedUpstream.open();
  await using fixture = await ProxyFixture.open(upstream);
  const patient = await fixture.connect();
  const loud = await fixture.connect();
  patient.send(bytes);
  const application = await upstream.accept();
  await application.until('\r\n\r\n');

  loud.send(NOISE);
  const other = await upstream.accept();
  await other.until('\r\n\r\n');
  other.send(OK);
  await loud.response();

  let seen = application.received;
  for (let answered = 0; answered < requests; answered += 1) {
    application.send(OK);
    assert.equal((await patient.response()).status, 200);
    if (answered + 1 < requests) seen += await application.until('\r\n\r\n');
  }
  return seen + application.received;
}

describe('bytes that came early, while another connection reads', () => {
  it('are the next request still', async () => {
    const next = 'GET /next HTTP/1.1\r\nHost: a\r\nX-Kept: 0123456789\r\n\r\n';

    const seen = await seenAfterNoise(`GET / HTTP/1.1\r\nHost: a\r\n\r\n${next}`, 2);

    assert.match(seen, /GET \/next HTTP\/1\.1\r\nHost: a\r\nX-Kept: 0123456789\r\n/);
    assert.doesNotMatch(seen, /#/);
  });

  it('are the body still', async () => {
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n';

    const seen = await seenAfterNoise(`${head}0123456789`, 1);

    assert.match(seen, /0123456789$/);
    assert.doesNotMatch(seen, /#/);
  });

  it('are the beginning of the next head still', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const patient = await fixture.connect();
    const loud = await fixture.connect();
    patient.send('GET /slow HTTP/1.1\r\nHost: a\r\nX-Ke');
    loud.send(NOISE);
    const other = await upstream.accept();
    await other.until('\r\n\r\n');
    other.send(OK);
    await loud.response();

    patient.send('pt: 1\r\n\r\n');
    const seen = await other.until('\r\n\r\n');

    assert.match(seen, /^GET \/slow HTTP\/1\.1\r\nHost: a\r\nX-Kept: 1\r\n/);
  });
});
