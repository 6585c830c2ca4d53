// When the policy folder was removed, emptied or moved, the sidecar said "no policy applies" and forwarded everything;
// when a folder turned into a file, node's recursive watcher ended the process.
import assert from 'node:assert/strict';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { admitted, keyedPolicy } from '../support/keyed-policy.ts';
import { eventually } from '../support/redis.ts';
import { PolicyFolder, runWeir, SidecarProcess } from '../support/sidecar.ts';
import { AnsweringUpstream } from '../support/upstream.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

const losses: Readonly<Record<string, (folder: PolicyFolder) => Promise<void>>> = {
  'is removed': ({ path: at }) => rm(at, { recursive: true }),
  'is emptied': (folder) => folder.remove('a.yaml'),
  'is replaced by a file without a policy': async ({ path: at }) => {
    await rm(at, { recursive: true });
    await writeFile(at, 'nothing: here\n');
  },
};

describe('a policy folder', () => {
  for (const [how, lose] of Object.entries(losses)) {
    it(`that ${how} keeps its policies in force, and is read again when it is back`, async () => {
      await using upstream = await AnsweringUpstream.open(OK);
      await using folder = await PolicyFolder.open({ 'a.yaml': keyedPolicy('one', 3) });
      await using sidecar = await SidecarProcess.open({ folder, upstreamPort: upstream.port });

      await lose(folder);
      await eventually('it is reported', () => sidecar.events('policy-invalid').length > 0);
      const meanwhile = await admitted(sidecar, 'alice', 5);
      await rm(folder.path, { recursive: true, force: true });
      await mkdir(folder.path);
      await folder.write('a.yaml', keyedPolicy('one', 2));
      await sidecar.untilCapacity(2);

      assert.equal(meanwhile, 3);
      assert.equal(await admitted(sidecar, 'bob', 5), 2);
    });
  }

  it('goes on with what is left when a folder below turns into a file', async () => {
    await using upstream = await AnsweringUpstream.open(OK);
    await using folder = await PolicyFolder.open({ 'a.yaml': keyedPolicy('one', 3) });
    const below = path.join(folder.path, 'below');
    await mkdir(below);
    await folder.write('below/b.yaml', keyedPolicy('two', 1));
    await using sidecar = await SidecarProcess.open({ folder, upstreamPort: upstream.port });
    assert.equal(await admitted(sidecar, 'alice', 3), 1);

    await rename(below, path.join(folder.path, '.away'));
    await writeFile(below, 'x');
    await eventually('it is noticed', () => sidecar.events('policies').length === 2);

    assert.equal(await admitted(sidecar, 'bob', 5), 3);
  });

  it('without a policy file is refused at the start in words', async () => {
    await using folder = await PolicyFolder.open({});

    const run = await runWeir(['run', '--policy', folder.path, '--upstream', 'a:1']);

    assert.equal(run.code, 1);
    assert.match(run.stderr, /POLICY_UNREADABLE/);
    assert.doesNotMatch(run.stderr, /\n {4}at /);
  });
});
