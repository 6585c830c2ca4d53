// An image of one layer, written without Docker in the form that `docker save` writes.
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import process from 'node:process';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';

export interface ImageFile {
  readonly tag: string;
  /** A tar archive of the root file system. */
  readonly layer: string;
  readonly config: Readonly<Record<string, unknown>>;
}

export async function writeImageFile(
  file: string,
  { tag, layer, config }: ImageFile,
): Promise<void> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(layer), hash);
  const document = JSON.stringify({
    ...{ architecture: process.arch === 'x64' ? 'amd64' : process.arch, os: 'linux', config },
    rootfs: { type: 'layers', diff_ids: [`sha256:${hash.digest('hex')}`] },
    history: [{ created_by: 'test/cluster/images' }],
  });
  const name = `${createHash('sha256').update(document).digest('hex')}.json`;
  const manifest = JSON.stringify([{ Config: name, RepoTags: [tag], Layers: ['layer.tar'] }]);
  const archive = pack();
  const written = pipeline(archive, createWriteStream(file));
  archive.entry({ name }, document);
  archive.entry({ name: 'manifest.json' }, manifest);
  const { size } = await stat(layer);
  await pipeline(createReadStream(layer), archive.entry({ name: 'layer.tar', size }));
  archive.finalize();
  await written;
}
