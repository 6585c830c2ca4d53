// Namespaces of their own for a node: mounts, network, processes. Whatever it makes there (bridges, rules, mounts,
// containers) is gone with their first process; that one ends with this process, however this one ends. What is left
// then, control groups and empty mount points, is removed by us or by a guard.
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { eventually } from '../../support/redis.ts';
import {
  childrenOf,
  guardWith,
  GuardedProcess,
  untilUnlocked,
  type ProcessOptions,
} from '../guarded-process.ts';
import { BRIDGE, families, HOST_LINK } from './network.ts';

/** In every hierarchy of control groups; the kubelet's pods live in it. */
export const CGROUP = 'weir-node';
const CGROUP_ROOT = '/sys/fs/cgroup';

/** Folders whose names containerd, CNI and the kubelet do not let one choose. */
const FIXED_FOLDERS = ['/run', '/var/lib/cni', '/var/lib/kubelet', '/var/log/containers'];

/** The values that the kubelet wants of these; shown to it, so that it writes none of them to the whole machine. */
const GLOBAL_SETTINGS = ['vm/overcommit_memory', 'kernel/panic', 'kernel/panic_on_oops'];

/**
 * The first process: arranges the mounts, then reaps what loses its parent, as shims of containers do. Its arguments
 * are a file that holds 1, a file to make when it is done, and the folders to hide.
 */
const FIRST_PROCESS = `
set -e
one=$1; done=$2; shift 2
for folder in "$@"; do mount -t tmpfs tmpfs "$folder"; done
for setting in ${GLOBAL_SETTINGS.join(' ')}; do mount --bind "$one" "/proc/sys/$setting"; done
mount --bind "\${one}0" /proc/sys/kernel/panic
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
[ ! -e /proc/sys/net/ipv6 ] || echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
: > "$done"
trap 'exit 0' TERM
while :; do sleep 3600 & wait $! || true; done
`;

export class Namespaces implements AsyncDisposable {
  readonly #outer: GuardedProcess;
  readonly #first: number;
  readonly #resources: AsyncDisposableStack;

  private constructor(outer: GuardedProcess, first: number, resources: AsyncDisposableStack) {
    this.#outer = outer;
    this.#first = first;
    this.#resources = resources;
  }

  /**
   * Needs root. `folder` gets the log and what the mounts show. `lockFile` is the same for all nodes of this machine:
   * the guard of one that was killed would else remove the groups and the mount points of the next.
   */
  static async open(folder: string, lockFile: string): Promise<Namespaces> {
    await using stack = new AsyncDisposableStack();
    await untilUnlocked(lockFile, GUARD_TIMEOUT_S);
    const made = makeFolders();
    // First, to be called off last: removing takes seconds, in which this process may be killed as well.
    stack.use(guardWith(GUARD_SCRIPT, [CGROUP_ROOT, CGROUP, ...made], lockFile));
    stack.defer(() => {
      for (const one of made) tryToRemove(one);
    });
    makeCgroups();
    stack.defer(removeCgroups);
    const ready = path.join(folder, 'namespaces-ready');
    const one = path.join(folder, 'setting-1');
    writeFileSync(one, '1\n');
    writeFileSync(`${one}0`, '10\n');
    const outer = stack.use(
      await GuardedProcess.start(
        'unshare',
        [
          ...['--mount', '--net', '--pid', '--ipc', '--uts', '--fork', '--kill-child=KILL'],
          ...['--mount-proc', 'bash', '-c', FIRST_PROCESS, 'node', one, ready, ...FIXED_FOLDERS],
        ],
        { name: 'namespaces', logFile: path.join(folder, 'namespaces.log') },
      ),
    );
    await eventually('the namespaces', async () => {
      if (outer.hasEnded) throw new Error(`no namespaces: ${await outer.log()}`);
      return existsSync(ready);
    });
    const [first] = childrenOf(outer.pid ?? 0);
    if (first === undefined) throw new Error(`no namespaces: ${await outer.log()}`);
    const namespaces = new Namespaces(outer, first, stack.move());
    namespaces.#connect();
    return namespaces;
  }

