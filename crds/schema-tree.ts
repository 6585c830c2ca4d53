// Walks a zod schema the way a value is walked: by field names and list indexes.
import assert from 'node:assert/strict';
import * as z from 'zod';
import type { FieldPath } from './problem.ts';

export interface Children {
  /** Whether the value is to be a list; otherwise an object. */
  readonly isList: boolean;
  /** Fields an object has; empty for lists and maps. */
  readonly fields: ReadonlyMap<string, z.core.$ZodType>;
  /** The schema of a child; undefined when there is no such field. */
  readonly of: (segment: string | number) => z.core.$ZodType | undefined;
}

const NONE: Children['fields'] = new Map();

/** What may be inside a value of this schema; undefined when it is a scalar. */
export function childrenOf(schema: z.core.$ZodType): Children | undefined {
  const bare = unwrap(schema);
  if (bare instanceof z.ZodObject) {
    const fields = new Map<string, z.core.$ZodType>(Object.entries(bare.shape));
    return { isList: false, fields, of: (segment) => fields.get(String(segment)) };
  }
  if (bare instanceof z.ZodArray) return { isList: true, fields: NONE, of: () => bare.element };
  if (bare instanceof z.ZodRecord) {
    // zod passes over this name without a word.
    return {
      isList: false,
      fields: NONE,
      of: (name) => (name === '__proto__' ? undefined : bare.valueType),
    };
  }
  return undefined;
}

/** The schema at a path. Asserts that the path stays within the schema. */
export function schemaAt(schema: z.core.$ZodType, path: FieldPath): z.core.$ZodType {
  let current = schema;
  for (const segment of path) {
    const child = childrenOf(current)?.of(segment);
    assert(child !== undefined, `no schema at ${path.join('.')}`);
    current = child;
  }
  return unwrap(current);
}

/** Whether a field of this schema may be left out. */
export function isOptional(schema: z.core.$ZodType): schema is Wrapper {
  return (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodExactOptional ||
    schema instanceof z.ZodDefault
  );
}

type Wrapper = z.ZodOptional | z.ZodExactOptional | z.ZodDefault;

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  return isOptional(schema) ? unwrap(schema.def.innerType) : schema;
}

/** What the schema says about itself. */
export function descriptionOf(schema: z.core.$ZodType): string {
  return String(z.globalRegistry.get(schema)?.description);
}
