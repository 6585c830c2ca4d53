// A cluster with pods, as its user handles it: kubectl, helm, and clients that live in it. Everything goes by the API
// server, so that the same suites run against anybody's cluster.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import type { Cluster } from '../../cluster/cluster.ts';
import { listAt, textAt, valueAt } from '../../cluster/json-value.ts';
import { openCluster } from '../../cluster/test-cluster.ts';
import { eventually } from '../../support/redis.ts';
import type { TrafficPlan, TrafficResult } from '../pods/traffic.ts';
import { readE2eConfig, type E2eConfig } from './config.ts';

/** Of a pod to become ready, a rollout to end, a status to settle: with two busy cores. */
export const SETTLE_MS = 120_000;
export const RELEASE = 'weir';
export const SYSTEM = 'weir-system';
export const CHART: string = path.join(import.meta.dirname, '..', '..', '..', 'charts', 'weir');
const POD_FILES = path.join(import.meta.dirname, '..', 'pods');
const SCRIPTS = 'e2e-scripts';
const CLIENT = 'client';

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export class E2e implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly config: E2eConfig;
  readonly #home: string;

  private constructor(cluster: Cluster, config: E2eConfig, home: string) {
    this.cluster = cluster;
    this.config = config;
    this.#home = home;
  }

  static async open(): Promise<E2e> {
    const home = await mkdtemp(path.join(tmpdir(), 'weir-e2e-'));
    return new E2e(await openCluster(), readE2eConfig(), home);
  }

  /** Its standard output. Throws what it said when it fails. */
  async kubectl(args: readonly string[], input = ''): Promise<string> {
    const { code, stdout, stderr } = await this.cluster.kubectl(args, { input });
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}${stdout}`);
    return stdout;
  }

  async apply(...objects: readonly object[]): Promise<void> {
    const items = { apiVersion: 'v1', kind: 'List', items: objects };
    await this.kubectl(['apply', '-f', '-'], JSON.stringify(items));
  }

  /** The object, or undefined. `what`: `deployment/name` or a kind, which gives a List. */
  async get(namespace: string, ...what: readonly string[]): Promise<unknown> {
    const args = ['get', '-n', namespace, ...what, '-o', 'json', '--ignore-not-found'];
    const stdout = await this.kubectl(args);
    return stdout === '' ? undefined : (JSON.parse(stdout) as unknown);
  }

  async list(namespace: string, ...what: readonly string[]): Promise<readonly unknown[]> {
    return listAt(await this.get(namespace, ...what), 'items');
  }

  /** Pods of `app` that are not on their way out. */
  async pods(namespace: string, app: string): Promise<readonly unknown[]> {
    const pods = await this.list(namespace, 'pods', '-l', `app=${app}`);
    return pods.filter((pod) => valueAt(pod, 'metadata', 'deletionTimestamp') === undefined);
  }

  async rolledOut(namespace: string, workload: string): Promise<void> {
    await this.kubectl([
      ...['rollout', 'status', '-n', namespace, workload],
      `--timeout=${SETTLE_MS / 1_000}s`,
    ]).catch(async (error: unknown) => {
      throw new Error(`${String(error)}\n${await this.describe(namespace)}`);
    });
  }

  /** The release, installed by the first suite that needs it. */
  async installed(): Promise<void> {
    const { code } = await this.tryHelm(['status', RELEASE, '--namespace', SYSTEM]);
    if (code === 0) return;
    const values = this.config.values.flatMap((file) => ['--values', file]);
    const target = ['--namespace', SYSTEM, '--create-namespace', '--wait', '--timeout', '3m'];
    await this.helm(['install', RELEASE, CHART, ...target, ...values]);
  }

  /** For a message: what the namespace looks like. */
  async describe(namespace: string): Promise<string> {
    const parts = [
      ['get', 'pods', '-n', namespace, '-o', 'wide'],
      ['get', 'events', '-n', namespace, '--sort-by=.metadata.creationTimestamp'],
    ];
    const texts = parts.map((args) => this.kubectl(args).catch(String));
    return (await Promise.all(texts)).map((one) => one.slice(-3_000)).join('\n');
  }

  /** A namespace with a client in it; gone, without waiting, when disposed of. */
  async namespace(name: string, labels: Readonly<Record<string, string>> = {}): Promise<Room> {
    const metadata = { name, labels };
    await this.#untilGone(name);
    await this.apply({ apiVersion: 'v1', kind: 'Namespace', metadata });
    const data = {
      'app.ts': await readFile(path.join(POD_FILES, 'app.ts'), 'utf8'),
      'traffic.ts': await readFile(path.join(POD_FILES, 'traffic.ts'), 'utf8'),
    };
    const scripts = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: SCRIPTS }, data };
    const room = new Room(this, name);
    await room.apply(scripts, room.pod(CLIENT, { command: ['node', '-e', IDLE] }));
    await this.kubectl(['wait', '-n', name, 'pod', CLIENT, '--for=condition=Ready', WAIT]);
    return room;
  }

  /** One that an earlier run left may still be on its way out. */
  async #untilGone(namespace: string): Promise<void> {
    const found = await this.get('default', `namespace/${namespace}`);
    if (textAt(found, 'status', 'phase') !== 'Terminating') return;
    await this.kubectl(['wait', `namespace/${namespace}`, '--for=delete', WAIT]);
  }

  async helm(args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.tryHelm(args);
    if (code !== 0) throw new Error(`helm ${args.join(' ')}: ${stderr}${stdout}`);
    return stdout;
  }

  async tryHelm(args: readonly string[]): Promise<Ran> {
    const folder = (name: string): string => path.join(this.#home, name);
    const env = {
      PATH: process.env['PATH'],
      HOME: this.#home,
      KUBECONFIG: this.config.kubeconfig,
      HELM_CACHE_HOME: folder('cache'),
      HELM_CONFIG_HOME: folder('config'),
      HELM_DATA_HOME: folder('data'),
    };
    const child = spawn(this.config.helm, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = once(child, 'close') as Promise<[number | null]>;
    const [[code], stdout, stderr] = await Promise.all([
      ended,
      text(child.stdout),
      text(child.stderr),
    ]);
    return { code: code ?? -1, stdout, stderr };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]();
    await rm(this.#home, { recursive: true, force: true });
  }
}

const WAIT = `--timeout=${SETTLE_MS / 1_000}s`;
const IDLE = 'setInterval(() => {}, 1e9); process.on("SIGTERM", () => process.exit(0))';

/** Traffic that goes on; ending it gives what came of it. */
export interface Flow {
  end(): Promise<TrafficResult>;
}

/** One namespace of a suite. */
export class Room implements AsyncDisposable {
  readonly e2e: E2e;
  readonly name: string;

  constructor(e2e: E2e, name: string) {
    this.e2e = e2e;
    this.name = name;
  }

  async apply(...objects: readonly object[]): Promise<void> {
    await this.e2e.apply(...objects.map((one) => withNamespace(one, this.name)));
  }

  /** A pod of the app image with the scripts at /scripts; passes `restricted`. */
  pod(name: string, container: object, spec: object = {}): object {
    return {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, labels: { app: name } } },
      spec: this.podSpec(container, spec),
    };
  }

  podSpec(container: object, spec: object = {}): object {
    return {
      terminationGracePeriodSeconds: 30,
      containers: [
        {
          name: 'app',
          image: this.e2e.config.appImage,
          imagePullPolicy: 'IfNotPresent',
          securityContext: RESTRICTED,
          volumeMounts: [{ name: 'scripts', mountPath: '/scripts' }],
          ...container,
        },
      ],
      volumes: [{ name: 'scripts', configMap: { name: SCRIPTS } }],
      ...spec,
    };
  }

  /** Sends the plan from the namespace's client. */
  async send(plan: TrafficPlan): Promise<TrafficResult> {
    return this.#run(plan).end();
  }

  /** Resolves when requests are being answered. */
  async start(plan: TrafficPlan & { readonly kind: 'steady' }): Promise<Flow> {
    const running = this.#run(plan);
    await running.going;
    return running;
  }

  #run(plan: TrafficPlan): Flow & { readonly going: Promise<unknown> } {
    // Held open: a client that reads the end of its input ends.
    const { kubeconfig } = this.e2e.config;
    const command = ['exec', '-i', '-n', this.name, CLIENT, `--kubeconfig=${kubeconfig}`, '--'];
    const child = spawn(
      this.e2e.config.kubectl,
      [...command, 'node', '/scripts/traffic.ts', JSON.stringify(plan)],
      { stdio: ['pipe', 'pipe', 'pipe'] },
    );
    child.stdin.on('error', () => undefined);
    const going = Promise.withResolvers<undefined>();
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      stdout += part;
      going.resolve(undefined);
    });
    const ended = Promise.all([text(child.stderr), once(child, 'close')]);
    // A client that fails before its first answer says so at the end.
    const over = ended.then(() => undefined);
    return {
      going: Promise.race([going.promise, over]),
      end: async () => {
        child.stdin.end();
        const [stderr] = await ended;
        if (stdout === '') throw new Error(`the client gave no result: ${stderr}`);
        return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as TrafficResult;
      },
    };
  }

  /** What a server answers to each text, sent on a connection of its own until the server ends it. */
  async speak(host: string, port: number, texts: readonly string[]): Promise<readonly string[]> {
    const script = `
      const { connect } = require('node:net');
      const speak = (text) => new Promise((resolve) => {
        let heard = '';
        const socket = connect(${port}, ${JSON.stringify(host)}, () => socket.write(text));
        socket.setTimeout(10_000, () => socket.destroy());
        socket.on('data', (bytes) => (heard += bytes)).on('error', () => {}).on('close', () => resolve(heard));
      });
      Promise.all(${JSON.stringify(texts)}.map(speak)).then((all) => console.log(JSON.stringify(all)));`;
    const command = ['exec', '-n', this.name, CLIENT, '--', 'node', '-e', script];
    return JSON.parse(await this.e2e.kubectl(command)) as string[];
  }

  /** `kubectl port-forward` to the pod, from this machine. */
  async forward(pod: string, port: number): Promise<AsyncDisposable & { readonly url: string }> {
    const { kubeconfig, kubectl } = this.e2e.config;
    const child = spawn(
      kubectl,
      ['port-forward', '-n', this.name, pod, `:${port}`, `--kubeconfig=${kubeconfig}`],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    const [, local = ''] = /127\.0\.0\.1:(\d+)/.exec(line) ?? [];
    return {
      url: `http://127.0.0.1:${local}/`,
      [Symbol.asyncDispose]: async () => {
        child.kill();
        await once(child, 'exit');
      },
    };
  }

  async untilPolicy(name: string, holds: (policy: unknown) => boolean): Promise<unknown> {
    let policy: unknown;
    await eventually(
      `policy ${name} is as expected`,
      async () => {
        policy = await this.e2e.get(this.name, `ratelimitpolicy/${name}`);
        return holds(policy);
      },
      SETTLE_MS,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}; it is ${JSON.stringify(valueAt(policy, 'status'))}`);
    });
    return policy;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // It takes ten seconds to vanish, for which nobody needs to wait.
    await this.e2e.kubectl(['delete', 'namespace', this.name, '--wait=false']);
  }
}

export const RESTRICTED: object = {
  ...{ runAsNonRoot: true, runAsUser: 1000, allowPrivilegeEscalation: false },
  ...{ capabilities: { drop: ['ALL'] }, seccompProfile: { type: 'RuntimeDefault' } },
};

function withNamespace(object: object, namespace: string): object {
  const metadata = valueAt(object, 'metadata');
  return { ...object, metadata: { namespace, ...(metadata as object) } };
}

/** `True/Enforced` of the condition of that type; empty where it is not there. */
export function conditionOf(object: unknown, type: string): string {
  const found = listAt(object, 'status', 'conditions').find((one) => textAt(one, 'type') === type);
  return found === undefined ? '' : `${textAt(found, 'status')}/${textAt(found, 'reason')}`;
}

/** How often each container of the pod was started anew, by its name. */
export function restartsOf(pod: unknown): Readonly<Record<string, unknown>> {
  const all = [
    ...listAt(pod, 'status', 'containerStatuses'),
    ...listAt(pod, 'status', 'initContainerStatuses'),
  ];
  return Object.fromEntries(all.map((one) => [textAt(one, 'name'), valueAt(one, 'restartCount')]));
}
