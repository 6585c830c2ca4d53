// File systems made of Debian's packages, by this machine's own apt: fetched and unpacked, never installed, so that
// no script of theirs runs and nothing of the machine's own set of packages matters.
import { spawnSync } from 'node:child_process';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';

export interface FetchedPackage {
  readonly name: string;
  /** Its control file, for the lists of dpkg. */
  readonly control: string;
  readonly file: string;
}

/** The packages and all they need, into `folder`. Rejects with apt's words. */
export async function fetchPackages(
  names: readonly string[],
  folder: string,
): Promise<readonly FetchedPackage[]> {
  await mkdir(path.join(folder, 'partial'), { recursive: true });
  const status = path.join(folder, 'no-package-is-installed');
  await writeFile(status, '');
  const options = [
    `Dir::State::status=${status}`,
    `Dir::Cache::archives=${folder}`,
    // apt's own user may not enter our folder.
    ...(process.getuid?.() === 0 ? ['APT::Sandbox::User=root'] : []),
  ].flatMap((option) => ['-o', option]);
  const install = ['-y', '-qq', '--no-install-recommends', '--download-only', 'install', ...names];
  const attempt = (): number | null => spawnSync('apt-get', [...options, ...install]).status;
  // The lists of packages are older than what the archive holds, or were never fetched.
  if (attempt() !== 0) run('apt-get', ['update', '-qq']);
  run('apt-get', [...options, ...install]);
  const files = (await readdir(folder)).filter((name) => name.endsWith('.deb')).sort();
  return files.map((name) => {
    const file = path.join(folder, name);
    const control = run('dpkg-deb', ['-f', file]);
    return { file, control, name: /^Package: (\S+)$/m.exec(control)?.[1] ?? name };
  });
}

/** base-files first: where /lib is a link to /usr/lib, it brings the link. */
export function unpackPackages(packages: readonly FetchedPackage[], root: string): void {
  const ordered = packages.toSorted(
    (a, b) => Number(b.name === 'base-files') - Number(a.name === 'base-files'),
  );
  for (const { file } of ordered) {
    run('sh', [
      '-ec',
      'dpkg-deb --fsys-tarfile "$1" | tar -xp --keep-directory-symlink -C "$2"',
      'unpack',
      file,
      root,
    ]);
  }
}

/** Paths that a package has, as dpkg would list them. */
export function listPackage({ file }: FetchedPackage): string {
  const names = run('sh', ['-ec', 'dpkg-deb --fsys-tarfile "$1" | tar -t', 'list', file]).split(
    '\n',
  );
  const paths = names.map((name) => name.replace(/^\./, '').replace(/\/$/, ''));
  return `${['/.', ...paths.filter((one) => one !== '')].join('\n')}\n`;
}

export function run(command: string, args: readonly string[]): string {
  const ran = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 64 << 20 });
  if (ran.status === 0) return ran.stdout;
  const why = ran.error?.message ?? `status ${String(ran.status)}: ${ran.stderr.trim()}`;
  throw new Error(`${command} ${args.join(' ')} failed: ${why}`);
}
