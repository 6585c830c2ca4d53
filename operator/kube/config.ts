// The only place of operator/kube that reads the environment.
import process from 'node:process';

export interface ClusterEnvironment {
  /** Where a pod finds the API server; absent outside of one. */
  readonly server?: URL;
  /** `KUBECONFIG` names files: what a person set by hand comes before the pod's own account. */
  readonly hasKubeConfig: boolean;
}

/** Reads `KUBERNETES_SERVICE_HOST`, `KUBERNETES_SERVICE_PORT` and `KUBECONFIG`. */
export function readClusterEnvironment(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): ClusterEnvironment {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port, KUBECONFIG } = environment;
  const hasKubeConfig = KUBECONFIG !== undefined && KUBECONFIG !== '';
  if (host === undefined || host === '' || port === undefined || port === '') {
    return { hasKubeConfig };
  }
  const name = host.includes(':') ? `[${host}]` : host;
  return { server: new URL(`https://${name}:${port}`), hasKubeConfig };
}
