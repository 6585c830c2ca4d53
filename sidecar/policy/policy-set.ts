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
  /** Of the application; compared with `spec.ports`. */
  readonly ports: readonly number[];
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

/** What a file gives, and what of it is in force. */
interface FileState {
  readonly identity: string;
  readonly policies: readonly CompiledPolicy[];
  readonly elsewhere: readonly string[];
  /** Whether any version of this file was accepted: `policies` and `elsewhere` are its last one. */
  readonly hasGood: boolean;
  /** Undefined = this version is accepted; else what was reported of it. It is judged again with every change. */
  readonly refusedFor: readonly string[] | undefined;
}

export class PolicySet {
  readonly #surroundings: Surroundings;
  #files: ReadonlyMap<string, FileState> = new Map();
  /** Highest generation given to a policy so far, by `<namespace>/<name>`. */
  readonly #generations = new Map<string, number>();
  #inForce: readonly CompiledPolicy[];

  /** `inherited`: what was in force before this process started; it stands in for files that are not in order. */
  constructor(surroundings: Surroundings, inherited?: Bundle) {
    this.#surroundings = surroundings;
    this.#inForce = inherited?.policies ?? [];
    // One less: the file that gave a policy its generation gives it the same one again.
    for (const policy of this.#inForce) this.#generations.set(keyOf(policy), policy.generation - 1);
  }

  /** Undefined when nothing has changed since the last call. */
  update(files: readonly PolicyFile[]): PolicyUpdate | undefined {
    if (!this.#hasChanged(files)) return undefined;
    const judged = files.map((file) => this.#judge(file));
    refuseRepeated(judged);
    const problems: Problem[] = [];
    this.#files = new Map(judged.map((one) => [one.file.path, this.#settle(one, problems)]));
    const states = [...this.#files.values()];
    const policies = states.flatMap((state) => state.policies);
    const bundle = bundleOf([...policies, ...this.#kept(states)]);
    this.#inForce = bundle.policies;
    return { bundle, problems, elsewhere: states.flatMap((state) => state.elsewhere) };
  }

  #hasChanged(files: readonly PolicyFile[]): boolean {
    if (files.length !== this.#files.size) return true;
    return files.some((file) => this.#files.get(file.path)?.identity !== file.identity);
  }

  /**
   * A file or folder that is not in order and never was may hold any of the policies that are in no file now:
   * they stay in force until it is put right, so that no mistake lifts a limit.
   */
  #kept(states: readonly FileState[]): readonly CompiledPolicy[] {
    if (states.every((state) => state.hasGood)) return [];
    const defined = new Set(states.flatMap(namesOf));
    return this.#inForce.filter((policy) => !defined.has(keyOf(policy)));
  }

  #judge(file: PolicyFile): Judged {
    const known = this.#files.get(file.path);
    if (known?.identity === file.identity && known.refusedFor === undefined) {
      return { file, known, outcome: { kind: 'unchanged' } };
    }
    return { file, known, outcome: this.#parse(file) };
  }

  #settle({ file, known, outcome }: Judged, problems: Problem[]): FileState {
    const { identity } = file;
    switch (outcome.kind) {
      case 'unchanged':
        return known ?? { ...NOTHING, identity };
      case 'read':
        for (const one of outcome.policies) this.#generations.set(keyOf(one), one.generation);
        return { ...outcome, identity, hasGood: true, refusedFor: undefined };
      case 'problems': {
        const before = known?.identity === identity ? (known.refusedFor ?? []) : [];
        const fresh = outcome.problems.filter((one) => !before.includes(one.message));
        problems.push(...fresh);
        const refusedFor = [...before, ...fresh.map((one) => one.message)];
        return { ...NOTHING, ...known, identity, refusedFor };
      }
    }
  }

  #parse(file: PolicyFile): ReadOutcome {
    if (file.text === undefined) return refused(wholeFile(file, file.failure ?? 'cannot be read'));
    const parsed = parsePolicyFile(file.text, file.path);
    if (parsed.kind === 'problems') return parsed;
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
    const elsewhere = documents.filter((document) => !applying.includes(document)).map(nameOf);
    return { kind: 'read', policies, elsewhere, documents };
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
    if (compiled.kind === 'compiled') {
      return { kind: 'compiled', policy: this.#restrict(compiled.policy, document) };
    }
    const placed = compiled.problems.map((problem) => ({
      ...problem,
      ...document.placeOf(problem.segments),
    }));
    return { kind: 'problems', problems: placed };
  }

  /** To the ports it is written for, where the application has others too. */
  #restrict(compiled: CompiledPolicy, { policy }: PolicyDocument): CompiledPolicy {
    const { ports: meant } = policy.spec;
    const ports = this.#surroundings.ports.filter((port) => meant?.includes(port) ?? true);
    return ports.length === this.#surroundings.ports.length ? compiled : { ...compiled, ports };
  }

  #applies({ policy }: PolicyDocument): boolean {
    const { namespace, labels, ports } = this.#surroundings;
    const { selector, ports: meant } = policy.spec;
    if (namespace !== undefined && (policy.metadata.namespace ?? 'default') !== namespace) {
      return false;
    }
    if (labels !== undefined && !matchesLabels(selector, labels)) return false;
    return meant === undefined || ports.some((port) => meant.includes(port));
  }
}

const NOTHING = { policies: [], elsewhere: [], hasGood: false, refusedFor: undefined } as const;

type ReadOutcome =
  | { readonly kind: 'problems'; readonly problems: readonly Problem[] }
  | {
      readonly kind: 'read';
      readonly policies: readonly CompiledPolicy[];
      readonly elsewhere: readonly string[];
      readonly documents: readonly PolicyDocument[];
    };

/** A file on its way into the set. */
interface Judged {
  readonly file: PolicyFile;
  readonly known: FileState | undefined;
  outcome: ReadOutcome | { readonly kind: 'unchanged' };
}

function keyOf({ namespace, name }: CompiledPolicy): string {
  return `${namespace}/${name}`;
}

function nameOf({ policy: { metadata } }: PolicyDocument): string {
  return `${metadata.namespace ?? 'default'}/${metadata.name}`;
}

function namesOf({ policies, elsewhere }: Pick<FileState, 'policies' | 'elsewhere'>): string[] {
  return [...policies.map(keyOf), ...elsewhere];
}

/**
 * Two files that define one policy would take its buckets from each other with every reload. All files are compared
 * as they would be in force, so that a document may move between two files in one save. A refusal brings the file's
 * last good version back, which may be in the way of others: one at a time, until nothing is defined twice.
 */
function refuseRepeated(judged: readonly Judged[]): void {
  for (;;) {
    const owners = findOwners(judged);
    const repeating = judged.filter((one) => findRepeated(one, owners).length > 0);
    const inTheWay = repeating.find((one) =>
      findRepeated(one, owners).some(({ owner }) => owner.outcome.kind !== 'read'),
    );
    const loser = inTheWay ?? repeating.at(-1);
    if (loser === undefined) return;
    const problems = findRepeated(loser, owners).map(describeRepeated);
    loser.outcome = { kind: 'problems', problems };
  }
}

/** By name: what stays as it was comes first, then the file that held the name before, then the order of the files. */
function findOwners(judged: readonly Judged[]): ReadonlyMap<string, Judged> {
  const owners = new Map<string, Judged>();
  const claim = (one: Judged, names: readonly string[]): void => {
    for (const name of names) if (!owners.has(name)) owners.set(name, one);
  };
  for (const one of judged) {
    if (one.outcome.kind !== 'read') claim(one, namesOf(one.known ?? NOTHING));
  }
  for (const one of judged) {
    if (one.outcome.kind !== 'read') continue;
    const before = new Set(namesOf(one.known ?? NOTHING));
    claim(
      one,
      namesOf(one.outcome).filter((name) => before.has(name)),
    );
  }
  for (const one of judged) if (one.outcome.kind === 'read') claim(one, namesOf(one.outcome));
  return owners;
}

interface Repeated {
  readonly document: PolicyDocument;
  readonly owner: Judged;
}

function findRepeated(one: Judged, owners: ReadonlyMap<string, Judged>): readonly Repeated[] {
  if (one.outcome.kind !== 'read') return [];
  return one.outcome.documents.flatMap((document) => {
    const owner = owners.get(nameOf(document));
    return owner === undefined || owner === one ? [] : [{ document, owner }];
  });
}

function describeRepeated({ document, owner }: Repeated): Problem {
  const segments = ['metadata', 'name'];
  const message = `${nameOf(document)} is defined in ${owner.file.path} too`;
  const advice = 'keep it in one file, or give it another name';
  return problemAt(document.placeOf(segments), { segments, message, advice, reason: 'value' });
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
