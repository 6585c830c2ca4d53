// Reads what `docker save` wrote: the configuration of an image, and how large its layers are on the way to a node.
import { createReadStream } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { Readable, Writable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { extract } from 'tar-stream';

export interface SavedImage {
  readonly tags: readonly string[];
  readonly layers: readonly SavedLayer[];
  readonly config: ImageConfig;
}

export interface SavedLayer {
  /** Its digest: images share layers by it. */
  readonly id: string;
  readonly bytes: number;
  /** As a registry would hold it. */
  readonly compressedBytes: number;
}

export interface ImageConfig {
  readonly architecture: string;
  readonly config: {
    readonly User?: string;
    readonly Env?: readonly string[];
    readonly Cmd?: readonly string[];
    readonly Entrypoint?: readonly string[];
    readonly Labels?: Readonly<Record<string, string>>;
    readonly Healthcheck?: unknown;
    readonly ExposedPorts?: Readonly<Record<string, unknown>>;
  };
  readonly history?: readonly { readonly created_by?: string }[];
  readonly rootfs: { readonly diff_ids: readonly string[] };
}

/** Sizes of layers by digest, so that a shared one is compressed once. */
export type LayerSizes = Map<string, number>;

export async function readSavedImage(
  file: string,
  sizes: LayerSizes = new Map(),
): Promise<SavedImage> {
  const { tags, config, layerNames } = await readSavedConfig(file);
  const wanted = new Map(
    layerNames.map((name, index) => [name, config.rootfs.diff_ids[index] ?? name]),
  );
  return { tags, config, layers: await measureLayers(file, wanted, sizes) };
}

/** What the image says of itself; its layers are not looked into, which takes seconds. */
export async function readSavedConfig(file: string): Promise<SavedConfig> {
  const documents = await readDocuments(file);
  const [manifest] = JSON.parse(documents.get('manifest.json') ?? '[]') as readonly Manifest[];
  if (manifest === undefined) throw new Error(`${file} is no image as docker save writes it`);
  const config = JSON.parse(documents.get(manifest.Config) ?? '') as ImageConfig;
  return { tags: manifest.RepoTags ?? [], config, layerNames: manifest.Layers };
}

export interface SavedConfig {
  readonly tags: readonly string[];
  readonly config: ImageConfig;
  readonly layerNames: readonly string[];
}

interface Manifest {
  readonly Config: string;
  readonly RepoTags?: readonly string[];
  readonly Layers: readonly string[];
}

/** Larger entries are layers. */
const DOCUMENT_BYTES_MAX = 1_048_576;

async function readDocuments(file: string): Promise<ReadonlyMap<string, string>> {
  const documents = new Map<string, string>();
  const archive = createReadStream(file).pipe(extract());
  for await (const entry of archive) {
    const { name, size, type } = entry.header;
    if (type !== 'file' || size > DOCUMENT_BYTES_MAX) entry.resume();
    else documents.set(name, (await buffer(entry)).toString('utf8'));
  }
  return documents;
}

async function measureLayers(
  file: string,
  wanted: ReadonlyMap<string, string>,
  sizes: LayerSizes,
): Promise<readonly SavedLayer[]> {
  const layers = new Map<string, SavedLayer>();
  const archive = createReadStream(file).pipe(extract());
  for await (const entry of archive) {
    const id = wanted.get(entry.header.name);
    if (id === undefined || entry.header.type !== 'file') {
      entry.resume();
      continue;
    }
    const known = sizes.get(id);
    const compressedBytes = known ?? (await gzippedSize(entry));
    if (known !== undefined) entry.resume();
    sizes.set(id, compressedBytes);
    layers.set(entry.header.name, { id, bytes: entry.header.size, compressedBytes });
  }
  return [...wanted.keys()].flatMap((name) => layers.get(name) ?? []);
}

async function gzippedSize(stream: AsyncIterable<unknown>): Promise<number> {
  let bytes = 0;
  const counter = new Writable({
    write(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      done();
    },
  });
  await pipeline(Readable.from(stream), createGzip(), counter);
  return bytes;
}
