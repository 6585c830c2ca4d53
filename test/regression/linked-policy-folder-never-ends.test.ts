// Two links to a folder above, and reading the policies took as many paths as there are ways through them.
import assert from 'node:assert/strict';
import { symlink } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { admitted, keyedPolicy } from '../support/keyed-policy.ts';
import { PolicyFolder, SidecarProcess } from '../support/sidecar.ts';
import { AnsweringUpstream } from '../support/upstream.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

describe('a policy folder with links to itself', () => {
  it('is read, and read again', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using folder = await PolicyFolder.open({ 'a.yaml': keyedPolicy('one', 3) });
    for (const name of ['loop', 'other']) await symlink('.', path.join(folder.path, name));
    await using sidecar = await SidecarProcess.open({ folder, upstreamPort: upstream.port });

    await folder.write('a.yaml', keyedPolicy('one', 2));
    await sidecar.untilCapacity(2);

    assert.equal(await admitted(sidecar, 'alice', 4), 2);
    assert.equal(sidecar.events('policy-invalid').length, 0);
  });
});
