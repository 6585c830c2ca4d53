// Builders for the fields of a policy. Each puts one constraint in three places at once: the zod check that files
// go through, the structural schema that the API server enforces, and the words of the problem. The CEL rule of a
// relation between fields and its twin here are written side by side, so that one cannot change without the other.
import * as z from 'zod';

/** A relation between fields: CEL for the API server, `holds` for files; both say the same. */
export interface Rule<Value> {
  /** CEL over `self`. Costs are estimated over every enclosing list: a budget of 10 M per rule (measured on 1.36). */
  readonly rule: string;
  readonly message: string;
  readonly advice: string;
  /** Field of the value that is at fault; absent = the value itself. */
  readonly field?: string;
  readonly holds: (value: Value) => boolean;
  /** Why it does not hold, when more can be said than the message. */
  readonly cause?: (value: Value) => string;
}

/**
 * Adds rules to a schema. They run only where the fields themselves are in order, so that one fault is one problem;
 * a rule that is broken further inside is no obstacle.
 */
export function ruled<Schema extends z.ZodType>(
  schema: Schema,
  rules: readonly Rule<z.output<Schema>>[],
): Schema {
  const validations = rules.map(({ rule, message, field }) =>
    field === undefined ? { rule, message } : { rule, message, fieldPath: `.${field}` },
  );
  const checked = schema.check((payload) => {
    if (!payload.issues.every(isBrokenRule)) return;
    for (const rule of rules) {
      if (!rule.holds(payload.value)) payload.issues.push(brokenRule(rule, payload.value));
    }
  });
  return checked.meta({ ...schema.meta(), 'x-kubernetes-validations': validations });
}

function brokenRule<Value>(rule: Rule<Value>, value: Value): z.core.$ZodRawIssue {
  const cause = rule.cause?.(value);
  return {
    code: 'custom',
    input: value,
    message: cause === undefined ? rule.message : `${rule.message}: ${cause}`,
    params: { advice: rule.advice, isRule: true },
    // Lets the rules of what is around it run.
    continue: true,
    path: rule.field === undefined ? [] : [rule.field],
  };
}

function isBrokenRule(issue: z.core.$ZodRawIssue): boolean {
  return issue.code === 'custom' && issue.params?.['isRule'] === true;
}

export interface TextBounds {
  /** Code points, as the API server counts. */
  readonly min?: number;
  readonly max: number;
  readonly pattern?: RegExp;
  /** The message for a text above `max`, where nothing of the right form is so long and a rule judges the form. */
  readonly form?: string;
  /** What would be right, as a phrase after "use": `a name such as per-client`. */
  readonly advice: string;
}

/** A bounded string. Lengths count code points; JavaScript's own length would refuse emoji that the server takes. */
export function text(description: string, bounds: TextBounds): z.ZodType<string> {
  const schema = z.string().check((context) => {
    const message = faultOfText(context.value, bounds);
    if (message === undefined) return;
    context.issues.push({
      code: 'custom',
      input: context.value,
      message,
      params: { advice: `use ${bounds.advice}` },
    });
  });
  return schema.meta({ description, ...textKeywords(bounds) });
}

/** No field of ours is so long; a pattern is not asked about what is, because it could take its time. */
const FORM_LENGTH_MAX = 20_000;

/**
 * The form comes before the length: of `5 seconds` that it has 9 characters would be true and no help. Only of an
 * empty text there is nothing else to say.
 */
function faultOfText(value: string, { min, max, form, pattern }: TextBounds): string | undefined {
  if (value === '' && min !== undefined) return 'is empty';
  if (value.length <= FORM_LENGTH_MAX && pattern?.test(value) === false) {
    return `${quote(value)} does not have the form`;
  }
  const length = Array.from(value).length;
  if (min !== undefined && length < min) return `is shorter than ${String(min)} characters`;
  if (length <= max) return undefined;
  return form ?? `has ${String(length)} characters, more than ${String(max)}`;
}

function textKeywords({ min, max, pattern }: TextBounds): Record<string, unknown> {
  return {
    ...(min === undefined ? {} : { minLength: min }),
    maxLength: max,
    // JavaScript escapes the slash in `source`; it needs no escape anywhere else.
    ...(pattern === undefined ? {} : { pattern: pattern.source.replaceAll('\\/', '/') }),
  };
}

/** A value as a message shows it: quoted, cut at 40 characters, without line ends. */
export function quote(value: string): string {
  return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
}

export interface ListBounds {
  readonly min?: number;
  readonly max: number;
  /** `map` is keyed by `name`. */
  readonly kind: 'atomic' | 'set' | 'map';
}

/** A bounded list; sets and maps refuse an item twice. */
export function list<Item>(
  description: string,
  item: z.ZodType<Item>,
  { min = 1, max, kind }: ListBounds,
): z.ZodType<Item[]> {
  const meta = {
    description,
    'x-kubernetes-list-type': kind,
    ...(kind === 'map' ? { 'x-kubernetes-list-map-keys': ['name'] } : {}),
  };
  const bounded = min === 0 ? z.array(item).max(max) : z.array(item).min(min).max(max);
  if (kind === 'atomic') return bounded.meta(meta);
  return bounded
    .check((context) => {
      context.issues.push(...repeated(context.value, kind));
    })
    .meta(meta);
}

function repeated(items: readonly unknown[], kind: 'set' | 'map'): z.core.$ZodRawIssue[] {
  const seen = new Set<unknown>();
  const issues: z.core.$ZodRawIssue[] = [];
  items.forEach((item, index) => {
    const identity = kind === 'set' ? item : nameOf(item);
    if (identity === undefined) return;
    if (seen.has(identity)) {
      const message = `${JSON.stringify(identity)} is there twice`;
      const params = { advice: kind === 'set' ? 'remove one of them' : 'give each its own name' };
      const path = kind === 'set' ? [index] : [index, 'name'];
      issues.push({ code: 'custom', input: item, message, params, path });
    }
    seen.add(identity);
  });
  return issues;
}

function nameOf(item: unknown): unknown {
  return typeof item === 'object' && item !== null && 'name' in item ? item.name : undefined;
}

/** One of a few words. */
export function choice<const Words extends readonly [string, ...string[]]>(
  description: string,
  words: Words,
): z.ZodType<Words[number]> {
  return z.enum(words).meta({ description });
}

/** An integer within bounds, int32 unless it may be larger. */
export function integer(description: string, min: number, max: number): z.ZodType<number> {
  const format = max > 1_000_000 ? 'int64' : 'int32';
  return z.int().min(min).max(max).meta({ description, format });
}
