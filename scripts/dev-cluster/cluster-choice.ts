// The cluster `npm run dev:cluster` works on: the one KUBECONFIG names, else one of kind's where kind and Docker are
// there, else a control plane of our own.
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import type { Cluster } from '../../test/cluster/cluster.ts';
import { readClusterConfig } from '../../test/cluster/config.ts';
import { openControlPlane } from '../../test/cluster/control-plane.ts';
import { ExternalCluster } from '../../test/cluster/external-cluster.ts';
import { FakeKubelet } from '../../test/cluster/fake-kubelet.ts';
import type { Say } from '../../test/cluster/kept-folder.ts';
import { openClients } from '../../test/cluster/programs.ts';

const KIND_NAME = 'weir-dev';

export interface DevCluster extends AsyncDisposable {
  readonly cluster: Cluster;
  /** The program for it. */
  readonly kubectl: string;
}

export interface ChoiceOptions {
  /** A control plane of our own, whatever else is there. */
  readonly isOwn: boolean;
  readonly say: Say;
}

export async function openDevCluster({ isOwn, say }: ChoiceOptions): Promise<DevCluster> {
  const { KUBECONFIG } = process.env;
  const { kubectl } = await openClients(readClusterConfig().home, say);
  await using stack = new AsyncDisposableStack();
  const open = async (kubeconfig: string): Promise<Cluster> =>
    stack.use(await ExternalCluster.open({ kubeconfig, kubectl }));
  let cluster: Cluster;
  if (!isOwn && KUBECONFIG !== undefined && KUBECONFIG !== '') {
    cluster = await open(KUBECONFIG);
    say(`using the cluster of KUBECONFIG=${KUBECONFIG}, ${cluster.url}`);
  } else if (!isOwn && answers('kind', ['version']) && answers('docker', ['info'])) {
    cluster = await open(await openKind(stack, say));
  } else {
    cluster = stack.use(await openControlPlane({ say }));
    stack.use(new FakeKubelet(cluster.api));
    say('a control plane without nodes: pods only look as if they ran');
  }
  const owned = stack.move();
  return { cluster, kubectl, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Path of the kubeconfig. A cluster that was there before stays. */
async function openKind(stack: AsyncDisposableStack, say: Say): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-kind-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const kubeconfig = path.join(folder, 'kubeconfig');
  const target = ['--name', KIND_NAME, '--kubeconfig', kubeconfig];
  const { stdout } = spawnSync('kind', ['get', 'clusters'], { encoding: 'utf8' });
  if (stdout.split('\n').includes(KIND_NAME)) {
    say(`using kind's cluster ${KIND_NAME}`);
    runKind(['export', 'kubeconfig', ...target]);
    return kubeconfig;
  }
  say(`making a cluster ${KIND_NAME} with kind`);
  stack.defer(() => {
    runKind(['delete', 'cluster', ...target]);
  });
  runKind(['create', 'cluster', ...target, '--wait', '120s']);
  return kubeconfig;
}

function runKind(args: readonly string[]): void {
  const { status } = spawnSync('kind', args, { stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) throw new Error(`kind ${args.join(' ')} failed with status ${status ?? -1}`);
}

function answers(command: string, args: readonly string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore', timeout: 10_000 }).status === 0;
}
