// Which files hold the policies right now, and whether any of them has changed: a folder is read anew each time,
// because a ConfigMap is updated by swapping a symbolic link and editors save by renaming.
import type { Dirent } from 'node:fs';
import { opendir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';

/** One policy file, or a folder that gives none, as it was found. `identity` changes with every save; `text` is undefined when it was unreadable. */
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

/** Folders below each other; people nest three or four. */
export const MOST_DEPTH = 16;
/** Entries looked at below one path: nine of another kind for each policy file. */
export const MOST_ENTRIES: number = 10 * MOST_FILES;
/** Why a folder has no text; only the words, so that a start can tell it from a file that is not in order. */
export const EMPTY_FOLDER = 'is a folder that holds no policy file';

const POLICY_FILE = /\.(ya?ml|json)$/i;

/**
 * Reads every file below `paths`; files found in folders are sorted by path, so that the order never depends on the
 * disk. Never rejects: a folder that cannot be read, or holds no policy file, is an entry with a `failure`.
 */
export async function readPolicyFiles(paths: readonly string[]): Promise<readonly PolicyFile[]> {
  const files: PolicyFile[] = [];
  const seen = new Set<string>();
  for (const one of paths) {
    for (const listed of await list(one)) {
      const resolved = path.resolve(listed.file);
      if (seen.has(resolved)) continue;
      seen.add(resolved);
      files.push(files.length < MOST_FILES ? await open(listed) : tooMany(listed.file));
      if (files.length > MOST_FILES) return files;
    }
  }
  return files;
}

interface Listed {
  readonly file: string;
  readonly isNamed: boolean;
  /** Why this folder cannot be listed; undefined = a file, which is read. */
  readonly failure: string | undefined;
}

async function list(one: string): Promise<readonly Listed[]> {
  const found = await stat(one).catch(() => undefined);
  if (found?.isDirectory() !== true) return [{ file: one, isNamed: true, failure: undefined }];
  const walk = new Walk();
  await walk.visit(one, 0);
  const listed = walk.listed.toSorted((a, b) => compareText(a.file, b.file));
  return listed.length > 0 ? listed : [{ file: one, isNamed: true, failure: EMPTY_FOLDER }];
}

/** Visits each real folder once, so that a symbolic link to a folder above ends there. */
class Walk {
  readonly listed: Listed[] = [];
  readonly #visited = new Set<string>();
  #entries = 0;

  async visit(folder: string, depth: number): Promise<void> {
    try {
      const { dev, ino } = await stat(folder, { bigint: true });
      const identity = `${dev}:${ino}`;
      if (this.#visited.has(identity)) return;
      this.#visited.add(identity);
      const entries = await this.#entriesOf(folder);
      if (depth > MOST_DEPTH) {
        this.#fail(folder, `is more than ${MOST_DEPTH} folders deep`);
        return;
      }
      for (const entry of entries) await this.#meet(path.join(folder, entry.name), entry, depth);
    } catch (error) {
      // Removed, or replaced by a file, since its name was read: the next look finds what there is then.
      if (depth > 0 && isGone(error)) return;
      this.#fail(folder, `cannot be read: ${messageOf(error)}`);
    }
  }

  async #meet(file: string, entry: Dirent, depth: number): Promise<void> {
    if (POLICY_FILE.test(entry.name)) {
      this.listed.push({ file, isNamed: false, failure: undefined });
      return;
    }
    if (entry.isDirectory() || (entry.isSymbolicLink() && (await isFolder(file)))) {
      await this.visit(file, depth + 1);
    }
  }

  /** Sorted, so that a folder reached in two ways always has the same name. */
  async #entriesOf(folder: string): Promise<readonly Dirent[]> {
    const entries: Dirent[] = [];
    for await (const entry of await opendir(folder)) {
      this.#entries += 1;
      if (this.#entries > MOST_ENTRIES) {
        this.#fail(folder, `brings the entries looked at beyond ${MOST_ENTRIES}`);
        break;
      }
      // A mounted ConfigMap keeps its real files below `..data`; the visible names are links to them.
      if (!entry.name.startsWith('.')) entries.push(entry);
    }
    return entries.sort((a, b) => compareText(a.name, b.name));
  }

  #fail(folder: string, failure: string): void {
    this.listed.push({ file: folder, isNamed: false, failure });
  }
}

async function isFolder(file: string): Promise<boolean> {
  const found = await stat(file).catch(() => undefined);
  return found?.isDirectory() === true;
}

function isGone(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

// By code unit, the same in every locale.
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown reason';
}

function open({ file, isNamed, failure }: Listed): PolicyFile | Promise<PolicyFile> {
  if (failure === undefined) return read(file, isNamed);
  return { path: file, isNamed, identity: failure, modifiedMs: 0, text: undefined, failure };
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
    const failure = `cannot be read: ${messageOf(error)}`;
    return { path: file, isNamed, identity: failure, modifiedMs: 0, text: undefined, failure };
  }
}

function tooMany(file: string): PolicyFile {
  const failure = `is file number ${MOST_FILES + 1}; at most ${MOST_FILES} are read`;
  return { path: file, isNamed: false, identity: failure, modifiedMs: 0, text: undefined, failure };
}
