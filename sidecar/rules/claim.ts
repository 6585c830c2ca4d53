// Reading claims. A claim's path is a list of names, because names contain dots (`https://example.com/plan`).
import { bytesOf } from './byte-string.ts';
import type { Claims } from './token-verifier.ts';

/**
 * Whether the claim at `path` is `value`, or is a list that holds it (`groups`, `roles`).
 * Numbers and booleans are compared as JSON writes them.
 */
export function claimHas(
  claims: Claims | undefined,
  path: readonly string[],
  value: string,
): boolean {
  const claim = claimAt(claims, path);
  if (Array.isArray(claim)) return claim.some((item) => scalarText(item) === value);
  return scalarText(claim) === value;
}

/** The claim at `path` as a key's byte string; undefined when it is absent, a list or an object, or not well-formed. */
export function claimKey(claims: Claims | undefined, path: readonly string[]): string | undefined {
  const text = scalarText(claimAt(claims, path));
  // A lone surrogate has no bytes of its own: two such claims would become one key.
  return text?.isWellFormed() === true ? bytesOf(text) : undefined;
}

function claimAt(claims: Claims | undefined, path: readonly string[]): unknown {
  let value: unknown = claims;
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) {
      return undefined;
    }
    value = Reflect.get(value, name);
  }
  return value;
}

function scalarText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
}
