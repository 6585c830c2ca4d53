// Bundles from policy files, reloaded on every change. The last good version of each file stays in force.
import { type FSWatcher, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { Bundle } from '../../contract/bundle.ts';
import { WeirError } from '../../contract/errors.ts';
import type { Problem } from '../../crds/problem.ts';
import { readPolicyFiles } from './file-tree.ts';
import { PolicySet, type PolicyUpdate, type Surroundings } from './policy-set.ts';

/** Editors write in several steps; a reload in the middle would report a mistake nobody made. */
const SETTLE_MS = 50;
/** Network file systems and some containers report no changes: look anyway. */
const LOOK_EVERY_MS = 2_000;

export interface FileSourceOptions {
  readonly paths: readonly string[];
  readonly surroundings: Surroundings;
  /** Called once before `openFileSource` returns, then on every change that was accepted at least in part. */
  readonly onBundle: (update: PolicyUpdate) => void | Promise<void>;
  /** Problems of a reload; the files keep their last good version. */
  readonly onProblems: (problems: readonly Problem[]) => void;
}

/**
 * Reads the policies and watches them until disposed.
 * Throws POLICY_INVALID with `problems` when any file is not in order at the start.
 */
export async function openFileSource(options: FileSourceOptions): Promise<AsyncDisposable> {
  const set = new PolicySet(options.surroundings);
  const first = set.update(await readPolicyFiles(options.paths));
  const problems = first?.problems ?? [];
  if (problems.length > 0) throw new WeirError('POLICY_INVALID', { problems });
  if (first === undefined) {
    throw new WeirError('POLICY_UNREADABLE', {
      paths: options.paths,
      advice: 'a folder needs at least one *.yaml, *.yml or *.json',
    });
  }
  await options.onBundle(first);
  return new FileSource(options, set, first.bundle).start();
}

class FileSource implements AsyncDisposable {
  readonly #options: FileSourceOptions;
  readonly #set: PolicySet;
  #version: string;
  #watchers: FSWatcher[] = [];
  #settling: NodeJS.Timeout | undefined;
  #looking: NodeJS.Timeout | undefined;
  #reload: Promise<void> = Promise.resolve();
  #isDisposed = false;

  constructor(options: FileSourceOptions, set: PolicySet, bundle: Bundle) {
    this.#options = options;
    this.#set = set;
    this.#version = bundle.version;
  }

  async start(): Promise<this> {
    for (const one of this.#options.paths) await this.#watch(one);
    this.#looking = setInterval(this.#look, LOOK_EVERY_MS).unref();
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    clearTimeout(this.#settling);
    clearInterval(this.#looking);
    for (const watcher of this.#watchers) watcher.close();
    await this.#reload;
  }

  /** A file is watched through its folder: a rename onto it would leave a watch on the old file behind. */
  async #watch(one: string): Promise<void> {
    const found = await stat(one).catch(() => undefined);
    const folder = found?.isDirectory() === true ? one : path.dirname(one);
    try {
      const watcher = watch(folder, { recursive: folder === one, persistent: false }, () => {
        this.#settling ??= setTimeout(this.#look, SETTLE_MS);
      });
      // The folder is gone, or its file system reports nothing: the regular look finds what there is.
      watcher.on('error', () => {
        watcher.close();
      });
      this.#watchers.push(watcher);
    } catch {
      // No more inotify watches on this machine: the regular look serves.
    }
  }

  readonly #look = (): void => {
    clearTimeout(this.#settling);
    this.#settling = undefined;
    this.#reload = this.#reload.then(() => this.#readAgain());
  };

  async #readAgain(): Promise<void> {
    const files = await readPolicyFiles(this.#options.paths);
    if (this.#isDisposed) return;
    const update = this.#set.update(files);
    if (update === undefined) return;
    if (update.problems.length > 0) this.#options.onProblems(update.problems);
    if (update.bundle.version === this.#version) return;
    this.#version = update.bundle.version;
    await this.#options.onBundle(update);
  }
}
