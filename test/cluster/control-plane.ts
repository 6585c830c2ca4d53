// A control plane of the test's own: etcd, API server and controllers, in a folder of their own, gone with the test
// however that ends. On loopback there are no nodes: pods stay Pending unless fake-kubelet.ts makes them look alive;
// node/node.ts gives it one. Its processes may be stopped and started, which is what it has over a cluster somebody
// else runs.
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { eventually } from '../support/redis.ts';
import { ApiClient } from './api-client.ts';
import { requestToken, type Cluster, type ServiceAccountName } from './cluster.ts';
import { readClusterConfig } from './config.ts';
import {
  apiServerFlags,
  controllerFlags,
  etcdFlags,
  LOOPBACK,
  type ControlPlaneLayout,
  type ControlPlaneSite,
} from './control-plane-flags.ts';
import { Credentials, type User } from './credentials.ts';
import { guardFolder, GuardedProcess, type StartProcess } from './guarded-process.ts';
import { exchangeJson } from './json-exchange.ts';
import { textAt } from './json-value.ts';
import { runKubectl, type KubectlOptions, type KubectlResult } from './kubectl.ts';
import { freeServerPort } from './port.ts';
import type { Say } from './kept-folder.ts';
import { openPrograms, type Programs } from './programs.ts';

/** 4 to 9 s were seen with both cores busy; page caches may be cold. */
const START_TIMEOUT_MS = 90_000;
/** Somebody may have taken a port between our look and the server's. */
const START_ATTEMPTS = 3;

export interface ControlPlaneOptions {
  /** Every request's metadata goes to `auditLogPath`, one JSON object a line. */
  readonly audit?: boolean;
  /** More flags for the API server. */
  readonly apiServerFlags?: readonly string[];
  /** Loopback unless given. */
  readonly site?: ControlPlaneSite;
  /** Addresses in the API server's certificate, beside loopback and that of the site. */
  readonly addresses?: readonly string[];
  /** How its processes are started: beside this one unless given. */
  readonly startProcess?: StartProcess;
  /** Told what takes long; standard error unless given. */
  readonly say?: Say;
}

/** Starts one in some 10 s; the first on a machine builds the programs, which takes minutes. */
export async function openControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const say = options.say ?? ((sentence) => process.stderr.write(`cluster: ${sentence}\n`));
  const programs = await openPrograms(readClusterConfig().home, say);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await ControlPlane.start(programs, options);
    } catch (error) {
      const isPortTaken =
        error instanceof Error && error.message.includes('address already in use');
      if (!isPortTaken || attempt === START_ATTEMPTS) throw error;
    }
  }
}

export class ControlPlane implements Cluster {
  readonly kubeconfig: string;
  readonly url: string;
  readonly caPem: string;
  readonly api: ApiClient;
  /** Undefined unless asked for. */
  readonly auditLogPath: string | undefined;
  readonly #programs: Programs;
  readonly #layout: ControlPlaneLayout;
  readonly #moreFlags: readonly string[];
  readonly #startProcess: StartProcess;
  readonly #resources: AsyncDisposableStack;
  #apiServer: GuardedProcess | undefined;
  #others: readonly GuardedProcess[] = [];

  private constructor(
    { programs, layout, resources }: Parts,
    { kubeconfig, api }: { readonly kubeconfig: string; readonly api: ApiClient },
    options: ControlPlaneOptions,
  ) {
    this.kubeconfig = kubeconfig;
    this.api = api;
    this.url = api.url;
    this.caPem = layout.credentials.caPem;
    this.auditLogPath = layout.auditLog;
    this.#programs = programs;
    this.#layout = layout;
    this.#moreFlags = options.apiServerFlags ?? [];
    this.#startProcess = options.startProcess ?? startHere;
    this.#resources = resources;
  }

