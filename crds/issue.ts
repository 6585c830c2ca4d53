// Words for what zod found: what was wrong, what would be right.
import assert from 'node:assert/strict';
import * as z from 'zod';
import type { FieldPath, Finding } from './problem.ts';
import { fieldsInWords, rightForm } from './right-form.ts';
import { childrenOf, descriptionOf, schemaAt } from './schema-tree.ts';
import { nearestWord } from './spelling.ts';
import { quote } from './field.ts';

interface Words {
  readonly message: string;
  readonly advice: string;
}

/** Puts an issue into words; `root` is the schema it came from. */
export function messageOf(issue: z.core.$ZodIssue, root: z.core.$ZodType): Finding {
  const segments = issue.path.filter((segment) => typeof segment !== 'symbol');
  return { segments, ...wordsOf(issue, { segments, root }), reason: 'value' };
}

interface Context {
  readonly segments: FieldPath;
  readonly root: z.core.$ZodType;
}

function wordsOf(issue: z.core.$ZodIssue, context: Context): Words {
  if (issue.code === 'invalid_type') return wrongType(issue, context);
  if (issue.code === 'invalid_value') return wrongWord(issue, context);
  if (issue.code === 'too_small' || issue.code === 'too_big') return outOfBounds(issue, context);
  // Our own checks bring their words along.
  return { message: issue.message, advice: adviceOf(issue) };
}

function adviceOf(issue: z.core.$ZodIssue): string {
  assert(issue.code === 'custom', `no words for ${issue.code}`);
  return String(issue.params?.['advice']);
}

function missing({ segments, root }: Context): Words {
  const name = String(segments.at(-1));
  const description = descriptionOf(schemaAt(root, segments));
  return { message: 'is missing', advice: `write ${name}: ${description}` };
}

const TYPES = new Map([
  ['object', 'an object'],
  ['array', 'a list'],
  ['record', 'an object'],
  ['string', 'a string'],
  ['boolean', 'true or false'],
  ['number', 'an integer'],
  ['int', 'an integer'],
]);

function wrongType(issue: z.core.$ZodIssueInvalidType, context: Context): Words {
  const { input } = issue;
  if (input === undefined) return missing(context);
  const wanted = String(TYPES.get(issue.expected));
  return {
    message: `is ${shown(input)}, not ${wanted}`,
    advice: typeAdvice(input, wanted, context),
  };
}

function typeAdvice(input: unknown, wanted: string, { segments, root }: Context): string {
  if (wanted === 'an object' || wanted === 'a list') {
    return shapeAdvice(input, wanted, schemaAt(root, segments));
  }
  if (wanted === 'a string' && typeof input === 'boolean') {
    return `quote it: unquoted yes, no, on, off, true and false are booleans in YAML`;
  }
  if (wanted === 'a string' && typeof input === 'number') return numberAdvice(input, segments);
  return `use ${wanted}`;
}

/** What the list or object looks like: as it was meant, or by its fields. */
function shapeAdvice(input: unknown, wanted: string, schema: z.core.$ZodType): string {
  const form = rightForm(input, schema);
  if (form !== undefined) return `write it as ${wanted}: ${form}`;
  const item = wanted === 'a list' ? childrenOf(schema)?.of(0) : undefined;
  const fields = fieldsInWords(item ?? schema);
  const what = item === undefined || fields === undefined ? wanted : `${wanted} of objects`;
  return fields === undefined ? `use ${what}` : `use ${what} with ${fields}`;
}

function numberAdvice(input: number, segments: FieldPath): string {
  return segments.at(-1) === 'every'
    ? `give it a unit, such as ${String(input)}s`
    : 'quote it: an unquoted number is no string in YAML';
}

function shown(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'string') return `the string ${quote(value)}`;
  return typeof value === 'number' ? String(value) : JSON.stringify(value);
}

function wrongWord(issue: z.core.$ZodIssueInvalidValue, context: Context): Words {
  if (issue.input === undefined) return missing(context);
  const words = issue.values.map(String);
  const nearest = typeof issue.input === 'string' ? nearestWord(issue.input, words) : undefined;
  return {
    message: `${shown(issue.input).replace(/^the string /, '')} is not one of ${words.join(', ')}`,
    advice: nearest === undefined ? `use one of ${words.join(', ')}` : `did you mean ${nearest}?`,
  };
}

function outOfBounds(
  issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig,
  { segments, root }: Context,
): Words {
  if (Array.isArray(issue.input)) return wrongLength(issue, issue.input.length);
  const schema = schemaAt(root, segments);
  assert(schema instanceof z.ZodNumber);
  const side =
    issue.code === 'too_small'
      ? `below ${String(issue.minimum)}`
      : `above ${String(issue.maximum)}`;
  return {
    message: `is ${String(issue.input)}, ${side}`,
    advice: `use ${String(schema.minValue)}..${String(schema.maxValue)}`,
  };
}

function wrongLength(
  issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig,
  length: number,
): Words {
  if (issue.code === 'too_small') {
    return {
      message: 'is an empty list',
      advice: 'write at least one item, or leave the field out where it is optional',
    };
  }
  const max = String(issue.maximum);
  return { message: `has ${String(length)} items, more than ${max}`, advice: `use at most ${max}` };
}
