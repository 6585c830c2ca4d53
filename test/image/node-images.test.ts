// The images of the tests' own applications, run by the engine that builds Weir's.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import process from 'node:process';
import { openDocker, type Docker } from '../../scripts/images/docker.ts';
import { readClusterConfig } from '../cluster/config.ts';
import { buildNodeImages, type NodeImages } from '../cluster/images/node-images.ts';

function say(sentence: string): void {
  process.stdout.write(`images: ${sentence}\n`);
}

let docker: Docker;
let images: NodeImages;

before(async () => {
  images = await buildNodeImages({ say });
  docker = await openDocker({ engine: 'auto', home: readClusterConfig().home, say });
  for (const { archive } of Object.values(images)) await docker.run(['load', '--input', archive]);
});

after(() => docker[Symbol.asyncDispose]());

const RUN = ['run', '--rm', '--network', 'none', '--read-only', '--cap-drop', 'ALL'];

describe('the image of the test applications', () => {
  it('runs node, a shell and Redis', async () => {
    const app = images.app.tag;

    assert.equal((await docker.run([...RUN, app, '-p', '1 + 1'])).trim(), '2');
    const shell = [...RUN, '--entrypoint', 'sh', app, '-c'];
    assert.match(await docker.run([...shell, 'redis-server --version']), /^Redis server v=/);
    const asked = 'redis-server --save "" >/dev/null & until redis-cli ping; do sleep 0.1; done';
    assert.match(await docker.run([...shell, asked]), /PONG/);
  });
});

describe('the image that holds a pod', () => {
  it('waits, and ends with success when it is told to', async () => {
    const args = ['run', '--detach', '--network', 'none', images.pause.tag];
    const container = (await docker.run(args)).trim();
    await docker.run(['stop', '--time', '10', container]);
    const code = await docker.run(['inspect', '--format', '{{.State.ExitCode}}', container]);
    await docker.run(['rm', container]);

    assert.equal(code.trim(), '0');
  });
});
