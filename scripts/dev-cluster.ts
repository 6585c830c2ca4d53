// `npm run dev:cluster`: an API server with our CRDs, the operator and its webhook from the checkout, until Ctrl-C. `-- --own` starts a control
// plane of its own even where KUBECONFIG or kind would give a cluster.
import process from 'node:process';
import { readArguments } from './arguments.ts';
import { runOperator } from './dev-cluster/operator.ts';
import { openSession, type Companion } from './dev-cluster/session.ts';

/** What runs from the checkout beside the cluster. */
const companions: readonly Companion[] = [runOperator];

const { values } = readArguments({
  command: 'npm run dev:cluster',
  about:
    'An API server with the CRDs, the operator and its webhook from the checkout, until Ctrl-C.',
  lines: ['--own   a control plane of its own even where KUBECONFIG or kind would give a cluster'],
  config: { options: { own: { type: 'boolean', default: false } } },
});
{
  // A signal before this line ends the process at once; what it started ends with it all the same.
  await using session = await openSession({ isOwn: values.own, companions, say });
  const { cluster, kubectl } = session;
  const stopped = Promise.withResolvers<undefined>();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      stopped.resolve(undefined);
    });
  }
  process.stdout.write(`
The cluster is at ${cluster.url}, with the CRDs and the operator of this checkout. In another shell:

  export KUBECONFIG=${cluster.kubeconfig}
  ${kubectl} create namespace shop
  ${kubectl} apply -f examples/shortest.yaml
  ${kubectl} get rlpol -A

Ctrl-C ends it.
`);
  await stopped.promise;
  say('ending');
}

function say(sentence: string): void {
  process.stdout.write(`dev:cluster: ${sentence}\n`);
}
