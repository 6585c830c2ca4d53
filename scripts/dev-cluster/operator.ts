// The operator from the checkout beside the development cluster, with the rights its service account would have, and its
// webhook in the cluster's configuration.
import { networkInterfaces } from 'node:os';
import type { Cluster } from '../../test/cluster/cluster.ts';
import { ControlPlane } from '../../test/cluster/control-plane.ts';
import {
  installOperatorAccess,
  OPERATOR_NAMESPACE,
  OperatorProcess,
  removeWebhook,
} from '../../test/cluster/operator-process.ts';
import type { Companion } from './session.ts';

/** The store is a Secret that may be made later: `kubectl -n weir-system create secret generic weir-store …`. */
const FLAGS = ['--store-secret', 'weir-store', '--log-level', 'info'];

export const runOperator: Companion = async (cluster, say) => {
  await installOperatorAccess(cluster, FLAGS);
  const host = hostFor(cluster);
  const operator = await OperatorProcess.start({
    ...{ cluster, host },
    // What the API server and sidecars would reach inside of a cluster is on this machine.
    flags: [...FLAGS, '--leader-elect', 'false', '--grace', '1s'],
    onLog: say,
  });
  await operator.ready();
  const { stream, admin } = operator.addresses;
  say(`the operator serves streams at ${stream} and /readyz, /metrics at ${admin}`);
  say(`its store is Secret weir-store of namespace ${OPERATOR_NAMESPACE}, once you create it`);
  return {
    [Symbol.asyncDispose]: async () => {
      await operator.stop('SIGTERM');
      // A cluster that outlives us must not go on asking somebody who has gone: it would refuse pods that require us.
      if (cluster instanceof ControlPlane) return;
      await removeWebhook(cluster);
      say("removed the webhook's configuration; the CRDs, the policies and weir-system stay");
    },
  };
};

/** Where a cluster reaches this machine: a control plane of our own is on it, kind's is in a container. */
function hostFor(cluster: Cluster): string {
  if (cluster instanceof ControlPlane) return '127.0.0.1';
  const addresses = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  const outer = addresses.find(({ internal, family }) => !internal && family === 'IPv4');
  return outer?.address ?? '127.0.0.1';
}
