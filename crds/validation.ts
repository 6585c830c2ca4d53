// From an object of unknown shape to a policy, or to findings: every one that can be found in one pass. Unknown
// fields are refused here although the API server prunes them, because in a file they are misspelt ones.
import type * as z from 'zod';
import { messageOf } from './issue.ts';
import { API_GROUP, API_VERSION, KIND, policySchema } from './policy.ts';
import type { RateLimitPolicy } from './policy.ts';
import { NO_PLACE, problemAt } from './problem.ts';
import type { FieldPath, Finding, Problem } from './problem.ts';
import { nearestWord } from './spelling.ts';
import { childrenOf } from './schema-tree.ts';

export type ValidationOutcome =
  | { readonly kind: 'valid'; readonly policy: RateLimitPolicy }
  | { readonly kind: 'invalid'; readonly findings: readonly Finding[] };

export type PolicyOutcome =
  | { readonly kind: 'valid'; readonly policy: RateLimitPolicy }
  | { readonly kind: 'invalid'; readonly problems: readonly Problem[] };

/** Validates an object, e.g. from the API server. Takes any value and throws for none. */
export function validatePolicy(value: unknown): PolicyOutcome {
  const outcome = findFaults(value);
  if (outcome.kind === 'valid') return outcome;
  const problems = outcome.findings.map((finding) => problemAt(NO_PLACE, finding));
  return { kind: 'invalid', problems };
}

/** What the API server adds to an object beside what our schema knows. */
const SERVER_FIELDS = new Set([
  'status',
  'metadata.annotations',
  'metadata.creationTimestamp',
  'metadata.deletionGracePeriodSeconds',
  'metadata.deletionTimestamp',
  'metadata.finalizers',
  'metadata.generateName',
  'metadata.labels',
  'metadata.managedFields',
  'metadata.ownerReferences',
  'metadata.resourceVersion',
  'metadata.selfLink',
]);

/** Advice takes a look at the schema, and a list of a hundred thousand wrong items is one mistake. */
export const ISSUES_MAX = 1_000;

/** As `validatePolicy`, for callers that know the places of fields. */
export function findFaults(value: unknown): ValidationOutcome {
  const foreign = foreignKind(value);
  if (foreign !== undefined) return { kind: 'invalid', findings: [foreign] };
  const unknown: UnknownField[] = [];
  collectUnknown({ schema: policySchema, value, path: [], found: unknown });
  const result = policySchema.safeParse(withoutNulls(value), { reportInput: true });
  if (result.success && unknown.length === 0) return { kind: 'valid', policy: result.data };
  const meant = new Set(unknown.map(({ meantPath }) => meantPath));
  const issues = result.success
    ? []
    : result.error.issues.filter(
        (issue) => !isMeant(issue, meant) && !isSafeRange(issue) && !isForeignLength(issue),
      );
  const findings = issues.slice(0, ISSUES_MAX).map((issue) => messageOf(issue, policySchema));
  return { kind: 'invalid', findings: [...unknown.map(({ finding }) => finding), ...findings] };
}

/** A document of another kind gets one sentence instead of a list of everything it lacks. */
function foreignKind(value: unknown): Finding | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const message = `is ${typeName(value)}, not a policy`;
    return finding([], message, `begin with apiVersion: ${API_GROUP}/${API_VERSION}`);
  }
  const kind = fieldOf(value, 'kind');
  const apiVersion = fieldOf(value, 'apiVersion');
  if (typeof kind === 'string' && kind !== KIND) {
    const advice = `write kind: ${KIND}, and move other objects to files of their own`;
    return finding(['kind'], `${JSON.stringify(kind)} is not a kind that is read here`, advice);
  }
  const isOther = typeof apiVersion === 'string' && apiVersion !== `${API_GROUP}/${API_VERSION}`;
  if (!isOther) return undefined;
  const message = `${JSON.stringify(apiVersion)} is not a version that is read here`;
  return finding(['apiVersion'], message, `write apiVersion: ${API_GROUP}/${API_VERSION}`);
}

function finding(segments: FieldPath, message: string, advice: string): Finding {
  return { segments, message, advice, reason: 'value' };
}

function fieldOf(value: object, name: string): unknown {
  return Object.getOwnPropertyDescriptor(value, name)?.value;
}

function typeName(value: unknown): string {
  if (value === null || value === undefined) return 'empty';
  if (Array.isArray(value)) return 'a list';
  return `a ${typeof value}`;
}

interface UnknownField {
  readonly finding: Finding;
  /** Path of the field that was meant, as JSON: that it is missing need not be said as well. */
  readonly meantPath: string | undefined;
}

interface Walk {
  readonly schema: z.core.$ZodType;
  readonly value: unknown;
  readonly path: FieldPath;
  readonly found: UnknownField[];
}

function collectUnknown({ schema, value, path, found }: Walk): void {
  if (typeof value !== 'object' || value === null) return;
  const children = childrenOf(schema);
  // A list where an object is wanted has no fields to be misspelt, and the other way round.
  if (children?.isList !== Array.isArray(value)) return;
  for (const [name, child] of Object.entries(value)) {
    const segment = Array.isArray(value) ? Number(name) : name;
    const next = [...path, segment];
    const childSchema = children.of(segment);
    if (childSchema !== undefined) {
      collectUnknown({ schema: childSchema, value: child, path: next, found });
    } else if (!SERVER_FIELDS.has(next.join('.'))) {
      found.push(unknownField(next, name, [...children.fields.keys()]));
    }
  }
}

function unknownField(path: FieldPath, name: string, names: readonly string[]): UnknownField {
  const meant = nearestWord(name, names);
  const advice =
    meant === undefined ? `fields here: ${names.join(', ') || 'none'}` : `did you mean ${meant}?`;
  return {
    finding: { segments: path, message: 'is not a field', advice, reason: 'unknown-field' },
    meantPath: meant === undefined ? undefined : JSON.stringify([...path.slice(0, -1), meant]),
  };
}

/** zod's own bound of an integer; each of ours has a narrower one, which it reports as well. */
function isSafeRange(issue: z.core.$ZodIssue): boolean {
  if (issue.code === 'too_big') return issue.maximum === Number.MAX_SAFE_INTEGER;
  return issue.code === 'too_small' && issue.minimum === Number.MIN_SAFE_INTEGER;
}

/** zod also measures what is no list but has a length, a text say; that it is no list has been said. */
function isForeignLength({ code, input }: z.core.$ZodIssue): boolean {
  const isLength = code === 'too_big' || code === 'too_small';
  return isLength && typeof input !== 'number' && !Array.isArray(input);
}

function isMeant(issue: z.core.$ZodIssue, meant: ReadonlySet<string | undefined>): boolean {
  return issue.input === undefined && meant.has(JSON.stringify(issue.path));
}

/** The schema is less deep than this; what is deeper is unknown, and refused as such. */
const NESTING_MAX = 32;

/** A field that is null is absent, as for the API server; a null in a list stays, and is refused. */
function withoutNulls(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null || depth > NESTING_MAX) return value;
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item, depth + 1));
  const entries = Object.entries(value).filter(
    ([, child]) => child !== null && child !== undefined,
  );
  return Object.fromEntries(entries.map(([name, child]) => [name, withoutNulls(child, depth + 1)]));
}
