// Report: a cost that the application names in its response was not charged when the response was a 101.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { ProxyFixture } from '../support/proxy-fixture.ts';
import { allowedPlain } from '../support/simple-gate.ts';
import { ScriptedUpstream } from '../support/upstream.ts';

it('the head of a 101 is shown to whoever charges by it', async () => {
  await using upstream = await ScriptedUpstream.open();
  await using fixture = await ProxyFixture.open(upstream);
  const costs: (string | undefined)[] = [];
  fixture.gate.verdict = {
    ...allowedPlain,
    afterResponse: {
      onResponseHead: (header) => void costs.push(header('x-cost')),
    },
  };
  const client = await fixture.connect();
  client.send('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: ws\r\n\r\n');
  const application = await upstream.accept();
  await application.until('\r\n\r\n');

  application.send('HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: ws\r\nX-Cost: 7\r\n\r\n');
  await client.until('\r\n\r\n');

  assert.deepEqual(costs, ['7']);
});
