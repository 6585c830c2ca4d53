// Runs inside the image build (see Dockerfile): lays out the files that are copied into the final images, with the
// list of contents and every licence's text. `--part weir` makes OUT/node and OUT/weir, `--part redirect` OUT/redirect.
import { execFileSync } from 'node:child_process';
import {
  chmod,
  cp,
  lstat,
  lutimes,
  mkdir,
  readdir,
  readFile,
  readlink,
  realpath,
  symlink,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { writeBillOfMaterials } from './bill-of-materials.ts';
import { packageFolders, readPackage, type Metafile } from './bundled-packages.ts';
import type { Component } from './component.ts';
import { closureOf, licencesOf, parsePackages, type DebianPackage } from './debian-packages.ts';

const root = path.join(import.meta.dirname, '..', '..');
const DOC = '/usr/share/doc';
const OURS = `${DOC}/weir`;
const LIBRARY = '/usr/local/lib/weir';
const NODE_PACKAGE = `node-linux-${process.arch}`;
/** Of Debian's packages: shared libraries, and of iptables the programs that `weir redirect` runs. No scripts. */
const TAKEN_FILES = [
  /^(\/usr)?\/lib\/.+\.so(\.[\d.]+)?$/,
  /^(\/usr)?\/sbin\/(xtables-(nft|legacy)-multi|ip6?tables-(nft|legacy)(-save|-restore)?)$/,
];

const { values } = parseArgs({
  options: {
    part: { type: 'string' },
    base: { type: 'string' },
    out: { type: 'string' },
    epoch: { type: 'string', default: '0' },
  },
});
const { part, base, out, epoch } = values;
if (base === undefined || out === undefined) throw new Error('give --base and --out');
const distribution = await readDistribution();
const installed = new Map(
  parsePackages(await readFile('/var/lib/dpkg/status', 'utf8')).map((one) => [one.name, one]),
);
const inBase = await readBasePackages(base);
const names = new Set(inBase.map(({ name }) => name));

if (part === 'weir') await assembleWeir(out);
else if (part === 'redirect') await assembleRedirect(out);
else throw new Error('--part is weir or redirect');

async function assembleWeir(target: string): Promise<void> {
  const [node, weir] = [path.join(target, 'node'), path.join(target, 'weir')];
  await copyNode(node);
  const packages = closureOf('libatomic1', installed, names);
  for (const one of packages) await copyPackage(one, node);
  await copyBundle(weir);
  await writeContents(weir, [
    ...(await npmComponents(weir)),
    ...(await debianComponents(inBase, base ?? '')),
    ...(await debianComponents(packages, '/')),
  ]);
  await finish(node);
  await finish(weir);
}

async function assembleRedirect(target: string): Promise<void> {
  const tree = path.join(target, 'redirect');
  const below = closureOf('libatomic1', installed, names);
  const packages = closureOf(
    'iptables',
    installed,
    new Set([...names, ...below.map(({ name }) => name)]),
  );
  for (const one of packages) await copyPackage(one, tree);
  const contents = await readContents(path.join(target, 'weir'));
  await writeContents(tree, [...contents, ...(await debianComponents(packages, '/'))]);
  await finish(tree);
}

async function copyNode(tree: string): Promise<void> {
  const from = path.join(root, 'node_modules', NODE_PACKAGE);
  await place(path.join(from, 'bin', 'node'), tree, '/usr/local/bin/node');
  await place(path.join(from, 'LICENSE'), tree, `${DOC}/node/copyright`);
}

async function copyBundle(tree: string): Promise<void> {
  const dist = path.join(root, 'dist');
  for (const name of await readdir(dist)) {
    if (name.endsWith('.mjs')) await place(path.join(dist, name), tree, `${LIBRARY}/${name}`);
  }
  await mkdir(path.join(tree, 'usr/local/bin'), { recursive: true });
  await symlink('../lib/weir/weir.mjs', path.join(tree, 'usr/local/bin/weir'));
  await place(path.join(root, 'LICENSE'), tree, `${OURS}/copyright`);
}

async function npmComponents(tree: string): Promise<readonly Component[]> {
  const metafile = JSON.parse(
    await readFile(path.join(root, 'dist', 'meta.json'), 'utf8'),
  ) as Metafile;
  const components = new Map<string, Component>();
  const ownTexts = path.join(import.meta.dirname, 'licence-texts');
  for (const folder of packageFolders(metafile)) {
    const { name, version, licence, licenceText } = await readPackage(
      path.join(root, folder),
      ownTexts,
    );
    const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
    const licenceFile = `${OURS}/npm/${name}-${version}.txt`;
    await placeText(licenceText, tree, licenceFile);
    components.set(purl, { kind: 'library', name, version, purl, licence, licenceFile });
  }
  return [...components.values(), await nodeComponent()];
}

async function nodeComponent(): Promise<Component> {
  const file = path.join(root, 'node_modules', NODE_PACKAGE, 'package.json');
  const { version, license } = JSON.parse(await readFile(file, 'utf8')) as Record<string, string>;
  if (version === undefined || license === undefined)
    throw new Error(`${file}: no version or licence`);
  return {
    ...{ kind: 'platform', name: 'node', version, licence: license },
    purl: `pkg:npm/${NODE_PACKAGE}@${version}`,
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    licenceFile: `${DOC}/node/copyright`,
  };
}

/** `where` is the root of the file system that the packages are in. */
async function debianComponents(
  packages: readonly DebianPackage[],
  where: string,
): Promise<readonly Component[]> {
  return Promise.all(packages.map(async (one) => debianComponent(one, where)));
}

async function debianComponent(
  { name, version, architecture }: DebianPackage,
  where: string,
): Promise<Component> {
  const file = path.join(where, DOC, name, 'copyright');
  // Packages of one source share a folder: one of them has the file, the others a link to the folder.
  const found = await realpath(file).catch(() => undefined);
  if (found === undefined) throw new Error(`Debian's ${name} ${version} comes without ${file}`);
  // What is added gets a file of its own instead of the link.
  const licenceFile =
    where === '/' ? `${DOC}/${name}/copyright` : path.join('/', path.relative(where, found));
  const { id, version: release } = distribution;
  const purl = `pkg:deb/${id}/${encodeURIComponent(name)}@${encodeURIComponent(version)}`;
  return {
    ...{ kind: 'library', name, version, licenceFile },
    purl: `${purl}?arch=${architecture}&distro=${id}-${release}`,
    licence: licencesOf(await readFile(found, 'utf8')) ?? `as ${licenceFile} says`,
  };
}

async function copyPackage({ name, paragraph }: DebianPackage, tree: string): Promise<void> {
  const files = execFileSync('dpkg-query', ['-L', name], { encoding: 'utf8' }).split('\n');
  for (const file of files.filter((one) => TAKEN_FILES.some((taken) => taken.test(one)))) {
    // Where /lib is a link to /usr/lib, a folder /lib of ours would stand in its place.
    const wanted = file.startsWith('/usr/') ? file : `/usr${file}`;
    await place(file, tree, wanted);
  }
  await placeText(
    await readFile(`${DOC}/${name}/copyright`, 'utf8'),
    tree,
    `${DOC}/${name}/copyright`,
  );
  await placeText(paragraph, tree, `/var/lib/dpkg/status.d/${name}`);
}

async function writeContents(tree: string, components: readonly Component[]): Promise<void> {
  const manifest = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as Record<
    string,
    string
  >;
  const { version = '', license = '' } = manifest;
  const subject: Component = {
    ...{ kind: 'application', name: 'weir', version, purl: `pkg:generic/weir@${version}` },
    ...{ licence: license, licenceFile: `${OURS}/copyright` },
  };
  await placeText(JSON.stringify(components), path.dirname(tree), `/${path.basename(tree)}.json`);
  await placeText(writeBillOfMaterials(subject, components), tree, `${OURS}/sbom.cdx.json`);
}

/** What an earlier part wrote about itself. */
async function readContents(tree: string): Promise<readonly Component[]> {
  return JSON.parse(await readFile(`${tree}.json`, 'utf8')) as readonly Component[];
}

async function readBasePackages(folder: string): Promise<readonly DebianPackage[]> {
  const dpkg = path.join(folder, 'var/lib/dpkg');
  const status = await readFile(path.join(dpkg, 'status'), 'utf8').catch(() => '');
  const listed = await readdir(path.join(dpkg, 'status.d')).catch(() => []);
  const texts = listed
    .filter((name) => !name.endsWith('.md5sums'))
    .sort()
    .map((name) => readFile(path.join(dpkg, 'status.d', name), 'utf8'));
  const packages = [status, ...(await Promise.all(texts))].flatMap(parsePackages);
  if (packages.length === 0) throw new Error('the runtime base lists no packages in /var/lib/dpkg');
  return packages;
}

async function readDistribution(): Promise<{ readonly id: string; readonly version: string }> {
  const text = await readFile('/etc/os-release', 'utf8');
  const field = (name: string): string =>
    new RegExp(`^${name}="?([^"\n]*)`, 'm').exec(text)?.[1] ?? '';
  return { id: field('ID'), version: field('VERSION_ID') };
}

async function place(from: string, tree: string, wanted: string): Promise<void> {
  const to = path.join(tree, wanted);
  await mkdir(path.dirname(to), { recursive: true });
  if ((await lstat(from)).isSymbolicLink()) await symlink(await readlink(from), to);
  else await cp(from, to);
}

async function placeText(text: string, tree: string, wanted: string): Promise<void> {
  const to = path.join(tree, wanted);
  await mkdir(path.dirname(to), { recursive: true });
  await writeFile(to, text);
}

/** Everybody may read and nobody write; one time for all. */
async function finish(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    const file = path.join(entry.parentPath, entry.name);
    if (entry.isSymbolicLink()) continue;
    const { mode } = await lstat(file);
    await chmod(file, entry.isDirectory() || (mode & 0o111) !== 0 ? 0o755 : 0o644);
  }
  const entries = await readdir(folder, { recursive: true });
  const time = Number(epoch);
  for (const name of [...entries.sort().reverse(), '.'])
    await lutimes(path.join(folder, name), time, time);
}
