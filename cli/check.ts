// `weir check FILE…`: says of each policy what it means, or of each mistake where it is and what would be right.
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createCelCompiler } from '../crds/cel-environment.ts';
import type { CelCompiler } from '../crds/cel-environment.ts';
import { compilePolicy } from '../crds/compile.ts';
import { conflictsOf } from '../crds/conflicts.ts';
import type { Conflict } from '../crds/conflicts.ts';
import { describePolicy } from '../crds/describe.ts';
import { freshStarts, policyName } from '../crds/identity.ts';
import type { FreshStart } from '../crds/identity.ts';
import { FILE_MAX, parsePolicyFile } from '../crds/policy-file.ts';
import type { PolicyDocument } from '../crds/policy-file.ts';
import { NO_PLACE, problemAt } from '../crds/problem.ts';
import type { Problem } from '../crds/problem.ts';
import type { CompiledPolicy } from '../contract/bundle.ts';
import { renderJson, renderText } from './check-report.ts';

export interface CheckOptions {
  readonly output: 'text' | 'json';
  /** A file or folder with the policies as they are in force now. */
  readonly against?: string;
  readonly colour: boolean;
  readonly write: (text: string) => void;
  readonly writeError: (text: string) => void;
}

export interface CheckedPolicy {
  readonly file: string;
  readonly name: string;
  readonly description: string;
  /** Present when a version to compare with was given. */
  readonly freshStarts?: readonly FreshStart[];
}

export interface CheckReport {
  readonly policies: readonly CheckedPolicy[];
  readonly problems: readonly Problem[];
  readonly conflicts: readonly Conflict[];
  /** Text of the files that have problems, by name. */
  readonly sources: ReadonlyMap<string, string>;
}

/** Checks files and folders (`*.yaml`, `*.yml`, `*.json`). Gives the exit code: 0 in order, 1 not. */
export async function runCheck(files: readonly string[], options: CheckOptions): Promise<number> {
  const read = await readAll(files);
  const old = options.against === undefined ? undefined : await readAll([options.against]);
  const report = reportOf(read, old);
  if (options.output === 'json') options.write(renderJson(report));
  else renderText(report, options);
  return report.problems.length === 0 ? 0 : 1;
}

interface Read {
  readonly documents: readonly LocatedDocument[];
  readonly problems: readonly Problem[];
  readonly sources: ReadonlyMap<string, string>;
}

interface LocatedDocument extends PolicyDocument {
  readonly file: string;
}

async function readAll(paths: readonly string[]): Promise<Read> {
  const documents: LocatedDocument[] = [];
  const problems: Problem[] = [];
  const sources = new Map<string, string>();
  for (const path of paths) {
    const found = await filesOf(path);
    problems.push(...found.problems);
    for (const file of found.files) await readFileInto({ file, documents, problems, sources });
  }
  return { documents, problems, sources };
}

interface Found {
  readonly files: readonly string[];
  readonly problems: readonly Problem[];
}

const EXTENSIONS = ['.yaml', '.yml', '.json'];

async function filesOf(path: string): Promise<Found> {
  try {
    const found = await stat(path);
    if (!found.isDirectory()) return { files: [path], problems: [] };
    const names = (await readdir(path)).toSorted();
    const files = names.filter((name) => EXTENSIONS.some((extension) => name.endsWith(extension)));
    if (files.length > 0) return { files: files.map((name) => join(path, name)), problems: [] };
    return unreadable(path, 'holds no *.yaml, *.yml or *.json');
  } catch (error) {
    return unreadable(path, `cannot be read: ${reasonOf(error)}`);
  }
}

function unreadable(file: string, message: string): Found {
  const advice = 'name a file or folder with policies';
  const finding = { segments: [], message, advice, reason: 'syntax' } as const;
  return { files: [], problems: [problemAt({ ...NO_PLACE, file }, finding)] };
}

function reasonOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}

interface Reading {
  readonly file: string;
  readonly documents: LocatedDocument[];
  readonly problems: Problem[];
  readonly sources: Map<string, string>;
}

async function readFileInto({ file, documents, problems, sources }: Reading): Promise<void> {
  try {
    // A file that is not text is not worth its memory.
    const { size } = await stat(file);
    const text = size > 4 * FILE_MAX ? ' '.repeat(FILE_MAX + 1) : await readFile(file, 'utf8');
    sources.set(file, text);
    const outcome = parsePolicyFile(text, file);
    if (outcome.kind === 'problems') problems.push(...outcome.problems);
    else documents.push(...outcome.documents.map((document) => ({ ...document, file })));
  } catch (error) {
    problems.push(...unreadable(file, `cannot be read: ${reasonOf(error)}`).problems);
  }
}

function reportOf(read: Read, old: Read | undefined): CheckReport {
  const cel = createCelCompiler();
  const compiled = read.documents.map((document) => compileDocument(document, cel));
  const problems = [
    ...read.problems,
    ...(old?.problems ?? []),
    ...repeatedAcrossFiles(read.documents),
    ...compiled.flatMap((outcome) => outcome.problems),
  ];
  return {
    policies: compiled.flatMap(({ document, policy }) =>
      policy === undefined ? [] : [checkedPolicy(document, old)],
    ),
    problems,
    conflicts: conflictsOf(
      compiled.flatMap(({ policy }) => (policy === undefined ? [] : [policy])),
    ),
    sources: new Map([...(old?.sources ?? []), ...read.sources]),
  };
}

interface CompiledDocument {
  readonly document: LocatedDocument;
  readonly policy: CompiledPolicy | undefined;
  readonly problems: readonly Problem[];
}

// What only the cluster knows is taken as given: a workload, and a key set that the operator fetches.
function compileDocument(document: LocatedDocument, cel: CelCompiler): CompiledDocument {
  const uid = `file/${policyName(document.policy)}`;
  const known = { workload: 'deployment.any', keys: [] };
  const outcome = compilePolicy(document.policy, {
    cel,
    uid,
    generation: 1,
    replicas: 1,
    ...known,
  });
  if (outcome.kind === 'compiled') return { document, policy: outcome.policy, problems: [] };
  const problems = outcome.problems.map((problem) => ({
    ...problem,
    ...document.placeOf(problem.segments),
  }));
  return { document, policy: undefined, problems };
}

function checkedPolicy(document: LocatedDocument, old: Read | undefined): CheckedPolicy {
  const { policy, file } = document;
  const name = policyName(policy);
  const description = describePolicy(policy);
  if (old === undefined) return { file, name, description };
  const before = old.documents.find((candidate) => policyName(candidate.policy) === name);
  return { file, name, description, freshStarts: freshStarts(before?.policy, policy) };
}

function repeatedAcrossFiles(documents: readonly LocatedDocument[]): Problem[] {
  const first = new Map<string, string>();
  return documents.flatMap(({ policy, file, placeOf }) => {
    const name = policyName(policy);
    const other = first.get(name);
    first.set(name, other ?? file);
    if (other === undefined) return [];
    const segments = ['metadata', 'name'];
    const message = `${name} is already in ${other}`;
    const advice = 'give each policy its own name';
    return [problemAt(placeOf(segments), { segments, message, advice, reason: 'value' })];
  });
}
