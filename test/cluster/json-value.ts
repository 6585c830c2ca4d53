/** The value at the path, or undefined where the path leaves what is there. */
export function valueAt(value: unknown, ...path: readonly (string | number)[]): unknown {
  let here = value;
  for (const step of path) {
    if (typeof here !== 'object' || here === null) return undefined;
    here = Object.entries(here).find(([key]) => key === String(step))?.[1];
  }
  return here;
}

/** The list at the path; empty where there is none. */
export function listAt(value: unknown, ...path: readonly (string | number)[]): readonly unknown[] {
  const list = valueAt(value, ...path);
  return Array.isArray(list) ? list : [];
}

/** The text at the path; empty where there is none. */
export function textAt(value: unknown, ...path: readonly (string | number)[]): string {
  const text = valueAt(value, ...path);
  return typeof text === 'string' ? text : '';
}
