// The version of a bundle. It must come out the same on every host and in every process, whatever order the fields
// were written in: names are sorted, and no number is formatted but by JSON.
import { createHash } from 'node:crypto';

/** 128 bits in hex: versions are compared, never guessed. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

/** JSON with the names of objects in the order of their code units. */
export function stableJson(value: unknown): string {
  return JSON.stringify(value, (_name, child: unknown) => (isPlain(child) ? sorted(child) : child));
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function sorted(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.keys(value)
      .toSorted()
      .map((name) => [name, value[name]]),
  );
}
