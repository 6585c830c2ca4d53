// Replicas of the operator with a Service in front of them, started again as a kubelet would when they end by
// themselves. They reach the API server through a path that a test can cut.
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../support/redis.ts';
import { FaultProxy } from '../support/fault-proxy.ts';
import type { Cluster } from './cluster.ts';
import { textAt } from './json-value.ts';
import {
  operatorKubeConfig,
  OPERATOR_NAMESPACE,
  OperatorProcess,
  pointWebhookAt,
} from './operator-process.ts';
import { freeServerPort } from './port.ts';
import { ServiceRelay } from './service-relay.ts';

const LEASE = `/apis/coordination.k8s.io/v1/namespaces/${OPERATOR_NAMESPACE}/leases/weir-operator`;
/** A Lease runs out after 15 s, and starts take their time on two busy cores. */
const LEADER_TIMEOUT_MS = 60_000;
const RESTART_AFTER_MS = 500;

export interface OperatorReplicasOptions {
  readonly cluster: Cluster;
  readonly count: number;
  /** Without addresses and names. */
  readonly flags: readonly string[];
}

interface Setting {
  readonly cluster: Cluster;
  readonly kubeconfig: string;
  readonly flags: readonly string[];
}

export class OperatorReplica implements AsyncDisposable {
  readonly name: string;
  readonly ports: { readonly webhook: number; readonly stream: number };
  /** How often it ended by itself, as one does that loses its Lease. */
  endings = 0;
  readonly #setting: Setting;
  #process: OperatorProcess | undefined;
  #isWanted = false;
  #keeping: Promise<void> = Promise.resolve();

  constructor(name: string, ports: OperatorReplica['ports'], setting: Setting) {
    this.name = name;
    this.ports = ports;
    this.#setting = setting;
  }

  get process(): OperatorProcess {
    if (this.#process === undefined) throw new Error(`${this.name} is not running`);
    return this.#process;
  }

  async start(): Promise<void> {
    this.#isWanted = true;
    this.#process = await this.#open();
    this.#keeping = this.#keep();
  }

  async stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    this.#isWanted = false;
    await this.#process?.stop(signal);
    await this.#keeping;
  }

  async ready(): Promise<void> {
    await eventually(
      `${this.name} is ready`,
      async () => this.#process !== undefined && (await this.#process.isReady()),
      LEADER_TIMEOUT_MS,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('SIGKILL');
  }

  #open(): Promise<OperatorProcess> {
    const { cluster, kubeconfig, flags } = this.#setting;
    return OperatorProcess.start({
      ...{ cluster, kubeconfig, ports: this.ports, isBehindService: true },
      flags: [...flags, '--pod-name', this.name],
    });
  }

  async #keep(): Promise<void> {
    for (;;) {
      await this.#process?.ended();
      if (!this.#isWanted) return;
      this.endings += 1;
      await delay(RESTART_AFTER_MS);
      this.#process = await this.#open().catch(() => undefined);
      // It was stopped while it started.
      if (!this.#isStillWanted()) await this.#process?.stop('SIGKILL');
    }
  }

  #isStillWanted(): boolean {
    return this.#isWanted;
  }
}

export class OperatorReplicas implements AsyncDisposable {
  readonly replicas: readonly OperatorReplica[];
  /** Where sidecars find the stream. */
  readonly streamUrl: string;
  /** Between the replicas and the API server. */
  readonly path: FaultProxy;
  readonly #cluster: Cluster;
  readonly #stack: AsyncDisposableStack;

  private constructor(
    parts: Pick<OperatorReplicas, 'replicas' | 'streamUrl' | 'path'>,
    cluster: Cluster,
    stack: AsyncDisposableStack,
  ) {
    this.replicas = parts.replicas;
    this.streamUrl = parts.streamUrl;
    this.path = parts.path;
    this.#cluster = cluster;
    this.#stack = stack;
  }

  /** Running and ready, and the webhook configuration names them. `installOperatorAccess` comes first. */
  static async open(options: OperatorReplicasOptions): Promise<OperatorReplicas> {
    const { cluster, count } = options;
    await using stack = new AsyncDisposableStack();
    const path = stack.use(await FaultProxy.open(Number(new URL(cluster.url).port)));
    const kubeconfig = await throughPath(await operatorKubeConfig(cluster), cluster.url, path);
    const ports: OperatorReplica['ports'][] = [];
    for (let i = 0; i < count; i += 1) {
      ports.push({ webhook: await freeServerPort(), stream: await freeServerPort() });
    }
    const webhook = stack.use(await ServiceRelay.open(ports.map((one) => one.webhook)));
    const stream = stack.use(await ServiceRelay.open(ports.map((one) => one.stream)));
    const streamUrl = `https://127.0.0.1:${stream.port}`;
    const flags = [...options.flags, '--stream-url', streamUrl];
    const setting = { cluster, kubeconfig, flags };
    const replicas = ports.map((own, i) => new OperatorReplica(`weir-operator-${i}`, own, setting));
    for (const replica of replicas) stack.use(replica);
    await pointWebhookAt(cluster, `https://127.0.0.1:${webhook.port}`);
    for (const replica of replicas) await replica.start();
    for (const replica of replicas) await replica.ready();
    return new OperatorReplicas({ replicas, streamUrl, path }, cluster, stack.move());
  }

  /** Any one that runs. */
  get first(): OperatorReplica {
    const [first] = this.replicas;
    if (first === undefined) throw new Error('there are no replicas');
    return first;
  }

  /** Name of the replica that holds the Lease; empty = nobody. */
  async holder(): Promise<string> {
    const { body } = await this.#cluster.api.request('GET', LEASE);
    return textAt(body, 'spec', 'holderIdentity').split('_')[0] ?? '';
  }

  /** Waits until one leads; not `but`. */
  async leader(but = ''): Promise<OperatorReplica> {
    let found: OperatorReplica | undefined;
    await eventually(
      'a replica leads',
      async () => {
        const name = await this.holder().catch(() => '');
        found = this.replicas.find((one) => one.name === name && name !== but);
        return found !== undefined;
      },
      LEADER_TIMEOUT_MS,
    );
    if (found === undefined) throw new Error('nobody leads');
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** The same kubeconfig, but for the port: the server's certificate is for the address. */
async function throughPath(kubeconfig: string, url: string, path: FaultProxy): Promise<string> {
  const text = await readFile(kubeconfig, 'utf8');
  const other = kubeconfig.replace(/\.kubeconfig$/, '.cut.kubeconfig');
  await writeFile(other, text.replaceAll(url, `https://127.0.0.1:${path.port}`), { mode: 0o600 });
  return other;
}
