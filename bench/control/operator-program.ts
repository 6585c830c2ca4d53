// The operator as it is installed: the bundle, with what its first line hands to Node.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';

const build = path.join(import.meta.dirname, '..', '..', 'scripts', 'build.ts');

/** Builds it into `folder`; resolves with the arguments of `node` that start it. */
export async function buildOperator(folder: string): Promise<readonly string[]> {
  await promisify(execFile)(process.execPath, [build, '--out', folder], { timeout: 120_000 });
  const bundle = path.join(folder, 'weir.mjs');
  const [first = ''] = (await readFile(bundle, 'utf8')).split('\n', 1);
  return [...first.split(' ').filter((word) => word.startsWith('--')), bundle];
}
