// Folders under WEIR_CLUSTER_HOME that are made once and reused for as long as what they are made of stays the same.
import { createHash } from 'node:crypto';
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { lockFile } from './file-lock.ts';

export type Say = (sentence: string) => void;

interface Shelf {
  readonly folder: string;
  readonly say: Say;
}

/** Runs `make` in a draft folder that becomes `folder` whole or not at all; two runs at once make it once. */
export async function makeOnce(
  { folder, say }: Shelf,
  result: string,
  make: (draft: string) => Promise<void>,
): Promise<void> {
  if (await exists(result)) return;
  await mkdir(path.dirname(folder), { recursive: true });
  await using stack = new AsyncDisposableStack();
  const onWait = (owner: number): void => {
    say(`process ${owner} is making ${path.basename(folder)}; waiting for it`);
  };
  stack.use(await lockFile(`${folder}.lock`, onWait));
  if (await exists(result)) return;
  const draft = await mkdtemp(`${folder}.`);
  try {
    await make(draft);
    await rm(folder, { recursive: true, force: true });
    await rename(draft, folder);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

/** Short enough for a folder's name. */
export function hashOf(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16);
}