  static async start(programs: Programs, options: ControlPlaneOptions): Promise<ControlPlane> {
    await using stack = new AsyncDisposableStack();
    const folder = await makeFolder(stack);
    const layout = await layOut(folder, options);
    const { credentials } = layout;
    const url = apiUrl(layout);
    const kubeconfig = await credentials.writeUserConfig(url, 'admin');
    const api = stack.use(await ApiClient.open(kubeconfig));
    const resources = stack.move();
    const parts = { programs, layout, resources };
    const controlPlane = new ControlPlane(parts, { kubeconfig, api }, options);
    try {
      await controlPlane.#startAll();
      return controlPlane;
    } catch (error) {
      await controlPlane[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Of its processes' logs and files. */
  get folder(): string {
    return this.#layout.folder;
  }

  get credentials(): Credentials {
    return this.#layout.credentials;
  }

  get programs(): Programs {
    return this.#programs;
  }

  async kubectl(args: readonly string[], options?: KubectlOptions): Promise<KubectlResult> {
    const { kubeconfig } = this;
    const cacheFolder = path.join(this.#layout.folder, 'kubectl');
    return runKubectl({ program: this.#programs.kubectl, kubeconfig, cacheFolder }, args, options);
  }

  async kubeConfigFor(who: User | ServiceAccountName): Promise<string> {
    const { credentials } = this.#layout;
    if (!('serviceAccount' in who)) return credentials.writeUserConfig(this.url, who);
    const token = await requestToken(this.api, who);
    return credentials.writeTokenConfig(`${who.namespace}.${who.serviceAccount}`, this.url, token);
  }

  /** Ends the API server: in an orderly way, or at once as a crash does (`SIGKILL`). Watches end with it. */
  async stopApiServer(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    await this.#apiServer?.stop(signal);
  }

  /** Starts it again at the same address; resolves once it is ready. */
  async startApiServer(): Promise<void> {
    const flags = [...apiServerFlags(this.#layout), ...this.#moreFlags];
    this.#apiServer = await this.#spawn('kube-apiserver', flags);
    await this.#untilAnswers('the API server is ready', '/readyz');
  }

  async restartApiServer(): Promise<void> {
    await this.stopApiServer();
    await this.startApiServer();
  }

  /**
   * Makes etcd forget all revisions but the last. An API server that runs still remembers recent ones by itself:
   * a watch from an old `resourceVersion` gets its 410 after a restart only, a paged list at once.
   */
  async compactEtcd(): Promise<void> {
    const range = await this.#askEtcd('/v3/kv/range', { key: Buffer.from('a').toString('base64') });
    const revision = textAt(range, 'header', 'revision');
    await this.#askEtcd('/v3/kv/compaction', { revision, physical: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const processes = [this.#apiServer, ...this.#others].filter((one) => one !== undefined);
    await Promise.all(processes.map((one) => one[Symbol.asyncDispose]()));
    await this.#resources.disposeAsync();
  }

  async #startAll(): Promise<void> {
    const layout = this.#layout;
    const etcd = await this.#spawn('etcd', etcdFlags(layout));
    this.#others = [etcd];
    // It tries for etcd until that is there.
    await this.startApiServer();
    const controllers = await this.#spawn('kube-controller-manager', controllerFlags(layout));
    this.#others = [etcd, controllers];
    const namespace = '/api/v1/namespaces/default';
    // Without these two, no pod can be created.
    await this.#untilAnswers('a service account', `${namespace}/serviceaccounts/default`);
    await this.#untilAnswers('its certificates', `${namespace}/configmaps/kube-root-ca.crt`);
  }

  async #spawn(name: string, flags: readonly string[]): Promise<GuardedProcess> {
    const logFile = path.join(this.#layout.folder, `${name}.log`);
    return this.#startProcess(this.#programs.controlPlane, [name, ...flags], { name, logFile });
  }

  async #untilAnswers(what: string, url: string): Promise<void> {
    const isThere = async (): Promise<boolean> => {
      await this.#assertAlive();
      return this.api.request('GET', url).then(
        ({ status }) => status === 200,
        () => false,
      );
    };
    await eventually(what, isThere, START_TIMEOUT_MS);
  }

  async #assertAlive(): Promise<void> {
    for (const one of [this.#apiServer, ...this.#others]) {
      if (one?.hasEnded) throw new Error(`${one.name} has ended:\n${await one.log()}`);
    }
  }

  /** Through its JSON gateway, as the API server would. */
  async #askEtcd(path: string, body: unknown): Promise<unknown> {
    const { credentials, ports } = this.#layout;
    const options = {
      method: 'POST',
      ca: credentials.caPem,
      cert: await readFile(credentials.file('etcd-client.crt')),
      key: await readFile(credentials.file('etcd-client.key')),
    };
    const url = `https://127.0.0.1:${ports.etcd}${path}`;
    const { status, body: answer } = await exchangeJson(url, options, JSON.stringify(body));
    if (status !== 200) throw new Error(`etcd refused: ${JSON.stringify(answer)}`);
    return answer;
  }
}

const startHere: StartProcess = (...process) => GuardedProcess.start(...process);

interface Parts {
  readonly programs: Programs;
  readonly layout: ControlPlaneLayout;
  readonly resources: AsyncDisposableStack;
}

async function makeFolder(stack: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-cluster-'));
  const guard = guardFolder(folder);
  stack.defer(async () => {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    guard[Symbol.dispose]();
  });
  return folder;
}

async function layOut(folder: string, options: ControlPlaneOptions): Promise<ControlPlaneLayout> {
  const pki = path.join(folder, 'pki');
  await mkdir(pki);
  const { site = LOOPBACK, addresses = [] } = options;
  const credentials = await Credentials.write(pki, [site.address, ...addresses]);
  const ports = {
    etcd: await freeServerPort(),
    etcdPeer: await freeServerPort(),
    api: await freeServerPort(),
    controllers: await freeServerPort(),
  };
  const url = apiUrl({ site, ports });
  const controllersKubeconfig = await credentials.writeUserConfig(url, 'controller-manager');
  const layout = { site, credentials, folder, ports, controllersKubeconfig };
  if (options.audit !== true) return layout;
  const auditPolicy = path.join(folder, 'audit-policy.yaml');
  await writeFile(auditPolicy, AUDIT_POLICY);
  return { ...layout, auditPolicy, auditLog: path.join(folder, 'audit.log') };
}

/** One line a request, written when it is answered. */
const AUDIT_POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{ level: Metadata }]
`;

function apiUrl({ site, ports }: Pick<ControlPlaneLayout, 'site' | 'ports'>): string {
  return `https://${site.address}:${ports.api}`;
}
