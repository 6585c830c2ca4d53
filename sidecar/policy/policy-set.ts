// The policies of a set of files, each file with its last good version: a mistake in one file is reported, and
// neither takes that file's rules out of force nor touches the others.
import type { Bundle, CompiledPolicy } from '../../contract/bundle.ts';
import { bundleOf, compilePolicy } from '../../crds/compile.ts';
import { matchesLabels } from '../../crds/label-match.ts';
import { parsePolicyFile, type PolicyDocument } from '../../crds/policy-file.ts';
import { NO_PLACE, problemAt, type Problem } from '../../crds/problem.ts';
import type { PolicyFile } from './file-tree.ts';

/** What a sidecar without operator is told about the pod it stands for. */
export interface Surroundings {
  /** Undefined = policies of every namespace. */
  readonly namespace: string | undefined;
  /** Undefined = every selector matches. */
  readonly labels: Readonly<Record<string, string>> | undefined;
  /** Compared with `spec.ports`. */
  readonly port: number;
  /** `<kind>.<name>`, lower-case kind. */
  readonly workload: string | undefined;
  readonly replicas: number;
}

export interface PolicyUpdate {
  readonly bundle: Bundle;
  /** Problems found in files that changed with this update. */
  readonly problems: readonly Problem[];
  /** `<namespace>/<name>` of policies that were read but are for other pods. */
  readonly elsewhere: readonly string[];
}

interface FileState {
  readonly identity: string;
  readonly policies: readonly CompiledPolicy[];
  readonly elsewhere: readonly string[];
}

export class PolicySet {
  readonly #surroundings: Surroundings;
  #files: ReadonlyMap<string, FileState> = new Map();
  /** Highest generation given to a policy so far, by `<namespace>/<name>`. */
  readonly #generations = new Map<string, number>();

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
  }

  /** Undefined when nothing has changed since the last call. */
  update(files: readonly PolicyFile[]): PolicyUpdate | undefined {
    if (!this.#hasChanged(files)) return undefined;
    const problems: Problem[] = [];
    const next = new Map<string, FileState>();
    for (const file of files) next.set(file.path, this.#read(file, next, problems));
    this.#files = next;
    const states = [...next.values()];
    return {
      bundle: bundleOf(states.flatMap((state) => state.policies)),
      problems,
      elsewhere: states.flatMap((state) => state.elsewhere),
    };
  }

  #hasChanged(files: readonly PolicyFile[]): boolean {
    if (files.length !== this.#files.size) return true;
    return files.some((file) => this.#files.get(file.path)?.identity !== file.identity);
  }

  #read(file: PolicyFile, before: ReadonlyMap<string, FileState>, problems: Problem[]): FileState {
    const known = this.#files.get(file.path);
    if (known?.identity === file.identity) return known;
    const outcome = this.#parse(file, before);
    if (outcome.kind === 'read') return { ...outcome, identity: file.identity };
    problems.push(...outcome.problems);
    return { policies: [], elsewhere: [], ...known, identity: file.identity };
  }

  #parse(file: PolicyFile, before: ReadonlyMap<string, FileState>): ReadOutcome {
    if (file.text === undefined) return refused(wholeFile(file, file.failure ?? 'cannot be read'));
    const parsed = parsePolicyFile(file.text, file.path);
    if (parsed.kind === 'problems') return parsed;
    const repeated = findRepeated(parsed.documents, before);
    if (repeated.length > 0) return { kind: 'problems', problems: repeated };
    return this.#compile(file, parsed.documents);
  }

  #compile(file: PolicyFile, documents: readonly PolicyDocument[]): ReadOutcome {
    const applying = documents.filter((document) => this.#applies(document));
    const policies: CompiledPolicy[] = [];
    const problems: Problem[] = [];
    for (const document of applying) {
      const compiled = this.#compileOne(file, document);
      if (compiled.kind === 'compiled') policies.push(compiled.policy);
      else problems.push(...compiled.problems);
    }
    if (problems.length > 0) return { kind: 'problems', problems };
    for (const policy of policies) {
      this.#generations.set(`${policy.namespace}/${policy.name}`, policy.generation);
    }
    const elsewhere = documents.filter((document) => !applying.includes(document)).map(nameOf);
    return { kind: 'read', policies, elsewhere };
  }

  #compileOne(file: PolicyFile, document: PolicyDocument): ReturnType<typeof compilePolicy> {
    const name = nameOf(document);
    const { workload, replicas } = this.#surroundings;
    const compiled = compilePolicy(document.policy, {
      uid: `file/${name}`,
      generation: Math.max(1, file.modifiedMs, (this.#generations.get(name) ?? 0) + 1),
      replicas,
      ...(workload === undefined ? {} : { workload }),
    });
    if (compiled.kind === 'compiled') return compiled;
    const placed = compiled.problems.map((problem) => ({
      ...problem,
      ...document.placeOf(problem.segments),
    }));
    return { kind: 'problems', problems: placed };
  }

  #applies({ policy }: PolicyDocument): boolean {
    const { namespace, labels, port } = this.#surroundings;
    const { selector, ports } = policy.spec;
    if (namespace !== undefined && (policy.metadata.namespace ?? 'default') !== namespace) {
      return false;
    }
    if (labels !== undefined && !matchesLabels(selector, labels)) return false;
    return ports === undefined || ports.includes(port);
  }
}

type ReadOutcome =
  | { readonly kind: 'problems'; readonly problems: readonly Problem[] }
  | ({ readonly kind: 'read' } & Omit<FileState, 'identity'>);

function nameOf({ policy: { metadata } }: PolicyDocument): string {
  return `${metadata.namespace ?? 'default'}/${metadata.name}`;
}

/** Two files that define one policy would take its buckets from each other with every reload. */
function findRepeated(
  documents: readonly PolicyDocument[],
  before: ReadonlyMap<string, FileState>,
): Problem[] {
  return documents.flatMap((document) => {
    const name = nameOf(document);
    const other = [...before].find(([, state]) =>
      state.policies.some((policy) => `${policy.namespace}/${policy.name}` === name),
    );
    if (other === undefined) return [];
    const segments = ['metadata', 'name'];
    const message = `${name} is defined in ${other[0]} too`;
    const advice = 'keep it in one file, or give it another name';
    return [problemAt(document.placeOf(segments), { segments, message, advice, reason: 'value' })];
  });
}

function refused(problem: Problem): ReadOutcome {
  return { kind: 'problems', problems: [problem] };
}

function wholeFile(file: PolicyFile, message: string): Problem {
  const advice = 'name a readable policy file, or a folder of *.yaml, *.yml and *.json';
  return problemAt(
    { ...NO_PLACE, file: file.path },
    { segments: [], message, advice, reason: 'syntax' },
  );
}
