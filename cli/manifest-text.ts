// Manifests as text that is changed in places and otherwise printed as it was: comments, order and quotes of people
// are theirs. A text that begins with `{` is JSON and stays JSON.
import { Document, isSeq, LineCounter, parseAllDocuments, visit } from 'yaml';
import { problemAt, type Problem } from '../crds/problem.ts';
import type { JsonPatchOperation } from '../operator/kube/api.ts';

/** What is there twice is written twice: an anchor is for people to set. */
const PLAIN = { aliasDuplicateObjects: false } as const;

export interface ManifestDocument {
  readonly value: unknown;
  /** `path` leads to what the operations are about. */
  change(path: readonly (string | number)[], operations: readonly JsonPatchOperation[]): void;
}

export interface Manifest {
  readonly documents: readonly ManifestDocument[];
  print(): string;
}

export type ReadManifest =
  | { readonly kind: 'manifest'; readonly manifest: Manifest }
  | { readonly kind: 'unreadable'; readonly problem: Problem };

/** `file` is the name that a problem carries. */
export function readManifest(text: string, file: string): ReadManifest {
  const lines = new LineCounter();
  const options = { keepSourceTokens: true, prettyErrors: false, lineCounter: lines };
  const parsed = parseAllDocuments(text, options);
  if (!Array.isArray(parsed)) return { kind: 'manifest', manifest: new TextManifest(text, []) };
  for (const [index, document] of parsed.entries()) {
    const fault = faultOf(document);
    if (fault === undefined) continue;
    const { line, col: column } = lines.linePos(fault.offset);
    const place = { file, document: index + 1, line, column };
    const problem = problemAt(place, { segments: [], reason: 'syntax', ...fault.words });
    return { kind: 'unreadable', problem };
  }
  let end = 0;
  const documents = parsed.map((document) => {
    const start = end;
    end = document.range[2];
    return new TextDocument(document, text.slice(start, end));
  });
  return { kind: 'manifest', manifest: new TextManifest(text.slice(end), documents) };
}

interface Fault {
  readonly offset: number;
  readonly words: { readonly message: string; readonly advice: string };
}

/** Only the first: the others are mostly its consequences. */
function faultOf(document: Document.Parsed): Fault | undefined {
  const [error] = document.errors;
  if (error !== undefined) {
    const advice = 'check quotes, brackets and indentation';
    return { offset: error.pos[0], words: { message: error.message, advice } };
  }
  const alias = aliasFault(document);
  if (alias === undefined) return undefined;
  const advice = 'define an anchor before its alias, and write out what contains itself';
  return { offset: document.range[0], words: { message: alias, advice } };
}

/** What aliases can do is seen only when they are followed: an anchor that is missing, too much of one, or a circle. */
function aliasFault(document: Document.Parsed): string | undefined {
  try {
    JSON.stringify(document.toJS());
    return undefined;
  } catch (error) {
    if (error instanceof ReferenceError) return error.message;
    if (error instanceof TypeError) return 'An anchor contains an alias of itself';
    throw error;
  }
}

class TextManifest implements Manifest {
  readonly documents: readonly TextDocument[];
  readonly #tail: string;

  constructor(tail: string, documents: readonly TextDocument[]) {
    this.#tail = tail;
    this.documents = documents;
  }

  print(): string {
    const parts = this.documents.map((document, index) => document.print(index > 0));
    return `${parts.join('')}${this.#tail}`;
  }
}

class TextDocument implements ManifestDocument {
  readonly value: unknown;
  readonly #source: string;
  #document: Document;
  #isChanged = false;

  constructor(document: Document, source: string) {
    this.#document = document;
    this.#source = source;
    this.value = document.toJS();
  }

  change(path: readonly (string | number)[], operations: readonly JsonPatchOperation[]): void {
    // A change inside of what an anchor names would show at its aliases as well.
    if (!this.#isChanged && hasAlias(this.#document))
      this.#document = new Document(this.value, PLAIN);
    this.#isChanged = true;
    for (const operation of operations) apply(this.#document, path, operation);
  }

  print(isFollowing: boolean): string {
    if (!this.#isChanged) return this.#source;
    if (this.#source.trimStart().startsWith('{')) {
      return `${JSON.stringify(this.#document.toJS(), undefined, 2)}\n`;
    }
    const { directives } = this.#document;
    const hasStart = isFollowing || /^---\s*$/m.test(this.#source);
    if (hasStart && directives !== undefined) directives.docStart = true;
    // Long strings stay in one line, and lists are indented as the author does it.
    const indentSeq = !/^( *)[\w.-]+:[ \t]*\n\1- /m.test(this.#source);
    return this.#document.toString({ lineWidth: 0, indentSeq });
  }
}

function hasAlias(document: Document): boolean {
  let found = false;
  visit(document, {
    Alias: () => {
      found = true;
      return visit.BREAK;
    },
  });
  return found;
}

function apply(
  document: Document,
  prefix: readonly (string | number)[],
  operation: JsonPatchOperation,
): void {
  const path = [...prefix, ...pathOf(operation.path)];
  if (operation.op === 'remove') {
    document.deleteIn(path);
    return;
  }
  const list: unknown = document.getIn(path.slice(0, -1), true);
  const node = document.createNode(operation.value, PLAIN);
  if (operation.op === 'add' && isSeq(list)) {
    const last = path.at(-1);
    list.items.splice(last === '-' ? list.items.length : Number(last), 0, node);
    return;
  }
  document.setIn(path, node);
}

/** RFC 6901. Numbers stay text: the YAML library finds list elements by either. */
function pathOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}
