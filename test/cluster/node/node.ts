// A real node of the test's own: control plane, scheduler, kubelet, service proxy, resolver and containerd in
// namespaces of their own. Pods run here. One at a time: its addresses and its control group have fixed names.
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { eventually } from '../../support/redis.ts';
import { readClusterConfig } from '../config.ts';
import { openControlPlane, type ControlPlane, type ControlPlaneOptions } from '../control-plane.ts';
import type { ControlPlaneSite } from '../control-plane-flags.ts';
import { lockFile } from '../file-lock.ts';
import { guardFolder, type GuardedProcess } from '../guarded-process.ts';
import { listAt, textAt } from '../json-value.ts';
import type { Say } from '../kept-folder.ts';
import { Containerd } from './containerd.ts';
import { CGROUP, Namespaces } from './namespaces.ts';
import { families, joined, NODE_NAME } from './network.ts';

/** 6 to 20 s were seen for all of it on two busy cores. */
const START_TIMEOUT_MS = 90_000;

export interface NodeOptions {
  /** `docker save` archives; one of them holds the pause image. */
  readonly images: readonly string[];
  /** Every request's metadata goes to `controlPlane.auditLogPath`. */
  readonly audit?: boolean;
  readonly say?: Say;
}

export interface Node extends AsyncDisposable {
  readonly controlPlane: ControlPlane;
}

/** Undefined, or why this machine can have no node. */
export function whyNoNode(): string | undefined {
  if (process.platform !== 'linux') return `a node needs Linux, this is ${process.platform}`;
  if (process.getuid?.() !== 0) return 'a node needs root: namespaces, mounts and control groups';
  const missing = Object.entries(PROGRAMS).filter(([program]) => !isOnPath(program));
  if (missing.length === 0) return undefined;
  const packages = [...new Set(missing.map(([, debian]) => debian))].join(' ');
  const names = missing.map(([program]) => program).join(', ');
  return `${names} missing: apt-get install -y --no-install-recommends ${packages}`;
}

/** What is run from the machine, and the Debian package that holds it. */
const PROGRAMS: Readonly<Record<string, string>> = {
  containerd: 'containerd',
  ctr: 'containerd',
  runc: 'runc',
  '/usr/lib/cni/bridge': 'containernetworking-plugins',
  iptables: 'iptables',
  nft: 'nftables',
  ip: 'iproute2',
  unshare: 'util-linux',
  flock: 'util-linux',
};

function isOnPath(program: string): boolean {
  if (path.isAbsolute(program)) return existsSync(program);
  const folders = (process.env['PATH'] ?? '').split(path.delimiter);
  return [...folders, '/usr/sbin'].some((folder) => existsSync(path.join(folder, program)));
}

