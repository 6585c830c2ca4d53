// Leaving with several workers: the parent's listener stays open as long as that of a single process does.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../support/redis.ts';
import { SidecarProcess } from '../support/sidecar.ts';
import { AnsweringUpstream } from '../support/upstream.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const POLICY = `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: many }
spec:
  selector: {}
  rules:
    - { name: all, buckets: [{ capacity: 1000, refill: { tokens: 1, every: 1s } }] }
`;

describe('a sidecar that is told to stop', () => {
  for (const workers of ['1', '2']) {
    it(`still takes connections while some come, with --workers ${workers}`, async () => {
      await using upstream = await AnsweringUpstream.open(OK);
      await using sidecar = await SidecarProcess.open({
        ...{ files: { 'many.yaml': POLICY }, upstreamPort: upstream.port },
        flags: ['--workers', workers],
      });
      const ask = async (): Promise<number> => {
        const response = await fetch(`http://127.0.0.1:${sidecar.port}/`, {
          headers: { connection: 'close' },
        });
        return response.status;
      };
      assert.equal(await ask(), 200);

      sidecar.kill('SIGTERM');
      await eventually('it drains', async () => {
        assert.equal(await ask(), 200);
        return sidecar.events('draining').length > 0;
      });

      for (let i = 0; i < 20; i += 1) assert.equal(await ask(), 200);
      assert.equal(await sidecar.exited, 0);
    });
  }
});
