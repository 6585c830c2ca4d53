// Report: an answer that came before the upload was done closed the connection without saying so in its head, and the
// client sent its next request into it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ProxyFixture } from '../support/proxy-fixture.ts';
import { ScriptedUpstream } from '../support/upstream.ts';

const UPLOAD = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf';

describe('a response before the end of the upload', () => {
  it('says that it is the last when it is whole already', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(UPLOAD);
    const application = await upstream.accept();
    await application.until('half');

    application.send('HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno');
    const response = await client.response();

    assert.deepEqual([response.status, response.fields.get('connection')], [413, 'close']);
    await client.gone();
  });

  it('leaves the connection open when the upload ends before the response does', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(UPLOAD);
    const application = await upstream.accept();
    await application.until('half');
    application.send('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nec');
    await client.until('ec');
    client.send('other');
    await application.until('other');

    application.send('ho');
    await client.until('ho');
    client.send('GET /next HTTP/1.1\r\nHost: a\r\n\r\n');
    await application.until('/next');

    assert.deepEqual(fixture.gate.seen, ['/', '/next']);
  });
});
