// The operator from the checkout as a process beside a cluster, with the rights of its own service account and no
// others: `weir operator` as a pod would run it, but for the address.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import {
  clusterRules,
  ownRules,
  watchedRules,
  withoutReason,
  type AccessRule,
} from '../../operator/access-rules.ts';
import { parseOperatorConfig } from '../../operator/config.ts';
import {
  WEBHOOK_CONFIGURATION,
  webhookConfiguration,
} from '../../operator/webhook/configuration.ts';
import { eventually } from '../support/redis.ts';
import type { Cluster } from './cluster.ts';
import { textAt } from './json-value.ts';

export const OPERATOR_NAMESPACE = 'weir-system';
const SERVICE_ACCOUNT = 'weir-operator';
const program = path.join(import.meta.dirname, '..', '..', 'cli', 'main.ts');
/** Loading the client and filling the caches takes 2 to 4 s with both cores busy. */
const START_TIMEOUT_MS = 60_000;

export interface OperatorProcessOptions {
  readonly cluster: Cluster;
  readonly flags?: readonly string[];
  /** Arguments of `node` that start the program; the checkout's own unless given. */
  readonly program?: readonly string[];
  /** Where the API server and sidecars reach it; loopback unless given. */
  readonly host?: string;
  /** Ports to come back on; free ones unless given. */
  readonly ports?: { readonly webhook: number; readonly stream: number };
  /** Whose rights it has; a token of its service account, asked for at the API server, unless given. */
  readonly kubeconfig?: string;
  /** The webhook configuration names somebody in front of it already, and stays as it is. */
  readonly isBehindService?: boolean;
  /** Told each line of the log. */
  readonly onLog?: (line: string) => void;
}

interface Addresses {
  readonly webhook: string;
  readonly stream: string;
  readonly admin: string;
}

/** Namespace, service account and roles, as the chart installs them; once per cluster. */
export async function installOperatorAccess(
  cluster: Cluster,
  flags: readonly string[] = [],
): Promise<void> {
  const config = parseOperatorConfig(flagsOf(flags), {});
  const subject = {
    kind: 'ServiceAccount',
    name: SERVICE_ACCOUNT,
    namespace: OPERATOR_NAMESPACE,
  };
  const rbac = 'rbac.authorization.k8s.io';
  const role = (
    kind: string,
    name: string,
    rules: readonly AccessRule[],
    namespace?: string,
  ): object => ({
    ...{ apiVersion: `${rbac}/v1`, kind, metadata: { name, ...(namespace && { namespace }) } },
    rules: rules.map(withoutReason),
  });
  const binding = (kind: string, name: string, namespace?: string): object => ({
    ...{ apiVersion: `${rbac}/v1`, kind: `${kind}Binding` },
    metadata: { name, ...(namespace && { namespace }) },
    roleRef: { apiGroup: rbac, kind, name },
    subjects: [subject],
  });
  await applyAll(cluster, [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: OPERATOR_NAMESPACE } },
    {
      ...{ apiVersion: 'v1', kind: 'ServiceAccount' },
      metadata: { name: SERVICE_ACCOUNT, namespace: OPERATOR_NAMESPACE },
    },
    role('ClusterRole', 'weir-operator', [...watchedRules(config), ...clusterRules(config)]),
    binding('ClusterRole', 'weir-operator'),
    role('Role', 'weir-operator', ownRules(config), OPERATOR_NAMESPACE),
    binding('Role', 'weir-operator', OPERATOR_NAMESPACE),
  ]);
}

export async function applyAll(cluster: Cluster, objects: readonly object[]): Promise<void> {
  const list = { apiVersion: 'v1', kind: 'List', items: objects };
  const { code, stderr } = await cluster.kubectl(['apply', '-f', '-'], {
    input: JSON.stringify(list),
  });
  if (code !== 0) throw new Error(stderr);
}

/** Path of a kubeconfig of the operator's own service account. */
export function operatorKubeConfig(cluster: Cluster): Promise<string> {
  return cluster.kubeConfigFor({ namespace: OPERATOR_NAMESPACE, serviceAccount: SERVICE_ACCOUNT });
}

export class OperatorProcess implements AsyncDisposable {
  readonly addresses: Addresses;
  readonly pid: number;
  readonly log: readonly string[];
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;

  private constructor(
    child: ChildProcess,
    exited: Promise<unknown>,
    log: readonly string[],
    addresses: Addresses,
  ) {
    this.#child = child;
    this.#exited = exited;
    this.log = log;
    this.addresses = addresses;
    this.pid = child.pid ?? 0;
  }

