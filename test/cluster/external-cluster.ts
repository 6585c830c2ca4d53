// A cluster somebody else runs (kind, k3s, a cloud's), by its kubeconfig. Tests leave their CRDs there, and remove
// the namespaces they made.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { stringify } from 'yaml';
import { ApiClient } from './api-client.ts';
import { requestToken, type Cluster, type ServiceAccountName } from './cluster.ts';
import type { User } from './credentials.ts';
import { runKubectl, type KubectlOptions, type KubectlResult } from './kubectl.ts';

export interface ExternalClusterSetting {
  readonly kubeconfig: string;
  /** The program. */
  readonly kubectl: string;
}

export class ExternalCluster implements Cluster {
  readonly kubeconfig: string;
  readonly url: string;
  readonly caPem: string;
  readonly api: ApiClient;
  readonly #program: string;
  readonly #folder: string;

  private constructor(setting: ExternalClusterSetting, api: ApiClient, folder: string) {
    this.kubeconfig = setting.kubeconfig;
    this.url = api.url;
    this.caPem = api.caPem;
    this.api = api;
    this.#program = setting.kubectl;
    this.#folder = folder;
  }

  /** Rejects when its API server does not answer. */
  static async open(setting: ExternalClusterSetting): Promise<ExternalCluster> {
    const api = await ApiClient.open(setting.kubeconfig);
    const { status } = await api.request('GET', '/version');
    if (status !== 200) throw new Error(`${api.url} answers ${status} to /version`);
    return new ExternalCluster(setting, api, await mkdtemp(path.join(tmpdir(), 'weir-cluster-')));
  }

  async kubectl(args: readonly string[], options?: KubectlOptions): Promise<KubectlResult> {
    const { kubeconfig } = this;
    const cacheFolder = path.join(this.#folder, 'kubectl');
    return runKubectl({ program: this.#program, kubeconfig, cacheFolder }, args, options);
  }

  async kubeConfigFor(who: User | ServiceAccountName): Promise<string> {
    if (!('serviceAccount' in who)) {
      throw new Error(`no certificate for ${who.name}: the authority of ${this.url} is not ours`);
    }
    const name = `${who.namespace}.${who.serviceAccount}`;
    const ca = Buffer.from(this.caPem).toString('base64');
    const cluster = { server: this.url, ...(ca && { 'certificate-authority-data': ca }) };
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'weir', cluster }],
      users: [{ name, user: { token: await requestToken(this.api, who) } }],
      contexts: [{ name: 'weir', context: { cluster: 'weir', user: name } }],
      'current-context': 'weir',
    };
    const file = path.join(this.#folder, `${name}.kubeconfig`);
    await writeFile(file, stringify(config), { mode: 0o600 });
    return file;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.api[Symbol.dispose]();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
