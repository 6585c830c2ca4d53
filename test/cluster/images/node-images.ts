// The images that a node of the tests runs beside Weir's own: the program that holds a pod, and one for applications
// and for Redis. Made from this machine's Debian packages and Go, without a registry and without Docker.
import { spawnSync } from 'node:child_process';
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { fetchPackages, run, unpackPackages } from '../../../scripts/images/debian-root.ts';
import { readClusterConfig } from '../config.ts';
import { hashOf, makeOnce, type Say } from '../kept-folder.ts';
import { writeImageFile } from './image-file.ts';

export interface NodeImage {
  readonly tag: string;
  readonly archive: string;
}

export interface NodeImages {
  /** `weir.dev/pause:1`: a static program and nothing else. */
  readonly pause: NodeImage;
  /** `weir.dev/e2e-app:1`: node, redis-server, redis-cli and busybox's sh and tools; its entry point is node. */
  readonly app: NodeImage;
}

const PAUSE_SOURCES = path.join(import.meta.dirname, 'pause');
const APP_PACKAGES = [
  'redis-server',
  'redis-tools',
  'busybox-static',
  'libatomic1',
  'libstdc++6',
  'netbase',
];
/** Files of the packages that the image gets, with the libraries they are linked against. */
const APP_PROGRAMS = ['/usr/bin/redis-check-rdb', '/usr/bin/redis-cli'];
const APP_VERSION = '1';
const ENVIRONMENT = ['PATH=/usr/local/bin:/usr/bin:/bin'];

/** Kept under `home`, absent = the cluster tests' own. Rejects with what is missing: Go, or packages of Debian. */
export async function buildNodeImages(options: {
  readonly say: Say;
  readonly home?: string;
}): Promise<NodeImages> {
  const { say, home = readClusterConfig().home } = options;
  const source = await readFile(path.join(PAUSE_SOURCES, 'main.go'), 'utf8');
  const parts = [
    process.arch,
    process.version,
    APP_VERSION,
    source,
    ...APP_PACKAGES,
    ...APP_PROGRAMS,
  ];
  const folder = path.join(home, `node-images-${hashOf(parts)}`);
  const images: NodeImages = {
    pause: { tag: 'weir.dev/pause:1', archive: path.join(folder, 'pause.tar') },
    app: { tag: 'weir.dev/e2e-app:1', archive: path.join(folder, 'app.tar') },
  };
  await makeOnce({ folder, say }, images.app.archive, async (draft) => {
    say('making the images of a pod’s holder and of the test application');
    await makePause(draft, images.pause.tag);
    await makeApp(draft, images.app.tag);
  });
  return images;
}

async function makePause(draft: string, tag: string): Promise<void> {
  const root = await rootFolder(draft);
  const args = [
    'build',
    '-buildvcs=false',
    '-trimpath',
    '-ldflags',
    '-s -w',
    '-o',
    path.join(root, 'pause'),
    '.',
  ];
  const env = { ...process.env, CGO_ENABLED: '0', GOOS: 'linux' };
  const built = spawnSync('go', args, { cwd: PAUSE_SOURCES, env, encoding: 'utf8' });
  if (built.status !== 0)
    throw new Error(`go build failed: ${built.error?.message ?? built.stderr}`);
  const config = { Entrypoint: ['/pause'], User: '65535:65535' };
  await packImage(draft, root, { name: 'pause', tag, config });
}

async function makeApp(draft: string, tag: string): Promise<void> {
  const all = await rootFolder(draft);
  const packages = path.join(draft, 'packages');
  unpackPackages(await fetchPackages(APP_PACKAGES, packages), all);
  const root = await rootFolder(draft);
  for (const folder of [
    'bin',
    'etc',
    'tmp',
    'run',
    'proc',
    'sys',
    'dev',
    'data',
    'app',
    'usr/local/bin',
  ]) {
    await mkdir(path.join(root, folder), { recursive: true });
  }
  for (const folder of ['tmp', 'data']) await chmod(path.join(root, folder), 0o1777);
  await cp(process.execPath, path.join(all, 'usr/bin/node'), { dereference: true });
  for (const program of ['/usr/bin/node', ...APP_PROGRAMS]) await copyProgram(all, root, program);
  await symlink('redis-check-rdb', path.join(root, 'usr/bin/redis-server'));
  await copyBusybox(all, root);
  const passwd = 'root:x:0:0:root:/tmp:/bin/sh\nnode:x:1000:1000::/tmp:/bin/sh\n';
  await writeFile(path.join(root, 'etc/passwd'), passwd);
  await writeFile(path.join(root, 'etc/group'), 'root:x:0:\nnode:x:1000:\n');
  await writeFile(path.join(root, 'etc/nsswitch.conf'), 'hosts: files dns\n');
  const config = { Entrypoint: ['node'], Env: ENVIRONMENT, WorkingDir: '/app', User: '1000:1000' };
  await packImage(draft, root, { name: 'app', tag, config });
  await rm(all, { recursive: true });
  await rm(packages, { recursive: true });
}

async function rootFolder(draft: string): Promise<string> {
  const folder = await mkdtemp(path.join(draft, 'root-'));
  await chmod(folder, 0o755);
  return folder;
}

/** A program and what the loader would load for it, asked in the file system that it comes from. */
async function copyProgram(from: string, to: string, program: string): Promise<void> {
  const loader = run('sh', [
    '-ec',
    'cd "$1"; ls lib64/ld-linux-*.so.2 lib/ld-linux-*.so.1 2>/dev/null || true',
    'loader',
    from,
  ])
    .split('\n')
    .find((name) => name !== '');
  if (loader === undefined) throw new Error(`no program loader in ${from}`);
  const listed = run('chroot', [from, `/${loader}`, '--list', program]);
  const libraries = [...listed.matchAll(/(?:=> )?(\/\S+) \(0x/g)].map(([, file = '']) => file);
  const names = [
    '/lib/x86_64-linux-gnu/libnss_dns.so.2',
    '/lib/x86_64-linux-gnu/libnss_files.so.2',
  ];
  for (const file of [program, `/${loader}`, ...libraries, ...names]) {
    const found = await realpath(path.join(from, file)).catch(() => undefined);
    // The libraries for names are part of the C library since 2.34.
    if (found === undefined) continue;
    await mkdir(path.dirname(path.join(to, file)), { recursive: true });
    await cp(found, path.join(to, file), { dereference: true });
  }
}

async function copyBusybox(from: string, to: string): Promise<void> {
  const program = path.join(to, 'bin/busybox');
  const [found] = await Promise.any(
    ['bin/busybox', 'usr/bin/busybox'].map(async (name) => [await realpath(path.join(from, name))]),
  );
  if (found === undefined) throw new Error('busybox-static brings no busybox');
  await cp(found, program);
  for (const name of run(program, ['--list']).trim().split('\n')) {
    if (name !== 'busybox') await symlink('busybox', path.join(to, 'bin', name));
  }
}

async function packImage(
  draft: string,
  root: string,
  image: {
    readonly name: string;
    readonly tag: string;
    readonly config: Readonly<Record<string, unknown>>;
  },
): Promise<void> {
  const layer = path.join(draft, `${image.name}.layer`);
  const sameForAll = ['--owner=0', '--group=0', '--numeric-owner', '--sort=name', '--mtime=@0'];
  run('tar', [...sameForAll, '-cf', layer, '-C', root, '.']);
  await writeImageFile(path.join(draft, `${image.name}.tar`), {
    tag: image.tag,
    layer,
    config: image.config,
  });
  await rm(layer);
  await rm(root, { recursive: true });
}
