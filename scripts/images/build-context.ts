// What the image build reads: the names that .dockerignore lets through, packed in order and without times, so that
// the same sources give the same bytes.
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pack } from 'tar-stream';

export interface BuildContext {
  /** A tar archive for `docker build -`. */
  readonly archive: Buffer;
  readonly hash: string;
  /** What is in it, as paths below the root of the repository. */
  readonly names: readonly string[];
}

export async function packBuildContext(root: string): Promise<BuildContext> {
  const names = allowedNames(await readFile(path.join(root, '.dockerignore'), 'utf8'));
  const files = (await Promise.all(names.map((name) => filesBelow(root, name)))).flat();
  const archive = pack();
  const bytes = buffer(archive);
  for (const name of ['.dockerignore', 'Dockerfile', ...files].sort()) {
    archive.entry({ name, mode: 0o644, mtime: new Date(0) }, await readFile(path.join(root, name)));
  }
  archive.finalize();
  const packed = await bytes;
  return {
    archive: packed,
    hash: createHash('sha256').update(packed).digest('hex'),
    names: ['Dockerfile', ...names],
  };
}

/** The names behind exclamation marks. Throws where the file does not begin by leaving everything out. */
export function allowedNames(dockerignore: string): readonly string[] {
  const lines = dockerignore.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  if (lines[0] !== '*') throw new Error('.dockerignore must begin with *: what goes in is listed');
  return lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1));
}

async function filesBelow(root: string, name: string): Promise<readonly string[]> {
  const whole = path.join(root, name);
  if (!(await stat(whole)).isDirectory()) return [name];
  const entries = await readdir(whole, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.test.ts'))
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)));
}
