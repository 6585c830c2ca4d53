// The cluster a test runs against: the one WEIR_KUBECONFIG names, else a control plane of its own.
import type { Cluster } from './cluster.ts';
import { readClusterConfig } from './config.ts';
import { openControlPlane } from './control-plane.ts';
import { ExternalCluster } from './external-cluster.ts';
import { openClients } from './programs.ts';

export async function openCluster(): Promise<Cluster> {
  const { home, kubeconfig } = readClusterConfig();
  if (kubeconfig === undefined) return openControlPlane();
  const { kubectl } = await openClients(home, () => undefined);
  return ExternalCluster.open({ kubeconfig, kubectl });
}

/** For `{ skip: … }` of tests that stop and start a control plane's processes: why they cannot, or false. */
export function whyNoFaults(): string | false {
  const { kubeconfig } = readClusterConfig();
  if (kubeconfig === undefined) return false;
  return `WEIR_KUBECONFIG=${kubeconfig}: the processes of that cluster are not ours to stop`;
}
