// The container runtime of the node: Debian's containerd. No pull may leave the machine: every registry it knows is a
// closed port, and images come from archives.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { eventually } from '../../support/redis.ts';
import type { Namespaces } from './namespaces.ts';
import { BRIDGE, families } from './network.ts';

export const PAUSE_IMAGE = 'weir.dev/pause:1';
const NAMESPACE = 'k8s.io';

export interface ContainerdOptions {
  readonly namespaces: Namespaces;
  /** Gone with the node. */
  readonly folder: string;
  /** Kept, with the images that were imported before. */
  readonly store: string;
}

export class Containerd {
  readonly socket: string;
  readonly #namespaces: Namespaces;
  readonly #store: string;

  private constructor({ namespaces, store }: ContainerdOptions, socket: string) {
    this.socket = socket;
    this.#namespaces = namespaces;
    this.#store = store;
  }

  static async start(options: ContainerdOptions): Promise<Containerd> {
    const { namespaces, folder, store } = options;
    const home = path.join(folder, 'containerd');
    const socket = path.join(home, 'containerd.sock');
    await mkdir(path.join(home, 'cni'), { recursive: true });
    await mkdir(store, { recursive: true });
    await writeFile(path.join(home, 'cni', '10-weir.conflist'), networkOf(home));
    await closeRegistries(path.join(home, 'registries'));
    const configFile = path.join(home, 'config.toml');
    await writeFile(configFile, configOf({ home, socket, store }));
    const logFile = path.join(folder, 'containerd.log');
    const running = await namespaces.start('containerd', ['--config', configFile], {
      name: 'containerd',
      logFile,
    });
    const containerd = new Containerd(options, socket);
    await eventually(
      'containerd answers',
      async () => {
        if (running.hasEnded) throw new Error(`containerd has ended:\n${await running.log()}`);
        return containerd.#answers();
      },
      START_TIMEOUT_MS,
    );
    containerd.#forgetContainers();
    return containerd;
  }

  /** Imports a `docker save` archive unless the very same one was imported the last time. */
  async importImage(archive: string): Promise<void> {
    const hash = createHash('sha256');
    await pipeline(createReadStream(archive), hash);
    const now = hash.digest('hex');
    const stamp = path.join(this.#store, 'imported', path.basename(archive));
    if ((await readFile(stamp, 'utf8').catch(() => '')) === now) return;
    this.#ctr('images', 'import', archive);
    await mkdir(path.dirname(stamp), { recursive: true });
    await writeFile(stamp, now);
  }

  #answers(): boolean {
    try {
      this.#ctr('version');
      return true;
    } catch {
      return false;
    }
  }

  /** A kept store still lists the containers of a node that was killed. */
  #forgetContainers(): void {
    const left = this.#ctr('containers', 'list', '--quiet').trim();
    if (left !== '') this.#ctr('containers', 'rm', ...left.split('\n'));
  }

  #ctr(...args: readonly string[]): string {
    return this.#namespaces.run('ctr', [
      ...['--address', this.socket, '--namespace', NAMESPACE],
      ...args,
    ]);
  }
}

/** A cold page cache and two busy cores. */
const START_TIMEOUT_MS = 60_000;

function networkOf(home: string): string {
  const ranges = families.map(({ pods, firstPod, lastPod, node }) => [
    { subnet: pods, rangeStart: firstPod, rangeEnd: lastPod, gateway: node },
  ]);
  return JSON.stringify({
    cniVersion: '1.0.0',
    name: 'weir',
    plugins: [
      {
        ...{ type: 'bridge', bridge: BRIDGE, isGateway: true, ipMasq: false, hairpinMode: true },
        ipam: {
          type: 'host-local',
          dataDir: path.join(home, 'addresses'),
          ranges,
          routes: families.map(({ everywhere }) => ({ dst: everywhere })),
        },
      },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  });
}

async function closeRegistries(folder: string): Promise<void> {
  const closed = 'http://127.0.0.1:1';
  const text = `server = "${closed}"\n[host."${closed}"]\n  capabilities = ["pull", "resolve"]\n`;
  for (const registry of ['_default', 'docker.io']) {
    await mkdir(path.join(folder, registry), { recursive: true });
    await writeFile(path.join(folder, registry, 'hosts.toml'), text);
  }
}

interface Places {
  readonly home: string;
  readonly socket: string;
  readonly store: string;
}

function configOf({ home, socket, store }: Places): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  return `version = 2
root = "${store}/root"
state = "${home}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.internal.v1.tracing"]
[grpc]
  address = "${socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "${home}/opt"
[${cri}]
  sandbox_image = "${PAUSE_IMAGE}"
  # Lowering a score needs a capability that root of a container or a small machine may lack.
  restrict_oom_score_adj = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [${cri}.containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [${cri}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [${cri}.containerd.runtimes.runc.options]
        SystemdCgroup = false
        BinaryName = "runc"
        Root = "${home}/runc"
  [${cri}.registry]
    config_path = "${home}/registries"
  [${cri}.cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${home}/cni"
`;
}
