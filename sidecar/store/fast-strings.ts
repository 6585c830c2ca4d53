// ioredis declares a class that extends String. V8 answers by keeping String.prototype as a dictionary, and from then
// on compiles no string method of the whole process in line: a charCodeAt goes from 2 to 8 ns, and every parser with it.

/** V8 looks at a load only once its function is warm; this is more often than it takes. */
const LOADS = 1_000;

/**
 * Lets V8 keep String.prototype with fast properties again, which it does when it sees a load on an object below the
 * prototype; a primitive string is none. To be called after the import of a library that extends String.
 */
export function restoreFastStrings(): void {
  const wrapped = Object('') as { readonly normalize?: unknown };
  for (let load = 0; load < LOADS; load += 1) if (wrapped.normalize === undefined) return;
}
