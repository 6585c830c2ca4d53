// What a cluster test asks of a cluster, whoever's it is.
import type { ApiClient } from './api-client.ts';
import type { User } from './credentials.ts';
import { textAt } from './json-value.ts';
import type { KubectlOptions, KubectlResult } from './kubectl.ts';

export interface ServiceAccountName {
  readonly namespace: string;
  readonly serviceAccount: string;
}

export interface Cluster extends AsyncDisposable {
  /** Path of a kubeconfig of somebody who may do everything. */
  readonly kubeconfig: string;
  readonly url: string;
  readonly caPem: string;
  /** Requests as the user of `kubeconfig`. */
  readonly api: ApiClient;
  kubectl(args: readonly string[], options?: KubectlOptions): Promise<KubectlResult>;
  /** Path of a kubeconfig of that user or service account, who may do what RBAC gives them. */
  kubeConfigFor(who: User | ServiceAccountName): Promise<string>;
}

/** How long tests may take with it; the API server allows no less than 10 minutes. */
const TOKEN_SECONDS = 3_600;

/** A token of the service account for the API server itself. Rejects with the answer when there is none. */
export async function requestToken(
  api: ApiClient,
  { namespace, serviceAccount }: ServiceAccountName,
): Promise<string> {
  const { status, body } = await api.request(
    'POST',
    `/api/v1/namespaces/${namespace}/serviceaccounts/${serviceAccount}/token`,
    {
      body: {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: { expirationSeconds: TOKEN_SECONDS },
      },
    },
  );
  if (status !== 201) {
    throw new Error(`no token for ${namespace}/${serviceAccount}: ${textAt(body, 'message')}`);
  }
  return textAt(body, 'status', 'token');
}
