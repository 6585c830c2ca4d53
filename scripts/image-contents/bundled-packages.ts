// The npm packages whose code is in the bundle, as esbuild's metafile tells, with the texts of their licences.
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

export interface Metafile {
  readonly outputs: Readonly<
    Record<
      string,
      { readonly inputs: Readonly<Record<string, { readonly bytesInOutput: number }>> }
    >
  >;
}

/** Folders of packages that gave at least a byte, sorted: `node_modules/a/node_modules/@b/c`. */
export function packageFolders(metafile: Metafile): readonly string[] {
  const folders = new Set<string>();
  for (const { inputs } of Object.values(metafile.outputs)) {
    for (const [file, { bytesInOutput }] of Object.entries(inputs)) {
      const folder = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file)?.[0];
      if (folder !== undefined && bytesInOutput > 0) folders.add(folder);
    }
  }
  return [...folders].sort();
}

export interface NpmPackage {
  readonly name: string;
  readonly version: string;
  readonly licence: string;
  readonly licenceText: string;
}

/** Throws for a package that does not say its licence, or comes without its text where we have none either. */
export async function readPackage(folder: string, ownTexts: string): Promise<NpmPackage> {
  const manifest = JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8')) as {
    readonly name: string;
    readonly version: string;
    readonly license?: string;
  };
  const { name, version, license } = manifest;
  if (typeof license !== 'string' || license === '') {
    throw new Error(`${name} ${version} names no licence: leave it out, or ask its author`);
  }
  const own = path.join(ownTexts, `${name.replace('/', '__')}.txt`);
  const licenceText = (await textsIn(folder)) ?? (await readFile(own, 'utf8').catch(() => ''));
  if (licenceText === '') {
    throw new Error(
      `${name} ${version} (${license}) comes without the text of its licence: put it into ${own}`,
    );
  }
  return { name, version, licence: license, licenceText };
}

async function textsIn(folder: string): Promise<string | undefined> {
  const names = (await readdir(folder)).filter((name) =>
    /^((un)?licen[cs]e|copying|notice)/i.test(name),
  );
  if (!names.some((name) => !/^notice/i.test(name))) return undefined;
  const texts = names.sort().map((name) => readFile(path.join(folder, name), 'utf8'));
  return (await Promise.all(texts)).join('\n\n');
}
