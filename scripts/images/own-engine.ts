// A Docker engine for one build, on a machine where none runs: Debian's docker.io, in mount and process namespaces of
// its own. Whoever ends it, SIGKILL included, ends all its processes and mounts with it; it makes no bridge, no rule
// and no setting of the host's network. Its layers stay under the cache folder, so that the next build is quick.
import { accessSync, constants } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { spawnSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { lockFile } from '../../test/cluster/file-lock.ts';
import { guardFolder, GuardedProcess } from '../../test/cluster/guarded-process.ts';
import { hashOf, type Say } from '../../test/cluster/kept-folder.ts';
import { environmentWith, searchPath } from './config.ts';

const START_TIMEOUT_MS = 60_000;
const POLL_MS = 200;
const NEEDED = ['dockerd', 'docker', 'containerd', 'runc', 'unshare'];

/**
 * Hides what the engine would share with another one (its sockets under /run, the key it would write to /etc/docker),
 * keeps name resolution where resolv.conf is a link into /run, and becomes the engine.
 */
const START = `
state=$1; shift
names=$(readlink -f /etc/resolv.conf) && cp "$names" "$state/resolv.conf"
mount -t tmpfs tmpfs /run || exit
mkdir -p "$(dirname "$names")"; [ -e "$names" ] || cp "$state/resolv.conf" "$names"
if [ -d /etc/docker ]; then mount -t tmpfs tmpfs /etc/docker || exit; fi
export HOME=$state
exec dockerd "$@"`;

export interface OwnEngine extends AsyncDisposable {
  /** What the client needs to find it. */
  readonly env: Readonly<Record<string, string>>;
}

/** In words, with what to do about it; undefined = it can be started. */
export function whyNoOwnEngine(): string | undefined {
  if (process.platform !== 'linux') return 'that works on Linux only; start Docker';
  if (process.getuid?.() !== 0) return 'that needs root; start Docker, or run this as root';
  const missing = NEEDED.filter((name) => !isOnPath(name));
  if (missing.length === 0) return undefined;
  return `${missing.join(', ')} missing; on Debian: apt-get install -y --no-install-recommends docker.io`;
}

function isOnPath(name: string): boolean {
  return searchPath().some((folder) => {
    try {
      accessSync(path.join(folder, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Rejects with the engine's own words when it does not come up. */
export async function openOwnEngine(home: string, say: Say): Promise<OwnEngine> {
  await using stack = new AsyncDisposableStack();
  const folder = path.join(home, 'engine');
  await mkdir(folder, { recursive: true });
  // One engine at a time may have these layers.
  const onWait = (owner: number): void => {
    say(`process ${owner} uses the engine's layers; waiting for it`);
  };
  stack.use(await lockFile(`${folder}.lock`, onWait));
  // A socket's path is short, so that it stands in the temporary folder.
  const state = await mkdtemp(path.join(tmpdir(), 'weir-engine-'));
  stack.defer(() => rm(state, { recursive: true, force: true }));
  stack.use(guardFolder(state));
  // One name for all runs: a killed one leaves empty groups, which the next one takes along at its end.
  const cgroup = `weir-engine-${hashOf([folder])}`;
  stack.defer(() => removeCgroups(cgroup));
  const socket = `unix://${path.join(state, 'docker.sock')}`;
  const env = {
    ...{ DOCKER_HOST: socket, DOCKER_CONFIG: path.join(state, 'client'), HOME: state },
    // The engine of Debian 12 has the classic builder only.
    ...{ DOCKER_BUILDKIT: '0', DOCKER_CONTEXT: 'default' },
  };
  const engine = stack.use(
    await GuardedProcess.start(
      'unshare',
      [...NAMESPACES, ...engineArguments(state, folder, cgroup)],
      {
        name: 'dockerd',
        logFile: path.join(state, 'log'),
      },
    ),
  );
  stack.defer(() => stopInOrder(engine));
  await untilItAnswers(engine, env);
  // Containers of a run that was killed.
  spawnSync('docker', ['container', 'prune', '--force'], { env: environmentWith(env) });
  const resources = stack.move();
  return { env, [Symbol.asyncDispose]: () => resources.disposeAsync() };
}

const NAMESPACES = [
  ...['--mount', '--pid', '--fork', '--mount-proc', '--kill-child=KILL'],
  ...['sh', '-c', START, 'engine'],
];

function engineArguments(state: string, folder: string, cgroup: string): readonly string[] {
  return [
    state,
    ...['--host', `unix://${path.join(state, 'docker.sock')}`],
    ...['--pidfile', path.join(state, 'pid'), '--exec-root', path.join(state, 'exec')],
    ...['--data-root', path.join(folder, 'data')],
    ...['--bridge=none', '--iptables=false', '--ip6tables=false', '--ip-forward=false'],
    ...['--ip-masq=false', '--userland-proxy=false'],
    // systemd's driver would ask the one of the host, whose socket is hidden.
    ...['--exec-opt', 'native.cgroupdriver=cgroupfs', '--cgroup-parent', `/${cgroup}`],
  ];
}

async function untilItAnswers(
  engine: GuardedProcess,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline && !engine.hasEnded) {
    if (spawnSync('docker', ['version'], { env: environmentWith(env) }).status === 0) return;
    await delay(POLL_MS);
  }
  const what = engine.hasEnded ? 'ended' : `did not answer within ${START_TIMEOUT_MS / 1_000} s`;
  throw new Error(`the private Docker engine ${what}:\n${await engine.log()}`);
}

/** The engine is in the group of the process that made its namespaces, and writes down its layers before it ends. */
async function stopInOrder(engine: GuardedProcess): Promise<void> {
  if (engine.pid !== undefined && !engine.hasEnded) process.kill(-engine.pid, 'SIGTERM');
  await engine.stop('SIGTERM');
}

/** The kernel keeps empty groups for ever. */
async function removeCgroups(name: string): Promise<void> {
  const root = '/sys/fs/cgroup';
  const hierarchies = await readdir(root, { withFileTypes: true }).catch(() => []);
  const roots = [
    root,
    ...hierarchies.filter((one) => one.isDirectory()).map((one) => path.join(root, one.name)),
  ];
  for (const hierarchy of roots) await removeGroup(path.join(hierarchy, name));
}

async function removeGroup(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of entries)
    if (entry.isDirectory()) await removeGroup(path.join(folder, entry.name));
  await rmdir(folder).catch(() => undefined);
}
