// Both bases of the images, made on this machine from Debian's packages where no registry can be reached: for tests.
// The runtime base has what distroless' `cc` has. The build base carries this machine's npm, its certificates and the
// Node.js of the checkout; nothing of it gets into an image but what the Dockerfile copies.
import { createHash } from 'node:crypto';
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { hashOf, makeOnce, type Say } from '../../test/cluster/kept-folder.ts';
import { npmProgram, searchPath } from './config.ts';
import {
  fetchPackages,
  listPackage,
  run,
  unpackPackages,
  type FetchedPackage,
} from './debian-root.ts';

export interface LocalBase {
  /** A root file system, for `docker import`. */
  readonly archive: string;
  readonly tag: string;
  /** Instructions that `docker import` adds. */
  readonly changes: readonly string[];
}

export interface LocalBases {
  readonly build: LocalBase;
  readonly runtime: LocalBase;
}

const RUNTIME_NEEDS = [
  'libc6',
  'libgcc-s1',
  'libstdc++6',
  'base-files',
  'tzdata',
  'netbase',
  'ca-certificates',
];
/** Of what apt brings along, scripts of installation that never run; distroless leaves them out, too. */
const RUNTIME_HAS =
  /^(libc6|libgcc-s1|gcc-\d+-base|libstdc\+\+6|base-files|tzdata|netbase|ca-certificates)$/;
const BUILD_NEEDS = [
  ...['base-files', 'dash', 'coreutils', 'dpkg', 'grep', 'sed', 'libc-bin'],
  ...['libatomic1', 'libstdc++6', 'iptables', 'netbase'],
];
const NPM = '/usr/local/lib/node_modules/npm';
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const LAYOUT_VERSION = '1';

/** Kept under `home`; delete the folder `bases-…` to have newer packages. */
export async function openLocalBases(home: string, say: Say): Promise<LocalBases> {
  const npm = await findNpm();
  const parts = [LAYOUT_VERSION, process.arch, process.version, ...BUILD_NEEDS, ...RUNTIME_NEEDS];
  const release = await readFile('/etc/os-release', 'utf8').catch(() => '');
  const folder = path.join(home, `bases-${hashOf([...parts, release, npm.version, npm.settings])}`);
  const [build, runtime] = ['build', 'runtime'].map((name) => path.join(folder, `${name}.tar`));
  if (build === undefined || runtime === undefined) throw new Error('two bases');
  await makeOnce({ folder, say }, runtime, async (draft) => {
    say('making the bases of the images from Debian packages');
    await makeBuildBase(draft, npm);
    await makeRuntimeBase(draft);
  });
  return {
    build: {
      ...{ archive: build, tag: `weir.dev/build-base:${await digestOf(build)}` },
      changes: [
        `ENV NODE_EXTRA_CA_CERTS=${CERTIFICATES}`,
        'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      ],
    },
    runtime: {
      ...{ archive: runtime, tag: `weir.dev/runtime-base:${await digestOf(runtime)}` },
      changes: ['USER 65532', 'ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt'],
    },
  };
}

interface Npm {
  readonly folder: string;
  readonly version: string;
  /** Where this machine's npm looks for packages; its credentials stay where they are. */
  readonly settings: string;
}

async function findNpm(): Promise<Npm> {
  const given = npmProgram() ?? '';
  const program = given.endsWith('npm-cli.js') ? given : await npmOnPath();
  const folder = path.dirname(path.dirname(await realpath(program)));
  const { version } = JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8')) as {
    readonly version: string;
  };
  const registry = run(process.execPath, [
    path.join(folder, 'bin/npm-cli.js'),
    'config',
    'get',
    'registry',
  ]);
  return { folder, version, settings: `registry=${registry.trim()}\ncafile=${CERTIFICATES}\n` };
}

async function npmOnPath(): Promise<string> {
  for (const folder of searchPath()) {
    const found = await realpath(path.join(folder, 'npm')).catch(() => undefined);
    if (found?.endsWith('npm-cli.js') === true) return found;
  }
  throw new Error('no npm on the PATH: the build base needs one');
}

async function digestOf(file: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(file))
    .digest('hex')
    .slice(0, 12);
}

async function makeBuildBase(draft: string, npm: Npm): Promise<void> {
  await using root = await folderFor(draft, 'build');
  const packages = await fetchPackages(BUILD_NEEDS, path.join(draft, 'build-packages'));
  unpackPackages(packages, root.path);
  await writeDpkgDatabase(packages, root.path);
  await writeCommonFiles(root.path, 'root:x:0:0:root:/root:/bin/sh\n');
  await cp(process.execPath, path.join(root.path, 'usr/local/bin/node'), { dereference: true });
  await cp(npm.folder, path.join(root.path, NPM), { recursive: true });
  await symlink(`${NPM}/bin/npm-cli.js`, path.join(root.path, 'usr/local/bin/npm'));
  await mkdir(path.join(root.path, 'usr/local/etc'), { recursive: true });
  await writeFile(path.join(root.path, 'usr/local/etc/npmrc'), npm.settings);
  await mkdir(path.dirname(path.join(root.path, CERTIFICATES)), { recursive: true });
  await cp(CERTIFICATES, path.join(root.path, CERTIFICATES), { dereference: true });
  await packRoot(root.path, path.join(draft, 'build.tar'));
  await rm(path.join(draft, 'build-packages'), { recursive: true });
}

