import type { Cluster } from '../../test/cluster/cluster.ts';
import { installCrds } from '../../test/cluster/crd-installation.ts';
import type { Say } from '../../test/cluster/kept-folder.ts';
import { openDevCluster, type DevCluster } from './cluster-choice.ts';

/** Something that runs from the checkout beside the cluster for as long as the session lasts. */
export type Companion = (cluster: Cluster, say: Say) => Promise<AsyncDisposable>;

export interface SessionOptions {
  readonly isOwn: boolean;
  readonly companions: readonly Companion[];
  readonly say: Say;
}

/** A cluster with our CRDs and the companions, started in their order; all end, last first, with the session. */
export async function openSession(options: SessionOptions): Promise<DevCluster> {
  const { companions, say } = options;
  await using stack = new AsyncDisposableStack();
  const { cluster, kubectl } = stack.use(await openDevCluster(options));
  await installCrds(cluster.api);
  for (const companion of companions) stack.use(await companion(cluster, say));
  const owned = stack.move();
  return { cluster, kubectl, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
