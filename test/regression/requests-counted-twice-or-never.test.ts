// Report: the verdicts of weir_requests_total did not add up to the requests. One whose body was refused counted as
// allowed and as an error; one whose client went while the store was asked counted nowhere, but was charged.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type IncomingHttpHeaders } from 'node:http2';
import { describe, it } from 'node:test';
import { RawSocket } from '../support/raw-socket.ts';
import { eventually, openRedisServer } from '../support/redis.ts';
import { SidecarProcess } from '../support/sidecar.ts';
import { AnsweringUpstream } from '../support/upstream.ts';

const POLICY = `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: all }
spec:
  selector: {}
  rules: [{ name: all, buckets: [{ capacity: 100, refill: { tokens: 1, every: 1h } }] }]
`;
const VERDICTS = ['allowed', 'denied', 'unavailable', 'error', 'exempt'] as const;

async function verdicts(sidecar: SidecarProcess): Promise<number[]> {
  return Promise.all(
    VERDICTS.map((verdict) => sidecar.metric('weir_requests_total', `{verdict="${verdict}"}`)),
  );
}

describe('the verdicts of weir_requests_total', () => {
  it('count a request with a refused body once, as what was decided', async () => {
    await using upstream = await AnsweringUpstream.open('');
    await using sidecar = await SidecarProcess.open({
      files: { 'all.yaml': POLICY },
      upstreamPort: upstream.port,
    });
    await using client = await RawSocket.connect(sidecar.port);

    client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n');

    assert.equal((await client.response()).status, 400);
    assert.deepEqual(await verdicts(sidecar), [1, 0, 0, 0, 0]);
    assert.equal(await sidecar.metric('weir_refusals_total', '{reason="chunk-size"}'), 1);
  });

  it('count a refused request of HTTP/2 once, as an error', async () => {
    await using upstream = await AnsweringUpstream.open('');
    await using sidecar = await SidecarProcess.open({
      files: { 'all.yaml': POLICY },
      upstreamPort: upstream.port,
    });
    const session = connect(`http://127.0.0.1:${String(sidecar.port)}`);

    const refused = session.request({ ':method': 'CONNECT', ':authority': 'a.example:443' });
    const [fields] = (await once(refused, 'response')) as [IncomingHttpHeaders];
    session.destroy();

    assert.equal(fields[':status'], 501);
    assert.deepEqual(await verdicts(sidecar), [0, 0, 0, 1, 0]);
  });

  it('count a request whose client goes while a frozen store is asked', async () => {
    await using upstream = await AnsweringUpstream.open('');
    await using redis = await openRedisServer();
    await using sidecar = await SidecarProcess.open({
      files: { 'all.yaml': POLICY },
      upstreamPort: upstream.port,
      flags: ['--redis', redis.url, '--deadline', '10s'],
    });
    redis.freeze();
    const client = await RawSocket.connect(sidecar.port);
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await eventually('the store is asked', async () => {
      return (await sidecar.metric('weir_store_decisions_total')) > 0;
    });

    await client[Symbol.asyncDispose]();
    await eventually('the client is seen to go', async () => {
      return (await sidecar.metric('weir_client_aborts_total')) === 1;
    });
    redis.thaw();

    await eventually('the request is counted', async () => (await verdicts(sidecar))[0] === 1);
    assert.deepEqual(await verdicts(sidecar), [1, 0, 0, 0, 0]);
    const [key = ''] = await redis.client().keys('weir1:*');
    const [level = '', , , , unitsPerToken = ''] = ((await redis.client().get(key)) ?? '').split(
      ' ',
    );
    assert.equal(Math.floor(Number(level) / Number(unitsPerToken)), 99);
  });
});