/** Starts one. Rejects with what is missing on this machine. */
export async function openNode(options: NodeOptions): Promise<Node> {
  const why = whyNoNode();
  if (why !== undefined) throw new Error(why);
  const { home } = readClusterConfig();
  const say = options.say ?? ((sentence) => process.stderr.write(`node: ${sentence}\n`));
  await using stack = new AsyncDisposableStack();
  await mkdir(home, { recursive: true });
  stack.use(
    await lockFile(path.join(home, 'node.lock'), (owner) => {
      say(`process ${owner} runs a node; waiting for its end`);
    }),
  );
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-node-'));
  const guard = guardFolder(folder);
  stack.defer(async () => {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    guard[Symbol.dispose]();
  });
  const namespaces = stack.use(await Namespaces.open(folder, path.join(home, 'node-guard.lock')));
  const containerd = await Containerd.start({
    ...{ namespaces, folder },
    store: path.join(home, 'containerd'),
  });
  for (const image of options.images) await containerd.importImage(image);
  const controlPlane = stack.use(await openControlPlane(controlPlaneOptions(namespaces, options)));
  await startNode({ namespaces, containerd, controlPlane, folder });
  const owned = stack.move();
  return { controlPlane, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

function controlPlaneOptions(namespaces: Namespaces, options: NodeOptions): ControlPlaneOptions {
  const [first] = families;
  const site: ControlPlaneSite = {
    address: first.node,
    hasNodes: true,
    serviceRange: joined('services'),
  };
  const addresses = families.flatMap(({ node, apiService }) => [node, apiService]);
  return {
    ...{ site, addresses, audit: options.audit ?? false },
    ...(options.say === undefined ? {} : { say: options.say }),
    startProcess: namespaces.start.bind(namespaces),
  };
}

interface Parts {
  readonly namespaces: Namespaces;
  readonly containerd: Containerd;
  readonly controlPlane: ControlPlane;
  readonly folder: string;
}

async function startNode(parts: Parts): Promise<void> {
  const { controlPlane } = parts;
  const programs = [
    await startScheduler(parts),
    await startResolver(parts),
    await startKubelet(parts),
    await startServiceProxy(parts),
  ];
  const isReadyNow = async (): Promise<boolean> => {
    const ended = programs.find(({ hasEnded }) => hasEnded);
    if (ended !== undefined) throw new Error(`${ended.name} has ended`);
    return isReady(controlPlane);
  };
  try {
    await eventually('the node is ready', isReadyNow, START_TIMEOUT_MS);
  } catch (error) {
    const logs = programs.map(async (one) => `${one.name}:\n${await one.log()}`);
    throw new Error([String(error), ...(await Promise.all(logs))].join('\n\n'), { cause: error });
  }
}

async function startScheduler(parts: Parts): Promise<GuardedProcess> {
  const { controlPlane } = parts;
  return startProgram(parts, 'kube-scheduler', [
    ...['--kubeconfig', await controlPlane.kubeConfigFor({ name: 'system:kube-scheduler' })],
    ...['--bind-address', '127.0.0.1', '--secure-port', '16259'],
    ...['--cert-dir', path.join(parts.folder, 'scheduler')],
    ...['--leader-elect=false', '--profiling=false'],
  ]);
}

async function startProgram(
  { namespaces, controlPlane, folder }: Parts,
  name: string,
  args: readonly string[],
): Promise<GuardedProcess> {
  return namespaces.start(controlPlane.programs.controlPlane, [name, ...args], {
    name,
    logFile: path.join(folder, `${name}.log`),
  });
}

/** Names of Services and pods; a plain process on the node's address, so that no Service of its own is needed. */
async function startResolver(parts: Parts): Promise<GuardedProcess> {
  const { controlPlane, folder } = parts;
  const corefile = path.join(folder, 'Corefile');
  await writeFile(
    corefile,
    `.:53 {
    bind ${families.map(({ node }) => node).join(' ')}
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        kubeconfig ${controlPlane.kubeconfig} weir
        pods insecure
        ttl 1
    }
}
`,
  );
  return startProgram(parts, 'coredns', ['-conf', corefile]);
}

async function startKubelet(parts: Parts): Promise<GuardedProcess> {
  const { controlPlane, folder } = parts;
  const nodeName = `system:node:${NODE_NAME}`;
  const user = { name: nodeName, groups: ['system:nodes'] };
  const addresses = families.map(({ node }) => node);
  await controlPlane.credentials.writeServer('kubelet-server', addresses);
  const configFile = path.join(folder, 'kubelet.json');
  await writeFile(configFile, JSON.stringify(kubeletConfig(parts)));
  await writeFile(path.join(folder, 'resolv.conf'), 'nameserver 127.0.0.1\n');
  await mkdir(path.join(folder, 'pod-logs'));
  return startProgram(parts, 'kubelet', [
    ...['--config', configFile, '--kubeconfig', await controlPlane.kubeConfigFor(user)],
    ...['--root-dir', path.join(folder, 'kubelet')],
    ...['--cert-dir', path.join(folder, 'kubelet', 'pki')],
    ...['--hostname-override', NODE_NAME, '--node-ip', addresses.join(',')],
  ]);
}

function kubeletConfig({ controlPlane, containerd, folder }: Parts): object {
  const { credentials } = controlPlane;
  const [first] = families;
  return {
    ...{ apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' },
    ...{ address: first.node, port: 16250, readOnlyPort: 0, healthzPort: 0 },
    tlsCertFile: credentials.file('kubelet-server.crt'),
    tlsPrivateKeyFile: credentials.file('kubelet-server.key'),
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: credentials.file('ca.crt') },
    },
    authorization: { mode: 'Webhook' },
    containerRuntimeEndpoint: `unix://${containerd.socket}`,
    ...{ cgroupDriver: 'cgroupfs', cgroupRoot: `/${CGROUP}`, failCgroupV1: false },
    ...{ failSwapOn: false, oomScoreAdj: 0 },
    resolvConf: path.join(folder, 'resolv.conf'),
    ...{ clusterDNS: families.map(({ node }) => node).slice(0, 1), clusterDomain: 'cluster.local' },
    podLogsDir: path.join(folder, 'pod-logs'),
    volumePluginDir: path.join(folder, 'kubelet', 'volume-plugins'),
    // A disk that is nearly full with something else must not drive out the pods of a test.
    evictionHard: {
      'memory.available': '10Mi',
      'nodefs.available': '0%',
      'nodefs.inodesFree': '0%',
      'imagefs.available': '0%',
      'imagefs.inodesFree': '0%',
    },
    imageGCHighThresholdPercent: 100,
    ...{ syncFrequency: '10s', nodeStatusUpdateFrequency: '5s', maxPods: 250 },
    makeIPTablesUtilChains: false,
  };
}

async function startServiceProxy(parts: Parts): Promise<GuardedProcess> {
  const { controlPlane } = parts;
  const user = { name: 'system:kube-proxy' };
  const bind = ['create', 'clusterrolebinding', 'weir-node-proxy'];
  await controlPlane.kubectl([
    ...bind,
    ...['--clusterrole=system:node-proxier', `--user=${user.name}`],
  ]);
  return startProgram(parts, 'kube-proxy', [
    ...['--kubeconfig', await controlPlane.kubeConfigFor(user)],
    ...['--hostname-override', NODE_NAME, '--proxy-mode', 'nftables'],
    ...['--cluster-cidr', joined('pods')],
    ...['--healthz-bind-address', '127.0.0.1:16256', '--metrics-bind-address', '127.0.0.1:16249'],
    ...['--conntrack-max-per-core', '0', '--conntrack-tcp-timeout-established', '0'],
    ...['--conntrack-tcp-timeout-close-wait', '0', '--nodeport-addresses', '127.0.0.0/8'],
  ]);
}

async function isReady(controlPlane: ControlPlane): Promise<boolean> {
  const { body } = await controlPlane.api.request('GET', `/api/v1/nodes/${NODE_NAME}`);
  return listAt(body, 'status', 'conditions').some(
    (one) => textAt(one, 'type') === 'Ready' && textAt(one, 'status') === 'True',
  );
}
