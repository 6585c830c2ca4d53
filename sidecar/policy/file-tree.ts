// Which files hold the policies right now, and whether any of them has changed: a folder is read anew each time,
// because a ConfigMap is updated by swapping a symbolic link and editors save by renaming.
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';

/** One policy file as it was found. `identity` changes with every save; `text` is undefined when it was unreadable. */
export interface PolicyFile {
  readonly path: string;
  /** Named on the command line, rather than found in a folder. */
  readonly isNamed: boolean;
  readonly identity: string;
  readonly modifiedMs: number;
  readonly text: string | undefined;
  /** Why `text` is undefined. */
  readonly failure: string | undefined;
}

/** A bundle of a thousand policies is far beyond what one pod can be subject to. */
export const MOST_FILES = 1_000;
/** A policy of every bound's size is below 1 MiB; anything larger is not a policy. */
export const MOST_FILE_BYTES: number = 2 * 1_048_576;

const POLICY_FILE = /\.(ya?ml|json)$/i;

/** Reads every file below `paths`; files found in folders are sorted by path, so that the order never depends on the disk. */
export async function readPolicyFiles(paths: readonly string[]): Promise<readonly PolicyFile[]> {
  const files: PolicyFile[] = [];
  const seen = new Set<string>();
  for (const one of paths) {
    for (const { file, isNamed } of await list(one)) {
      const resolved = path.resolve(file);
      if (seen.has(resolved)) continue;
      seen.add(resolved);
      files.push(files.length < MOST_FILES ? await read(file, isNamed) : tooMany(file));
      if (files.length > MOST_FILES) return files;
    }
  }
  return files;
}

interface Listed {
  readonly file: string;
  readonly isNamed: boolean;
}

async function list(one: string): Promise<readonly Listed[]> {
  const found = await stat(one).catch(() => undefined);
  if (found?.isDirectory() !== true) return [{ file: one, isNamed: true }];
  const names = await readdir(one, { recursive: true });
  return names
    .filter((name) => POLICY_FILE.test(name) && !isHidden(name))
    .sort()
    .map((name) => ({ file: path.join(one, name), isNamed: false }));
}

/** A mounted ConfigMap keeps its real files below `..data`; the visible names are links to them. */
function isHidden(name: string): boolean {
  return name.split(path.sep).some((part) => part.startsWith('.'));
}

async function read(file: string, isNamed: boolean): Promise<PolicyFile> {
  try {
    const found = await stat(file, { bigint: true });
    const modifiedMs = Number(found.mtimeNs / 1_000_000n);
    const identity = `${found.ino}.${found.mtimeNs}.${found.size}`;
    const base = { path: file, isNamed, identity, modifiedMs };
    if (!found.isFile()) return { ...base, text: undefined, failure: 'is not a file' };
    if (found.size > BigInt(MOST_FILE_BYTES)) {
      const failure = `is ${found.size} bytes; a policy file has at most ${MOST_FILE_BYTES}`;
      return { ...base, text: undefined, failure };
    }
    return { ...base, text: await readFile(file, 'utf8'), failure: undefined };
  } catch (error) {
    const failure = `cannot be read: ${error instanceof Error ? error.message : 'unknown reason'}`;
    return { path: file, isNamed, identity: failure, modifiedMs: 0, text: undefined, failure };
  }
}

function tooMany(file: string): PolicyFile {
  const failure = `is file number ${MOST_FILES + 1}; at most ${MOST_FILES} are read`;
  return { path: file, isNamed: false, identity: failure, modifiedMs: 0, text: undefined, failure };
}
