// Report: the access log said of a message that was refused before it was admitted that it took as long as the
// process had run, or since the connection's request before.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { AccessLog } from '../../sidecar/proxy/access-log.ts';
import type { AccessLine } from '../../sidecar/proxy/access-log.ts';
import { openProxy } from '../../sidecar/proxy/proxy.ts';
import { RawSocket } from '../support/raw-socket.ts';
import { openGate } from '../support/simple-gate.ts';
import { AnsweringUpstream } from '../support/upstream.ts';

it('the access log gives no time to a message that was refused unread', async () => {
  await using upstream = await AnsweringUpstream.open('HTTP/1.1 204 No Content\r\n\r\n');
  const lines: AccessLine[] = [];
  const clock = { ms: 5_000 };
  const accessLog = new AccessLog({
    share: 1,
    random: () => 0,
    write: (line) => void lines.push(line),
  });
  await using proxy = await openProxy(
    {
      listen: { host: '127.0.0.1', port: 0 },
      upstream: { host: '127.0.0.1', port: upstream.port },
    },
    openGate,
    { now: () => clock.ms, wallClock: () => 0, onFault: assert.ifError, accessLog },
  );
  await using early = await RawSocket.connect(proxy.address.port);
  early.send('nonsense\r\n\r\n');
  await early.response();
  await using client = await RawSocket.connect(proxy.address.port);
  client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await client.response();
  clock.ms += 700;

  client.send('nonsense\r\n\r\n');
  await client.response();

  assert.deepEqual(
    lines.map(({ status, tookMs }) => [status, tookMs]),
    [
      [400, 0],
      [204, 0],
      [400, 0],
    ],
  );
});
