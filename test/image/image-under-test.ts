// What the image suites look into: containers of the built images, and the files of one image.
import { createReadStream } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import path from 'node:path';
import process from 'node:process';
import { extract } from 'tar-stream';
import { openDocker, type Docker } from '../../scripts/images/docker.ts';
import { buildImages, type BuiltImages } from '../../scripts/images/build-images.ts';
import { readClusterConfig } from '../cluster/config.ts';

export interface ImagesUnderTest extends AsyncDisposable {
  readonly built: BuiltImages;
  readonly docker: Docker;
}

/** Built on bases made here: a registry may be out of reach. */
export async function openImages(out: string): Promise<ImagesUnderTest> {
  const say = (sentence: string): void => {
    process.stdout.write(`images: ${sentence}\n`);
  };
  const built = await buildImages({ out, isLocalBase: true, say });
  const docker = await openDocker({ engine: 'auto', home: readClusterConfig().home, say });
  for (const { archive } of Object.values(built.images))
    await docker.run(['load', '--input', archive]);
  return { built, docker, [Symbol.asyncDispose]: async () => docker[Symbol.asyncDispose]() };
}

export interface ImageEntry {
  readonly mode: number;
  readonly uid: number;
  readonly type: string;
  readonly contents: Buffer;
}

/** Every file that a container of the image has, by its absolute path. */
export async function filesOf(
  { docker }: ImagesUnderTest,
  image: string,
  folder: string,
): Promise<ReadonlyMap<string, ImageEntry>> {
  const container = (await docker.run(['create', image])).trim();
  const archive = path.join(folder, 'exported.tar');
  await docker.run(['export', container], { outputFile: archive });
  await docker.run(['rm', container]);
  const files = new Map<string, ImageEntry>();
  const entries = createReadStream(archive).pipe(extract());
  for await (const entry of entries) {
    const { name, mode, uid, type } = entry.header;
    const absolute = path.join('/', name.replace(/\/$/, ''));
    files.set(absolute, { mode, uid, type, contents: await buffer(entry) });
  }
  return files;
}

/** Made by the engine for every container; no file of the image. */
export const OF_THE_ENGINE: readonly string[] = [
  ...['/.dockerenv', '/dev/console', '/dev/pts', '/dev/shm'],
  ...['/etc/hostname', '/etc/hosts', '/etc/mtab', '/etc/resolv.conf'],
];
