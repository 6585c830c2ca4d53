// What a node leaves on the machine: nothing, however its owner ends. `npm run test:e2e` runs this before its own node.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { describe, it } from 'node:test';
import { eventually } from '../support/redis.ts';
import { ApiClient } from '../cluster/api-client.ts';
import { buildNodeImages } from '../cluster/images/node-images.ts';
import { CGROUP } from '../cluster/node/namespaces.ts';
import { HOST_LINK } from '../cluster/node/network.ts';
import { openNode, whyNoNode } from '../cluster/node/node.ts';

/** Killing containers and removing their groups takes some seconds. */
const GONE_MS = 60_000;
const POD = {
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'still' } },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [{ name: 'still', image: 'weir.dev/pause:1', imagePullPolicy: 'Never' }],
  },
};

/** Everything that could be left: a link, groups, mounts, folders, processes. */
function traces(): readonly string[] {
  const links = Object.keys(networkInterfaces()).filter((name) => name === HOST_LINK);
  const groups = ['', ...readdirSync('/sys/fs/cgroup')]
    .map((name) => path.join('/sys/fs/cgroup', name, CGROUP))
    .filter((folder) => existsSync(folder));
  const mounts = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .filter((line) => line.includes('weir-node-'));
  const folders = readdirSync(tmpdir()).filter((name) => /^weir-(node|cluster)-/.test(name));
  const processes = readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    return commandOf(pid).includes('/weir-node-');
  });
  return [...links, ...groups, ...mounts, ...folders, ...processes.map(commandOf)];
}

/** Empty for one that has ended and was not waited for yet. */
function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

async function startPod(kubeconfig: string): Promise<void> {
  using api = await ApiClient.open(kubeconfig);
  const pods = '/api/v1/namespaces/default/pods';
  const { status } = await api.request('POST', pods, { body: POD });
  assert.equal(status, 201);
  await eventually(
    'the pod runs',
    async () =>
      JSON.stringify((await api.request('GET', `${pods}/still`)).body).includes(
        '"phase":"Running"',
      ),
    GONE_MS,
  );
}

async function killNodeWithPod(image: string): Promise<void> {
  const program = path.join(import.meta.dirname, '..', 'cluster', 'node', 'standing-node.ts');
  const owner = spawn(process.execPath, [program, image], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [kubeconfig] = (await once(createInterface({ input: owner.stdout }), 'line')) as [string];
  await startPod(kubeconfig);
  owner.kill('SIGKILL');
  await once(owner, 'exit');
}

async function untilLike(before: ReturnType<typeof traces>): Promise<void> {
  await eventually(
    'nothing is left',
    () => JSON.stringify(traces()) === JSON.stringify(before),
    GONE_MS,
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${traces().join('\n')}`);
  });
}

describe('a node', { skip: whyNoNode() ?? false }, () => {
  it('leaves nothing behind when it is closed', async () => {
    const before = traces();
    const { pause } = await buildNodeImages({ say: () => undefined });
    {
      await using node = await openNode({ images: [pause.archive], say: () => undefined });
      await startPod(node.controlPlane.kubeconfig);
    }

    // What guards the folder ends a second after its owner has let go.
    await untilLike(before);
  });

  it('leaves nothing behind when its owner is killed with pods running', async () => {
    const before = traces();
    const { pause } = await buildNodeImages({ say: () => undefined });

    await killNodeWithPod(pause.archive);

    await untilLike(before);
  });

  it('starts while what is left of a killed one is being removed', async () => {
    const before = traces();
    const { pause } = await buildNodeImages({ say: () => undefined });
    await killNodeWithPod(pause.archive);

    {
      await using node = await openNode({ images: [pause.archive], say: () => undefined });
      await startPod(node.controlPlane.kubeconfig);
    }

    await untilLike(before);
  });
});
