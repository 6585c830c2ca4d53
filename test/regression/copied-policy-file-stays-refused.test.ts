// A file refused as a copy of another was never judged again: once the original was gone, nothing was limited.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { admitted, keyedPolicy } from '../support/keyed-policy.ts';
import { eventually } from '../support/redis.ts';
import { PolicyFolder, SidecarProcess } from '../support/sidecar.ts';
import { AnsweringUpstream } from '../support/upstream.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

describe('a policy file that is renamed by copying', () => {
  it('is enforced from its new name', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using folder = await PolicyFolder.open({ 'a.yaml': keyedPolicy('one', 3) });
    await using sidecar = await SidecarProcess.open({ folder, upstreamPort: upstream.port });

    await folder.write('b.yaml', keyedPolicy('one', 2));
    await eventually('the copy is refused', () => sidecar.events('policy-invalid').length === 1);
    await folder.remove('a.yaml');
    await sidecar.untilCapacity(2);

    assert.equal(await admitted(sidecar, 'alice', 4), 2);
  });
});