  /** Resolves once it serves and the webhook configuration names it. `installOperatorAccess` comes first. */
  static async start(options: OperatorProcessOptions): Promise<OperatorProcess> {
    const { cluster, host = '127.0.0.1', flags = [], ports = { webhook: 0, stream: 0 } } = options;
    const kubeconfig = options.kubeconfig ?? (await operatorKubeConfig(cluster));
    const child = spawn(
      process.execPath,
      [
        ...(options.program ?? [program]),
        ...['operator', '--kubeconfig', kubeconfig, '--namespace', OPERATOR_NAMESPACE],
        ...['--webhook', `${host}:${ports.webhook}`, '--stream', `${host}:${ports.stream}`],
        ...['--admin', `${host}:0`, '--certificate-names', host, ...flags],
      ],
      { stdio: ['ignore', 'pipe', 'pipe'], env: withoutSettings(process.env) },
    );
    const exited = once(child, 'exit');
    const log: string[] = [];
    createInterface({ input: child.stderr }).on('line', (line) => {
      log.push(line);
      options.onLog?.(line);
    });
    const lines: string[] = [];
    createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
    try {
      await eventually(
        'the operator serves',
        () => {
          if (child.exitCode !== null) throw new Error(`it ended: ${log.join('\n')}`);
          return lines.length > 0;
        },
        START_TIMEOUT_MS,
      );
      const addresses = readAddresses(lines[0] ?? '');
      if (options.isBehindService !== true) await pointWebhookAt(cluster, addresses.webhook);
      return new OperatorProcess(child, exited, log, addresses);
    } catch (error) {
      child.kill('SIGKILL');
      throw error;
    }
  }

  /** Resolves once /readyz says so. */
  async ready(): Promise<void> {
    await eventually('the operator is ready', () => this.isReady(), START_TIMEOUT_MS);
  }

  async isReady(): Promise<boolean> {
    const response = await fetch(`${this.addresses.admin}/readyz`).catch(() => undefined);
    return response?.status === 200;
  }

  async metrics(): Promise<string> {
    return (await fetch(`${this.addresses.admin}/metrics`)).text();
  }

  /** The value of one series, 0 when there is none yet: `name{labels}` as it is printed. */
  async metric(series: string): Promise<number> {
    const line = (await this.metrics()).split('\n').find((one) => one.startsWith(`${series} `));
    return Number(line?.slice(series.length + 1) ?? 0);
  }

  /** Resolves when the process has ended, for whatever reason. */
  async ended(): Promise<void> {
    await this.#exited;
  }

  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill(signal);
    await this.#exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('SIGKILL');
  }
}

const CONFIGURATION_PATH = `/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/${WEBHOOK_CONFIGURATION}`;

/** So that no pod is asked about any more. */
export async function removeWebhook(cluster: Cluster): Promise<void> {
  const { status, body } = await cluster.api.request('DELETE', CONFIGURATION_PATH);
  if (status >= 300 && status !== 404) throw new Error(textAt(body, 'message'));
}

/** The chart's configuration, but for the address: there is no Service in front of a process beside the cluster. */
export async function pointWebhookAt(cluster: Cluster, url: string): Promise<void> {
  const configuration = webhookConfiguration({
    operatorNamespace: OPERATOR_NAMESPACE,
    target: { url },
  });
  const { status, body } = await cluster.api.request(
    'PATCH',
    `${CONFIGURATION_PATH}?fieldManager=weir-install&force=true`,
    { body: configuration, contentType: 'application/apply-patch+yaml' },
  );
  if (status >= 300) throw new Error(textAt(body, 'message'));
}

function readAddresses(line: string): Addresses {
  const read: unknown = JSON.parse(line);
  return {
    webhook: textAt(read, 'webhook'),
    stream: textAt(read, 'stream'),
    admin: textAt(read, 'admin'),
  };
}

/** `['--a', 'b']` as the command line would read it. */
function flagsOf(flags: readonly string[]): Record<string, string> {
  const given: Record<string, string> = {};
  for (let i = 0; i + 1 < flags.length; i += 2) {
    given[(flags[i] ?? '').replace(/^--/, '')] = flags[i + 1] ?? '';
  }
  return given;
}

/** A variable of the person who runs the tests must not reach the operator. */
function withoutSettings(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => !/^(WEIR_|KUBE)/.test(name)),
  );
}
