// Builds the three images and keeps them under the cache folder for as long as what they are made of stays the same.
import { spawnSync } from 'node:child_process';
import { copyFile, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { readClusterConfig } from '../../test/cluster/config.ts';
import { hashOf, makeOnce, type Say } from '../../test/cluster/kept-folder.ts';
import { packBuildContext, type BuildContext } from './build-context.ts';
import { proxyArguments } from './config.ts';
import { openDocker, type Docker, type EngineChoice } from './docker.ts';
import { readSavedImage, type SavedImage } from './image-archive.ts';
import { openLocalBases, type LocalBase, type LocalBases } from './local-bases.ts';

const root = path.join(import.meta.dirname, '..', '..');

export const targets = ['sidecar', 'operator', 'redirect-init'] as const;
export type Target = (typeof targets)[number];

export interface BuildOptions {
  /** Folder for the archives. */
  readonly out: string;
  /** Makes both bases on this machine instead of pulling them. */
  readonly isLocalBase?: boolean;
  readonly engine?: EngineChoice;
  readonly say?: Say;
  /** Folder that keeps what was built; absent = the one of the cluster tests. */
  readonly home?: string;
}

export interface BuiltImage {
  readonly target: Target;
  readonly tag: string;
  /** As `docker save` writes it; `docker load`, `ctr images import` and `kind load image-archive` read it. */
  readonly archive: string;
  readonly bytes: number;
  /** Of all layers as a registry holds them, base included. */
  readonly compressedBytes: number;
  /** Of the layers that the sidecar's image has not. */
  readonly extraCompressedBytes: number;
}

export interface BuiltImages {
  readonly version: string;
  readonly images: Readonly<Record<Target, BuiltImage>>;
}

/** Rejects with the engine's complaint, or with what is missing to have one. */
export async function buildImages(options: BuildOptions): Promise<BuiltImages> {
  const { out, isLocalBase = false, say = () => undefined } = options;
  const home = options.home ?? readClusterConfig().home;
  const context = await packBuildContext(root);
  const bases = isLocalBase ? await openLocalBases(home, say) : undefined;
  const version = await readVersion();
  const revision = revisionOf(context.names);
  const tags = bases === undefined ? [] : [bases.build.tag, bases.runtime.tag];
  const folder = path.join(home, `images-${hashOf([context.hash, version, revision, ...tags])}`);
  const record = path.join(folder, 'images.json');
  await makeOnce({ folder, say }, record, async (draft) => {
    await using docker = await openDocker({ engine: options.engine ?? 'auto', home, say });
    await buildAll({ docker, context, version, revision, bases, say }, draft);
    const built = await describeAll(draft, version);
    await writeFile(path.join(draft, 'images.json'), JSON.stringify(built));
    await removeOld(home);
  });
  return copyOut(JSON.parse(await readFile(record, 'utf8')) as BuiltImages, folder, out);
}

function tagOf(target: Target, version: string): string {
  return `weir.dev/${target}:${version}`;
}

const KEPT_MS = 24 * 3_600_000;

/** Half a gigabyte each; what was made today may be about to be read. */
async function removeOld(home: string): Promise<void> {
  for (const name of await readdir(home)) {
    if (!/^images-[0-9a-f]+$/.test(name)) continue;
    const folder = path.join(home, name);
    const { mtimeMs } = await stat(folder);
    if (Date.now() - mtimeMs > KEPT_MS) await rm(folder, { recursive: true, force: true });
  }
}

interface Build {
  readonly docker: Docker;
  readonly context: BuildContext;
  readonly version: string;
  readonly revision: string;
  readonly bases: LocalBases | undefined;
  readonly say: Say;
}

async function buildAll(build: Build, folder: string): Promise<void> {
  const { docker, bases, say } = build;
  if (bases !== undefined) {
    await importBase(docker, bases.build);
    await importBase(docker, bases.runtime);
  }
  if (docker.isOwn) await buildStages(build);
  for (const target of targets) {
    const tag = tagOf(target, build.version);
    say(`building ${tag}`);
    await docker.run([...argumentsOf(build), '--target', target, '--tag', tag, '-'], {
      input: build.context.archive,
    });
    await docker.run(['save', tag], { outputFile: path.join(folder, `${target}.tar`) });
  }
  if (docker.isOwn) await docker.run(['image', 'prune', '--force']);
}

/** Under tags, so that the stages between are kept for the next build when what has no tag is removed. */
async function buildStages(build: Build): Promise<void> {
  for (const stage of ['build', 'build-redirect']) {
    build.say(`building the stage ${stage}`);
    await build.docker.run(
      [...argumentsOf(build), '--target', stage, '--tag', `weir.dev/stage-${stage}`, '-'],
      { input: build.context.archive },
    );
  }
}

async function importBase(docker: Docker, { archive, tag, changes }: LocalBase): Promise<void> {
  const isThere = await docker.run(['image', 'inspect', tag]).then(
    () => true,
    () => false,
  );
  if (isThere) return;
  await docker.run(['import', ...changes.flatMap((one) => ['--change', one]), archive, tag]);
}

function argumentsOf({ docker, version, revision, bases }: Build): readonly string[] {
  const values = {
    VERSION: version,
    REVISION: revision,
    ...(bases === undefined
      ? {}
      : { BUILD_BASE: bases.build.tag, RUNTIME_BASE: bases.runtime.tag }),
  };
  return [
    'build',
    // Our own engine has no bridge.
    ...(docker.isOwn ? ['--network', 'host'] : []),
    ...Object.entries(values).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]),
    ...proxyArguments(),
  ];
}

