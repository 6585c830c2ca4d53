// A client whose later bytes were held was not heard leaving: its socket was not read. Its request was still decided,
// forwarded and waited for, and a hundred of them kept everybody else out.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { maxHeldBytes } from '../../sidecar/proxy/proxy-options.ts';
import { ProxyFixture } from '../support/proxy-fixture.ts';
import { eventually, untilStill } from '../support/raw-socket.ts';
import { ScriptedUpstream } from '../support/upstream.ts';

const WAITING = 'POST / HTTP/1.1\r\nHost: a\r\nX-Verdict: wait\r\nContent-Length: 4\r\n\r\nbody';
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

describe('a client that leaves with bytes that are held', () => {
  for (const leave of ['end', 'reset'] as const) {
    it(`takes its question to the gate back (${leave})`, async () => {
      await using upstream = await ScriptedUpstream.open();
      await using fixture = await ProxyFixture.open(upstream);
      const client = await fixture.connect();
      client.send(WAITING);
      await eventually(() => fixture.gate.waitingCount === 1, 'the gate');

      client[leave]();

      await eventually(() => fixture.gate.cancelled.length === 1, 'the cancellation');
      fixture.gate.release();
      assert.equal(upstream.connections.length, 0);
      assert.equal(fixture.proxy.counters.clientAborts, 1);
    });

    for (const early of ['\r\n', GET]) {
      it(`frees the upstream (${leave}, ${JSON.stringify(early.slice(0, 3))} early)`, async () => {
        await using upstream = await ScriptedUpstream.open();
        await using fixture = await ProxyFixture.open(upstream);
        const client = await fixture.connect();
        client.send(GET + early);
        const application = await upstream.accept();
        await application.until('\r\n\r\n');

        client[leave]();

        await application.gone();
        assert.equal(fixture.proxy.counters.connectionsOpen, 0);
      });
    }
  }

  it('is read no further once enough is held', async () => {
    await using upstream = await ScriptedUpstream.open();
    await using fixture = await ProxyFixture.open(upstream);
    const client = await fixture.connect();
    client.send(GET);
    const application = await upstream.accept();
    await application.until('\r\n\r\n');

    client.send(GET.repeat(400_000));
    const taken = (): number => fixture.proxy.counters.bytesFromClients;
    await untilStill(taken);

    assert.ok(taken() >= maxHeldBytes, String(taken()));
    assert.ok(taken() <= GET.length + 2 * maxHeldBytes, String(taken()));
  });
});
