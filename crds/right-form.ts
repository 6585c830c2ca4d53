// Of a value of the wrong type: how it would have to be written. What the value itself says is kept (`clientIP` where
// parts of a key are wanted is `[{ clientIP: {} }]`); what only the author knows is a `…`. A form without one has
// passed the schema, so that whoever follows the advice is not told something else next.
import * as z from 'zod';
import { childrenOf, isOptional } from './schema-tree.ts';
import type { Children } from './schema-tree.ts';
import { plainScalar } from './yaml-scalar.ts';

/** Characters of a form that is still an example; a longer one would be the document again. */
const FORM_MAX = 120;
/** Items and fields: what has more does not fit either, and is not looked at. */
const WIDTH_MAX = 16;
const BLANK = '…';
/** What takes this takes any text, and says nothing about a text that it takes. */
const ANY_TEXT = '… …';

type Schema = z.core.$ZodType;

/** `value` as `schema` wants it, as one line of YAML; undefined when the value says too little, or the line is long. */
export function rightForm(value: unknown, schema: Schema): string | undefined {
  const form = fitted(value, schema);
  const line = form === undefined ? '' : flow(form);
  if (line === '' || line.length > FORM_MAX) return undefined;
  return line.includes(BLANK) || accepts(schema, form) ? line : undefined;
}

/** `value` in the shape of `schema`, not yet judged; undefined = it says too little. */
function fitted(value: unknown, schema: Schema): unknown {
  const children = childrenOf(schema);
  if (children === undefined) return fittedScalar(value, schema);
  if (children.isList) return fittedList(Array.isArray(value) ? value : [value], children);
  if (typeof value !== 'object') return objectOf(value, children);
  return isFields(value) ? fittedFields(value, children) : undefined;
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function fittedScalar(value: unknown, schema: Schema): unknown {
  if (!isScalar(value) || String(value).length > FORM_MAX) return undefined;
  return [value, String(value)].find((one) => accepts(schema, one));
}

function isScalar(value: unknown): value is string | number | boolean {
  return ['string', 'number', 'boolean'].includes(typeof value);
}

function fittedList(items: readonly unknown[], children: Children): unknown {
  if (items.length > WIDTH_MAX) return undefined;
  const forms = items.map((item, index) => fittedIn(children, index, item));
  return forms.includes(undefined) ? undefined : forms;
}

function fittedFields(fields: Readonly<Record<string, unknown>>, children: Children): unknown {
  const entries = Object.entries(fields);
  if (entries.length > WIDTH_MAX) return undefined;
  const forms = entries.map(([name, value]) => [name, fittedIn(children, name, value)] as const);
  if (forms.some(([, form]) => form === undefined)) return undefined;
  return { ...blanks(children.fields), ...Object.fromEntries(forms) };
}

function fittedIn(children: Children, segment: string | number, value: unknown): unknown {
  const schema = children.of(segment);
  return schema === undefined ? undefined : fitted(value, schema);
}

/** An object for a value that is none: the value names one of its fields, or belongs into one. */
function objectOf(value: unknown, { fields, of }: Children): unknown {
  // A map has no fields of its own, but takes any.
  if (fields.size === 0) return of(BLANK) === undefined ? {} : undefined;
  const named = [...fields].find(([name]) => name === value);
  if (named !== undefined) return { ...blanks(fields), [named[0]]: blank(named[1]) };
  const slot = slotFor(value, fields);
  return slot === undefined ? undefined : { ...blanks(fields), [slot[0]]: fitted(value, slot[1]) };
}

type Fields = Children['fields'];

/** Of required fields the first that takes the value; of optional ones only one that is the only one. */
function slotFor(value: unknown, fields: Fields): readonly [string, Schema] | undefined {
  const takers = [...fields].filter(([, schema]) => accepts(schema, fitted(value, schema)));
  const required = requiredOf(fields);
  if (required.length > 0) return takers.find(([name]) => required.includes(name));
  const telling = takers.filter(([, schema]) => !accepts(schema, fitted(ANY_TEXT, schema)));
  return telling.length === 1 ? telling[0] : undefined;
}

function requiredOf(fields: Fields): readonly string[] {
  return [...fields].filter(([, schema]) => !isOptional(schema)).map(([name]) => name);
}

/** The required fields with what has to be filled in. */
function blanks(fields: Fields): Readonly<Record<string, unknown>> {
  const required = requiredOf(fields);
  const chosen = [...fields].filter(([name]) => required.includes(name));
  return Object.fromEntries(chosen.map(([name, schema]) => [name, blank(schema)]));
}

function blank(schema: Schema): unknown {
  if (schema instanceof z.ZodEnum) return schema.options[0];
  const children = childrenOf(schema);
  if (children === undefined) return BLANK;
  const item = children.isList ? children.of(0) : undefined;
  if (item !== undefined) return [blank(item)];
  const isEmpty = children.fields.size === 0;
  const form = blanks(children.fields);
  return isEmpty || Object.keys(form).length > 0 ? form : BLANK;
}

function accepts(schema: Schema, value: unknown): boolean {
  return value !== undefined && z.safeParse(schema, value).success;
}

/** The fields of an object in words; undefined for a map, whose names are the author's. */
export function fieldsInWords(schema: Schema): string | undefined {
  const fields = childrenOf(schema)?.fields ?? new Map<string, Schema>();
  const required = requiredOf(fields);
  const optional = [...fields.keys()].filter((name) => !required.includes(name));
  if (required.length === 0)
    return optional.length === 0 ? undefined : `some of ${optional.join(', ')}`;
  const rest = optional.length === 0 ? '' : `; where needed ${optional.join(', ')}`;
  return `${required.join(', ')}${rest}`;
}

const PLAIN = /^[A-Za-z0-9/…][-\w./*]*$/;

/** In one line of YAML. */
function flow(form: unknown): string {
  if (typeof form === 'string') {
    return PLAIN.test(form) && plainScalar(form) === form ? form : JSON.stringify(form);
  }
  if (Array.isArray(form)) return `[${form.map(flow).join(', ')}]`;
  if (!isFields(form)) return String(form);
  const entries = Object.entries(form).map(([name, value]) => `${name}: ${flow(value)}`);
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`;
}