async function describeAll(folder: string, version: string): Promise<BuiltImages> {
  const sizes = new Map<string, number>();
  const sidecar = await readSavedImage(path.join(folder, 'sidecar.tar'), sizes);
  const describe = async (target: Target): Promise<BuiltImage> =>
    describeImage(target, await readSavedImage(path.join(folder, `${target}.tar`), sizes), {
      ...{ version, shared: new Set(sidecar.layers.map(({ id }) => id)) },
    });
  return {
    version,
    images: {
      sidecar: await describe('sidecar'),
      operator: await describe('operator'),
      'redirect-init': await describe('redirect-init'),
    },
  };
}

function describeImage(
  target: Target,
  { layers }: SavedImage,
  { version, shared }: { readonly version: string; readonly shared: ReadonlySet<string> },
): BuiltImage {
  const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);
  const extra = layers.filter(({ id }) => !shared.has(id));
  return {
    ...{ target, tag: tagOf(target, version), archive: `${target}.tar` },
    bytes: sum(layers.map(({ bytes }) => bytes)),
    compressedBytes: sum(layers.map(({ compressedBytes }) => compressedBytes)),
    extraCompressedBytes: sum(extra.map(({ compressedBytes }) => compressedBytes)),
  };
}

async function copyOut(built: BuiltImages, folder: string, out: string): Promise<BuiltImages> {
  await mkdir(out, { recursive: true });
  const copied = async (target: Target): Promise<BuiltImage> => {
    const image = built.images[target];
    const archive = path.join(path.resolve(out), image.archive);
    await copyFile(path.join(folder, image.archive), archive);
    return { ...image, archive };
  };
  return {
    ...built,
    images: {
      sidecar: await copied('sidecar'),
      operator: await copied('operator'),
      'redirect-init': await copied('redirect-init'),
    },
  };
}

async function readVersion(): Promise<string> {
  const manifest = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as {
    readonly version: string;
  };
  return manifest.version;
}

/** The last commit that changed what is built, so that other commits do not make other images. */
function revisionOf(names: readonly string[]): string {
  const git = (args: readonly string[]): string =>
    spawnSync('git', [...args, '--', ...names], { cwd: root, encoding: 'utf8' }).stdout.trim();
  const commit = git(['log', '-1', '--format=%H']);
  if (commit === '') return 'unknown';
  return git(['status', '--porcelain']) === '' ? commit : `${commit}-changed`;
}
