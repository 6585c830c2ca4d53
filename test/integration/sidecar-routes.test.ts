import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SidecarProcess } from '../support/sidecar.ts';
import { AnsweringUpstream } from '../support/upstream.ts';

function policy(name: string, capacity: number, spec = ''): string {
  return `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: ${name} }
spec:
  selector: {}
  ${spec}
  rules: [{ name: all, buckets: [{ capacity: ${capacity}, refill: { tokens: 1, every: 1h } }] }]
`;
}

async function ask(port: number, count: number): Promise<string[]> {
  const seen: string[] = [];
  for (let i = 0; i < count; i += 1) {
    const response = await fetch(`http://127.0.0.1:${port}/`);
    seen.push(response.status === 200 ? await response.text() : String(response.status));
  }
  return seen;
}

describe('a sidecar with several listeners', () => {
  for (const workers of [1, 2]) {
    it(`forwards each to its upstream and shares limits between them, with ${workers} worker(s)`, async () => {
      await using first = await AnsweringUpstream.open(
        'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1',
      );
      await using second = await AnsweringUpstream.open(
        'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2',
      );
      await using sidecar = await SidecarProcess.open({
        files: {
          'all.yaml': policy('all', 4),
          'one.yaml': policy('one', 1, `ports: [${second.port}]`),
        },
        upstreamPort: first.port,
        flags: [
          ...['--listen', '127.0.0.1:0', '--upstream', `127.0.0.1:${second.port}`],
          ...['--workers', String(workers)],
        ],
      });
      const [one = 0, two = 0] = sidecar.ports;

      const seen = [...(await ask(two, 2)), ...(await ask(one, 4))];

      assert.deepEqual(seen, ['2', '429', '1', '1', '1', '429']);
      assert.equal(await sidecar.metric('weir_requests_total', '{verdict="denied"}'), 2);
      assert.equal((await sidecar.bundle()).policies.length, 2);
    });
  }
});
