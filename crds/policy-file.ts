// From the text of a file to policies. Pure: whoever calls reads the file. A text of any kind (empty, binary,
// huge, hostile) gets problems, never an exception.
import { isScalar, LineCounter, parseAllDocuments } from 'yaml';
import type { Document, YAMLError } from 'yaml';
import type { RateLimitPolicy } from './policy.ts';
import { NO_PLACE, problemAt } from './problem.ts';
import type { FieldPath, Finding, Place, Problem } from './problem.ts';
import { findFaults } from './validation.ts';
import { readDocument } from './yaml-document.ts';

/** UTF-16 units. The API server takes objects of up to 1.5 MiB (etcd); a file of policies is far smaller. */
export const FILE_MAX = 1_048_576;
/** Documents of one file, empty ones included. */
export const DOCUMENTS_MAX = 1_000;
/** Problems of one file; whoever has more fixes these first. */
export const PROBLEMS_MAX = 200;

export interface PolicyDocument {
  readonly policy: RateLimitPolicy;
  /** 1 = the first document of the file. */
  readonly document: number;
  /** Where a field is written, or its nearest ancestor that is. */
  readonly placeOf: (path: FieldPath) => Place;
}

export type PolicyFileOutcome =
  | { readonly kind: 'policies'; readonly documents: readonly PolicyDocument[] }
  | { readonly kind: 'problems'; readonly problems: readonly Problem[] };

/** Parses every document of `text`; `file` is the name that problems carry. */
export function parsePolicyFile(text: string, file: string): PolicyFileOutcome {
  const lines = new LineCounter();
  const parsed = unreadable(text) ?? parseDocuments(text, lines);
  if (!isDocuments(parsed)) return refused([problemAt({ ...START, file }, parsed)]);
  const outcomes = parsed
    .map((document, index) => ({ document, source: { file, lines, index: index + 1 } }))
    .filter(({ document }) => !isEmpty(document))
    .map(({ document, source }) => readPolicy(document, source));
  if (outcomes.length === 0) return refused([problemAt({ ...START, file }, EMPTY)]);
  const documents = outcomes.flatMap((read) => (read.kind === 'policy' ? [read.document] : []));
  const problems = outcomes.flatMap((read) => (read.kind === 'problems' ? read.problems : []));
  problems.push(...repeatedNames(documents));
  return problems.length === 0 ? { kind: 'policies', documents } : refused(problems);
}

function isDocuments(parsed: Documents | Finding): parsed is Documents {
  return Array.isArray(parsed);
}

/** Nothing, or nothing but comments: kubectl passes over it. */
function isEmpty({ contents, errors }: Document.Parsed): boolean {
  if (errors.length > 0) return false;
  return (
    contents === null || (isScalar(contents) && contents.source === '' && contents.type === 'PLAIN')
  );
}

type Documents = readonly Document.Parsed[];

const START: Place = { ...NO_PLACE, line: 1, column: 1 };

function refused(problems: readonly Problem[]): PolicyFileOutcome {
  return { kind: 'problems', problems: problems.slice(0, PROBLEMS_MAX) };
}

function fileFinding(message: string, advice: string): Finding {
  return { segments: [], message, advice, reason: 'syntax' };
}

const EMPTY = fileFinding('holds no policy', 'write a RateLimitPolicy');
const TOO_DEEP = fileFinding('is nested too deeply to be read', 'a policy needs a dozen levels');
const TOO_MANY = fileFinding(
  `holds more than ${String(DOCUMENTS_MAX)} documents`,
  'split it into several files',
);

// eslint-disable-next-line no-control-regex -- it looks for control characters
const CONTROL = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]/;

function unreadable(text: string): Finding | undefined {
  if (text.length > FILE_MAX) {
    const message = `has ${String(text.length)} characters, more than ${String(FILE_MAX)}`;
    return fileFinding(message, 'split it into several files');
  }
  // What YAML allows: tab, line ends, printable characters; U+FFFD is what bytes that are no UTF-8 were read as.
  const control = CONTROL.exec(text);
  if (control === null) return undefined;
  const message = `holds the character ${JSON.stringify(control[0])} at offset ${String(control.index)}, which is not text`;
  return fileFinding(message, 'write YAML or JSON in UTF-8');
}

function parseDocuments(text: string, lines: LineCounter): Documents | Finding {
  const documents = parseAllDocuments(text, {
    lineCounter: lines,
    schema: 'failsafe',
    version: '1.1',
    uniqueKeys: false,
    prettyErrors: false,
    strict: true,
  });
  if ('empty' in documents) return [];
  return documents.length > DOCUMENTS_MAX ? TOO_MANY : documents;
}

interface Source {
  readonly file: string;
  readonly lines: LineCounter;
  readonly index: number;
}

type DocumentOutcome =
  | { readonly kind: 'policy'; readonly document: PolicyDocument }
  | { readonly kind: 'problems'; readonly problems: readonly Problem[] };

function readPolicy(parsed: Document.Parsed, source: Source): DocumentOutcome {
  // Only the first: the others are mostly its consequences.
  const [fault] = parsed.errors;
  if (fault !== undefined) {
    const place = placeAt(source, fault.pos[0]);
    return { kind: 'problems', problems: [problemAt(place, syntaxFinding(fault))] };
  }
  const { value, findings, offsetOf } = readDocument(parsed);
  const placeOf = (path: FieldPath): Place => placeAt(source, offsetOf(path));
  const outcome = findings.length > 0 ? undefined : findFaults(value);
  if (outcome?.kind === 'valid') {
    return {
      kind: 'policy',
      document: { policy: outcome.policy, document: source.index, placeOf },
    };
  }
  const unsound = findings.map(({ finding, offset }) =>
    problemAt(placeAt(source, offset), finding),
  );
  const faults = outcome?.findings ?? [];
  const problems = faults.map((fault) => problemAt(placeOf(fault.segments), fault));
  return { kind: 'problems', problems: [...unsound, ...problems].sort(inSourceOrder) };
}

// The library composes nested nodes by recursion, and says so when its stack is at an end.
function syntaxFinding({ code, message }: YAMLError): Finding {
  if (code === 'RESOURCE_EXHAUSTION') return TOO_DEEP;
  return fileFinding(message, 'check quotes, brackets and indentation');
}

function placeAt({ file, lines, index }: Source, offset: number): Place {
  const { line, col } = lines.linePos(offset);
  return { file, document: index, line, column: col };
}

function inSourceOrder(a: Problem, b: Problem): number {
  return a.line - b.line || a.column - b.column;
}

/** Two documents of one name would share buckets; kubectl would silently keep the last. */
function repeatedNames(documents: readonly PolicyDocument[]): Problem[] {
  const seen = new Map<string, Place>();
  const problems: Problem[] = [];
  for (const { policy, placeOf } of documents) {
    const { name, namespace = 'default' } = policy.metadata;
    const identity = `${namespace}/${name}`;
    const place = placeOf(['metadata', 'name']);
    const first = seen.get(identity);
    if (first !== undefined) {
      const message = `${identity} is there twice, first at line ${String(first.line)}`;
      const advice = 'give each policy its own name';
      const segments = ['metadata', 'name'];
      problems.push(problemAt(place, { segments, message, advice, reason: 'value' }));
    }
    seen.set(identity, first ?? place);
  }
  return problems;
}
