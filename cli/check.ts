// `weir check FILE…`: says of each policy what it means, or of each mistake where it is and what would be right.
import { createCelCompiler } from '../crds/cel-environment.ts';
import type { CelCompiler } from '../crds/cel-environment.ts';
import { compilePolicy } from '../crds/compile.ts';
import { conflictsOf } from '../crds/conflicts.ts';
import type { Conflict } from '../crds/conflicts.ts';
import { describePolicy } from '../crds/describe.ts';
import { freshStarts, policyName } from '../crds/identity.ts';
import type { FreshStart } from '../crds/identity.ts';
import { parsePolicyFile } from '../crds/policy-file.ts';
import type { PolicyDocument } from '../crds/policy-file.ts';
import { notesOn } from '../crds/notes.ts';
import { NO_PLACE, problemAt } from '../crds/problem.ts';
import type { Problem } from '../crds/problem.ts';
import type { CompiledPolicy } from '../contract/bundle.ts';
import { readPolicyFiles } from '../sidecar/policy/file-tree.ts';
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
  /** What is in order but hardly meant so, one sentence each. */
  readonly notes: readonly string[];
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
  for (const { path, text, failure } of await readPolicyFiles(paths)) {
    if (text === undefined) {
      problems.push(unreadable(path, failure ?? 'cannot be read'));
      continue;
    }
    sources.set(path, text);
    const outcome = parsePolicyFile(text, path);
    if (outcome.kind === 'problems') problems.push(...outcome.problems);
    else documents.push(...outcome.documents.map((document) => ({ ...document, file: path })));
  }
  return { documents, problems, sources };
}

function unreadable(file: string, message: string): Problem {
  const advice = 'name a readable policy file, or a folder of *.yaml, *.yml and *.json';
  return problemAt({ ...NO_PLACE, file }, { segments: [], message, advice, reason: 'syntax' });
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
  const notes = notesOn(policy);
  if (old === undefined) return { file, name, description, notes };
  const before = old.documents.find((candidate) => policyName(candidate.policy) === name);
  return { file, name, description, notes, freshStarts: freshStarts(before?.policy, policy) };
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
