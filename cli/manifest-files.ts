// The files that `weir inject -f` names. All of them are read before anything is done with one, and each that is not in
// order is said, in the form in which `weir check` says it.
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { NO_PLACE, problemAt, type Problem } from '../crds/problem.ts';
import { renderProblems } from './check-report.ts';
import { readManifest, type Manifest } from './manifest-text.ts';

interface Manifests {
  readonly manifests: readonly Manifest[];
  /** Of each file that is not in order: where, what is wrong and what would be right. */
  readonly failures: readonly string[];
}

/** `names` are files, folders, or `-` for what `readInput` gives. */
export async function readManifests(
  names: readonly string[],
  readInput: () => Promise<string>,
): Promise<Manifests> {
  const manifests: Manifest[] = [];
  const failures: string[] = [];
  for (const { file, text, problem } of await readSources(names, readInput)) {
    const read =
      problem === undefined ? readManifest(text, file) : ({ kind: 'unreadable', problem } as const);
    if (read.kind === 'manifest') manifests.push(read.manifest);
    else failures.push(renderProblems([read.problem], new Map([[file, text]]), false));
  }
  return { manifests, failures };
}

interface Source {
  readonly file: string;
  readonly text: string;
  /** Why there is no text. */
  readonly problem?: Problem;
}

async function readSources(
  names: readonly string[],
  readInput: () => Promise<string>,
): Promise<readonly Source[]> {
  const sources: Source[] = [];
  for (const name of names) {
    if (name === '-') sources.push({ file: 'standard input', text: await readInput() });
    else sources.push(...(await readPath(name).catch(unreadable(name))));
  }
  return sources;
}

const EXTENSIONS = ['.yaml', '.yml', '.json'];

async function readPath(name: string): Promise<readonly Source[]> {
  if (!(await stat(name)).isDirectory()) return [await readSource(name)];
  const found = (await readdir(name)).toSorted();
  const files = found.filter((one) => EXTENSIONS.some((extension) => one.endsWith(extension)));
  if (files.length === 0) return [refused(name, 'is a folder that holds no manifest')];
  return Promise.all(files.map((one) => readSource(path.join(name, one))));
}

async function readSource(file: string): Promise<Source> {
  const text = await readFile(file, 'utf8').catch(unreadable(file));
  return typeof text === 'string' ? { file, text } : text[0];
}

function unreadable(file: string): (error: NodeJS.ErrnoException) => readonly [Source] {
  return (error) => [refused(file, `cannot be read: ${error.message}`)];
}

const ADVICE =
  'name a readable manifest, a folder of *.yaml, *.yml and *.json, or - (standard input)';

function refused(file: string, message: string): Source {
  const place = { ...NO_PLACE, file };
  const words = { message, advice: ADVICE };
  return {
    file,
    text: '',
    problem: problemAt(place, { segments: [], reason: 'syntax', ...words }),
  };
}