async function makeRuntimeBase(draft: string): Promise<void> {
  await using root = await folderFor(draft, 'runtime');
  const fetched = await fetchPackages(RUNTIME_NEEDS, path.join(draft, 'runtime-packages'));
  const packages = fetched.filter(({ name }) => RUNTIME_HAS.test(name));
  unpackPackages(packages, root.path);
  for (const { name, control } of packages) {
    const file = path.join(root.path, 'var/lib/dpkg/status.d', name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, control);
  }
  await writeCommonFiles(root.path, 'root:x:0:0:root:/root:/sbin/nologin\n');
  await writeCertificates(root.path);
  // Documents but for licences; and the programs of these packages, which are scripts.
  for (const folder of ['man', 'lintian', 'bug', 'locale']) {
    await rm(path.join(root.path, 'usr/share', folder), { recursive: true, force: true });
  }
  for (const folder of ['usr/sbin', 'usr/lib/mime', 'etc/update-motd.d', 'etc/profile.d', 'root']) {
    await rm(path.join(root.path, folder), { recursive: true, force: true });
  }
  await packRoot(root.path, path.join(draft, 'runtime.tar'));
  await rm(path.join(draft, 'runtime-packages'), { recursive: true });
}

async function folderFor(
  draft: string,
  name: string,
): Promise<{ readonly path: string } & AsyncDisposable> {
  const folder = await mkdtemp(path.join(draft, `${name}-`));
  await chmod(folder, 0o755);
  return {
    path: folder,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** As if dpkg had installed them: the build asks it which files a package has. */
async function writeDpkgDatabase(packages: readonly FetchedPackage[], root: string): Promise<void> {
  const folder = path.join(root, 'var/lib/dpkg');
  await mkdir(path.join(folder, 'info'), { recursive: true });
  await mkdir(path.join(folder, 'updates'), { recursive: true });
  const paragraphs = packages.map(({ control }) =>
    control.replace(/^Package: .*$/m, (line) => `${line}\nStatus: install ok installed`),
  );
  await writeFile(
    path.join(folder, 'status'),
    `${paragraphs.map((one) => one.trim()).join('\n\n')}\n`,
  );
  await writeFile(path.join(folder, 'info/format'), '1\n');
  for (const one of packages) {
    // Packages of which two architectures may be installed are listed with theirs.
    const isSame = /^Multi-Arch: same$/m.test(one.control);
    const architecture = /^Architecture: (\S+)$/m.exec(one.control)?.[1] ?? 'all';
    const name = isSame ? `${one.name}:${architecture}` : one.name;
    await writeFile(path.join(folder, 'info', `${name}.list`), listPackage(one));
  }
}

async function writeCommonFiles(root: string, passwd: string): Promise<void> {
  const nonroot = 'nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n';
  await mkdir(path.join(root, 'etc'), { recursive: true });
  await writeFile(path.join(root, 'etc/passwd'), passwd + nonroot);
  await writeFile(path.join(root, 'etc/group'), 'root:x:0:\nnonroot:x:65532:\n');
  await writeFile(path.join(root, 'etc/nsswitch.conf'), 'hosts: files dns\n');
  for (const folder of ['tmp', 'usr/local/bin', 'home/nonroot', 'proc', 'sys', 'dev', 'run']) {
    await mkdir(path.join(root, folder), { recursive: true });
  }
  await chmod(path.join(root, 'tmp'), 0o1777);
}

/** Mozilla's, as the package brings them: this machine's own additions stay here. */
async function writeCertificates(root: string): Promise<void> {
  const folder = path.join(root, 'usr/share/ca-certificates/mozilla');
  const names = (await readdir(folder)).sort();
  const texts = await Promise.all(names.map((name) => readFile(path.join(folder, name), 'utf8')));
  await mkdir(path.dirname(path.join(root, CERTIFICATES)), { recursive: true });
  await writeFile(path.join(root, CERTIFICATES), texts.join(''));
}

async function packRoot(root: string, archive: string): Promise<void> {
  const sameForAll = ['--owner=0', '--group=0', '--numeric-owner', '--sort=name', '--mtime=@0'];
  run('tar', [...sameForAll, '-cf', archive, '-C', root, '.']);
}
