// A problem is what somebody reads who wrote a policy: where, what was wrong, what would be right.
// It is never thrown: every part of crds/ that can refuse returns problems in a tagged union.

/**
 * What kind of fault it is. The operator derives the reason of `Accepted=False` from it:
 * `unknown-field` is `UnsupportedField`, `cel` is `InvalidCEL`, `too-large` is `TooLarge`.
 */
type ProblemReason = 'syntax' | 'unknown-field' | 'value' | 'cel' | 'reference' | 'too-large';

/** Names of fields and indexes of lists, outermost first. */
export type FieldPath = readonly (string | number)[];

export interface Problem {
  /** As it was named by the caller; empty for an object that does not come from a file. */
  readonly file: string;
  /** 1 = the first YAML document of the file; 0 = the file as a whole. */
  readonly document: number;
  /** 1-based; 0 when the object does not come from a text. */
  readonly line: number;
  /** 1-based, in UTF-16 units, as editors count; 0 when the object does not come from a text. */
  readonly column: number;
  /** `spec.rules[0].buckets[0].capacity`; empty for the document as a whole. */
  readonly path: string;
  readonly segments: FieldPath;
  /** What was wrong. */
  readonly message: string;
  /** What would be right. */
  readonly advice: string;
  readonly reason: ProblemReason;
  /** For an expression: its line and a second line with a caret under the fault. */
  readonly excerpt?: string;
}

/** A problem before its place in a text is known. */
export interface Finding {
  readonly segments: FieldPath;
  readonly message: string;
  readonly advice: string;
  readonly reason: ProblemReason;
  readonly excerpt?: string;
}

export interface Place {
  readonly file: string;
  readonly document: number;
  readonly line: number;
  readonly column: number;
}

/** The place of an object that does not come from a text. */
export const NO_PLACE: Place = { file: '', document: 0, line: 0, column: 0 };

/** Puts a finding at a place. */
export function problemAt(place: Place, finding: Finding): Problem {
  return { ...place, path: formatPath(finding.segments), ...finding };
}

/** `shop.yaml:3:12`; the file alone where there is no line to show. */
export function formatPlace({ file, line, column }: Place): string {
  return line === 0 ? file : `${file}:${String(line)}:${String(column)}`;
}

/** `['spec', 'rules', 0, 'name']` → `spec.rules[0].name`; names that are no identifiers are quoted in brackets. */
export function formatPath(segments: FieldPath): string {
  let text = '';
  for (const segment of segments) {
    if (typeof segment === 'number') text += `[${String(segment)}]`;
    else if (/^[A-Za-z_][A-Za-z0-9_-]*$/.test(segment))
      text += text === '' ? segment : `.${segment}`;
    else text += `[${JSON.stringify(segment)}]`;
  }
  return text;
}
