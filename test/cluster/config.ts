// What the environment says about clusters for tests; nothing else under test/cluster reads it.
import { homedir } from 'node:os';
import path from 'node:path';
import process from 'node:process';

export interface ClusterConfig {
  /** Folder that keeps the built programs between runs. */
  readonly home: string;
  /** A cluster of the user's to test against, instead of a control plane of our own. */
  readonly kubeconfig: string | undefined;
}

/**
 * `WEIR_CLUSTER_HOME`, and `WEIR_KUBECONFIG`. The latter has a name of its own, because these tests apply CRDs and
 * webhook configurations: the `KUBECONFIG` that a shell happens to export must never be enough for that.
 */
export function readClusterConfig(env: NodeJS.ProcessEnv = process.env): ClusterConfig {
  const given = (name: string): string | undefined => (env[name] === '' ? undefined : env[name]);
  const cache = given('XDG_CACHE_HOME') ?? path.join(homedir(), '.cache');
  return {
    home: path.resolve(given('WEIR_CLUSTER_HOME') ?? path.join(cache, 'weir', 'cluster')),
    kubeconfig: given('WEIR_KUBECONFIG'),
  };
}
