// Walks a zod schema the way a value is walked: by field names and list indexes.
import assert from 'node:assert/strict';
import * as z from 'zod';
import type { FieldPath } from './problem.ts';

export interface Children {
  /** Whether the value is to be a list; otherwise an object. */
  readonly isList: boolean;
  /** Fields an object has; empty for lists and maps. */
  readonly names: readonly string[];
  /** The schema of a child; undefined when there is no such field. */
  readonly of: (segment: string | number) => z.core.$ZodType | undefined;
}

/** What may be inside a value of this schema; undefined when it is a scalar. */
export function childrenOf(schema: z.core.$ZodType): Children | undefined {
  const bare = unwrap(schema);
  if (bare instanceof z.ZodObject) {
    const shape = new Map<string | number, z.core.$ZodType>(Object.entries(bare.shape));
    return { isList: false, names: Object.keys(bare.shape), of: (segment) => shape.get(segment) };
  }
  if (bare instanceof z.ZodArray) return { isList: true, names: [], of: () => bare.element };
  if (bare instanceof z.ZodRecord) {
    // zod passes over this name without a word.
    return {
      isList: false,
      names: [],
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

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  const isWrapped =
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodExactOptional ||
    schema instanceof z.ZodDefault;
  return isWrapped ? unwrap(schema.def.innerType) : schema;
}

/** What the schema says about itself. */
export function descriptionOf(schema: z.core.$ZodType): string {
  return String(z.globalRegistry.get(schema)?.description);
}
