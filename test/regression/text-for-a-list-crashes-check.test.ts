// A text of more than eight letters where a list of at most eight parts belongs ended `weir check` with a stack trace:
// its length was judged as if it were that of a list.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import process from 'node:process';
import { describe, it } from 'node:test';
import { PolicyFolder } from '../support/sidecar.ts';

const MAIN = path.join(import.meta.dirname, '..', '..', 'cli', 'main.ts');

const POLICY = `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: x}
spec:
  selector: {}
  rules:
  - name: all
    key: X-Api-Key
    buckets: [{capacity: 100, refill: {tokens: 100, every: 1m}}]
`;

describe('a policy with a text where a list belongs', () => {
  it('is refused in words', async () => {
    await using folder = await PolicyFolder.open({ 'policy.yaml': POLICY });

    const { status, stderr } = spawnSync(process.execPath, [MAIN, 'check', folder.path], {
      encoding: 'utf8',
    });

    assert.equal(status, 1);
    assert.match(stderr, /:8:5: spec\.rules\[0\]\.key: is the string "X-Api-Key", not a list\n/);
  });
});