  /** Starts a program inside; it ends with the namespaces at the latest. */
  async start(
    program: string,
    args: readonly string[],
    options: ProcessOptions,
  ): Promise<GuardedProcess> {
    const inside = ['--target', String(this.#first), ...NAMESPACES, '--', program, ...args];
    return GuardedProcess.start('nsenter', inside, { ...options, isWrapper: true });
  }

  /** Runs a program inside to its end; throws what it said when it fails. */
  run(program: string, args: readonly string[]): string {
    return runHere('nsenter', [
      ...['--target', String(this.#first), ...NAMESPACES, '--', program],
      ...args,
    ]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#outer.stop('SIGKILL');
    // The kernel takes a moment to end the containers, and a group with processes cannot be removed.
    await eventually('the namespaces end', () => !existsSync(`/proc/${this.#first}/root/proc`));
    // The link goes with the network at its other end, which the kernel takes down in its own time.
    await eventually('the link is gone', () => !existsSync(`/sys/class/net/${HOST_LINK}`));
    await this.#resources.disposeAsync();
  }

  /** The bridge, and the link from this machine to it. */
  #connect(): void {
    // The address of a bridge is else the lowest of its ports', which changes with every pod: neighbours would talk
    // to one that is gone until they forget it, for 30 s.
    this.#ip('link', 'add', BRIDGE, 'address', '0a:58:c6:12:00:01', 'type', 'bridge');
    this.#ip('link', 'set', BRIDGE, 'up');
    const peer = `${HOST_LINK}-peer`;
    runHere('ip', [
      ...['link', 'add', HOST_LINK, 'type', 'veth', 'peer', 'name', peer],
      ...['netns', String(this.#first)],
    ]);
    this.#ip('link', 'set', peer, 'master', BRIDGE, 'up');
    runHere('ip', ['link', 'set', HOST_LINK, 'up']);
    for (const { node, host, prefix, services } of families) {
      const mode = node.includes(':') ? ['nodad'] : [];
      this.#ip('address', 'add', `${node}/${prefix}`, 'dev', BRIDGE, ...mode);
      // Without a route, connecting to a Service fails before the rules could rewrite its address.
      this.#ip('route', 'add', services, 'dev', BRIDGE, 'src', node);
      runHere('ip', ['address', 'add', `${host}/${prefix}`, 'dev', HOST_LINK, ...mode]);
      runHere('ip', ['route', 'add', services, 'via', node]);
    }
  }

  #ip(...args: readonly string[]): void {
    this.run('ip', args);
  }
}

const NAMESPACES = ['--mount', '--net', '--pid', '--ipc', '--uts'];

function runHere(program: string, args: readonly string[]): string {
  const ran = spawnSync(program, args, { encoding: 'utf8' });
  if (ran.status === 0) return ran.stdout;
  const why = ran.error?.message ?? `${ran.stdout}${ran.stderr}`.trim();
  throw new Error(`${program} ${args.join(' ')} failed: ${why}`);
}

/** Those that were not there and are to be removed. */
function makeFolders(): readonly string[] {
  const missing = FIXED_FOLDERS.filter((folder) => !existsSync(folder));
  for (const folder of missing) mkdirSync(folder, { recursive: true });
  return missing;
}

/** With version 1 every controller has a hierarchy of its own; with version 2 there is one. */
function hierarchies(): readonly string[] {
  if (existsSync(path.join(CGROUP_ROOT, 'cgroup.controllers'))) return [CGROUP_ROOT];
  return readdirSync(CGROUP_ROOT)
    .map((name) => path.join(CGROUP_ROOT, name))
    .filter((folder) => existsSync(path.join(folder, 'cgroup.procs')));
}

function makeCgroups(): void {
  for (const hierarchy of hierarchies()) {
    const group = path.join(hierarchy, CGROUP);
    mkdirSync(group, { recursive: true });
    // A new group of version 1 has no processors and takes no process until it gets some.
    for (const name of ['cpuset.cpus', 'cpuset.mems']) {
      const file = path.join(group, name);
      if (!existsSync(file) || readFileSync(file, 'utf8').trim() !== '') continue;
      writeFileSync(file, readFileSync(path.join(hierarchy, name), 'utf8'));
    }
  }
}

/** Groups go when they are empty, the innermost first. */
async function removeCgroups(): Promise<void> {
  await eventually('the control groups are gone', () => {
    for (const hierarchy of hierarchies()) removeGroup(path.join(hierarchy, CGROUP));
    return hierarchies().every((hierarchy) => !existsSync(path.join(hierarchy, CGROUP)));
  });
}

function removeGroup(group: string): void {
  if (!existsSync(group)) return;
  for (const entry of readdirSync(group, { withFileTypes: true })) {
    if (entry.isDirectory()) removeGroup(path.join(group, entry.name));
  }
  tryToRemove(group);
}

function tryToRemove(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // Somebody uses it, or it is not empty; with groups, the next round tries again.
  }
}

/** A guard tries five times, a second apart. */
const GUARD_TIMEOUT_S = 30;

/** The same without us: groups first, when what is in them has been killed. */
const GUARD_SCRIPT = `
root=$1; group=$2; shift 2
for round in 1 2 3 4 5; do
  sleep 1
  find "$root" -maxdepth 2 -name "$group" -type d | while read -r one; do find "$one" -depth -type d -exec rmdir {} +; done
  [ -n "$(find "$root" -maxdepth 2 -name "$group" -type d)" ] || break
done
for folder in "$@"; do rmdir "$folder"; done
`;
