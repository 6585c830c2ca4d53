// The operator as it is installed: the bundle, started as its image does, and the account of a pod.
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { requestToken, type Cluster } from '../../test/cluster/cluster.ts';
import { OPERATOR_NAMESPACE } from '../../test/cluster/operator-process.ts';

const build = path.join(import.meta.dirname, '..', '..', 'scripts', 'build.ts');

/** Builds it into `folder`; resolves with the arguments of `node` that start it. */
export async function buildOperator(folder: string): Promise<readonly string[]> {
  await promisify(execFile)(process.execPath, [build, '--out', folder], { timeout: 120_000 });
  return [path.join(folder, 'weir.mjs')];
}

/**
 * Arguments of `node` before `program` that start it as in a pod, its account in `folder`. None where that takes rights
 * that this process lacks: the operator is given a kubeconfig then, and 60 MB more.
 */
export async function asInPod(cluster: Cluster, folder: string): Promise<readonly string[]> {
  if (process.getuid?.() !== 0) return [];
  const serviceAccount = { namespace: OPERATOR_NAMESPACE, serviceAccount: 'weir-operator' };
  await mkdir(folder);
  const files = {
    token: await requestToken(cluster.api, serviceAccount),
    'ca.crt': cluster.caPem,
    namespace: OPERATOR_NAMESPACE,
  };
  for (const [name, text] of Object.entries(files)) {
    await writeFile(path.join(folder, name), text, { mode: 0o600 });
  }
  const { hostname, port } = new URL(cluster.url);
  return [path.join(import.meta.dirname, '..', 'control-pod.ts'), folder, hostname, port];
}
