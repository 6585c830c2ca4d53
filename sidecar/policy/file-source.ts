// Bundles from policy files, reloaded on every change. The last good version of each file stays in force.
import { type FSWatcher, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { Bundle } from '../../contract/bundle.ts';
import { WeirError } from '../../contract/errors.ts';
import { NO_PLACE, problemAt, type Problem } from '../../crds/problem.ts';
import { EMPTY_FOLDER, type PolicyFile, readPolicyFiles } from './file-tree.ts';
import { PolicySet, type PolicyUpdate, type Surroundings } from './policy-set.ts';

/** Editors write in several steps; a reload in the middle would report a mistake nobody made. */
const SETTLE_MS = 50;
/** Changes in folders below, on network file systems and in some containers are not reported: look anyway. */
const LOOK_EVERY_MS = 2_000;

export interface FileSourceOptions {
  readonly paths: readonly string[];
  readonly surroundings: Surroundings;
  /** What was in force before this process started: stands in for files that are not in order, even at the start. */
  readonly inherited?: Bundle | undefined;
  /** Called once before `openFileSource` returns, then on every change that was accepted at least in part. */
  readonly onBundle: (update: PolicyUpdate) => void | Promise<void>;
  /** Problems of a reload; the files keep their last good version. */
  readonly onProblems: (problems: readonly Problem[]) => void;
}

/**
 * Reads the policies and watches them until disposed.
 * Throws POLICY_INVALID with `problems` when any file is not in order at the start and nothing was inherited.
 */
export async function openFileSource(options: FileSourceOptions): Promise<AsyncDisposable> {
  const set = new PolicySet(options.surroundings, options.inherited);
  const files = await readPolicyFiles(options.paths);
  const first = set.update(files);
  const isEmpty = files.every((file) => file.failure === EMPTY_FOLDER);
  if (first === undefined || (isEmpty && options.inherited === undefined)) {
    throw new WeirError('POLICY_UNREADABLE', {
      paths: options.paths,
      advice: 'a folder needs at least one *.yaml, *.yml or *.json',
    });
  }
  const { problems, bundle } = first;
  if (problems.length > 0) {
    if (options.inherited === undefined) throw new WeirError('POLICY_INVALID', { problems });
    options.onProblems(problems);
  }
  await options.onBundle(first);
  return new FileSource(options, set, bundle).start();
}

class FileSource implements AsyncDisposable {
  readonly #options: FileSourceOptions;
  readonly #set: PolicySet;
  #version: string;
  #watchers: FSWatcher[] = [];
  #settling: NodeJS.Timeout | undefined;
  #looking: NodeJS.Timeout | undefined;
  #reload: Promise<void> = Promise.resolve();
  #isQueued = false;
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
      // Not recursive: node's own recursion throws out of reach when a folder turns into a file.
      const watcher = watch(folder, { persistent: false }, () => {
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
    if (this.#isQueued) return;
    this.#isQueued = true;
    this.#reload = this.#reload.then(() => this.#readAgain());
  };

  /** Never rejects: what fails here is reported, and what is in force stays. */
  async #readAgain(): Promise<void> {
    this.#isQueued = false;
    try {
      await this.#update(await readPolicyFiles(this.#options.paths));
    } catch (error) {
      const message = `cannot be put into force: ${error instanceof Error ? error.message : String(error)}`;
      const place = { ...NO_PLACE, file: this.#options.paths.join(' ') };
      const advice = 'undo the last change to the policies, and report this';
      const finding = { segments: [], message, advice, reason: 'value' } as const;
      this.#options.onProblems([problemAt(place, finding)]);
    }
  }

  async #update(files: readonly PolicyFile[]): Promise<void> {
    if (this.#isDisposed) return;
    const update = this.#set.update(files);
    if (update === undefined) return;
    if (update.problems.length > 0) this.#options.onProblems(update.problems);
    if (update.bundle.version === this.#version) return;
    await this.#options.onBundle(update);
    this.#version = update.bundle.version;
  }
}
