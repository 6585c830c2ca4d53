// What is in order but hardly means what its author hopes: said by `weir check`, never a reason to refuse.
import type { RateLimitPolicy } from './policy.ts';
import type { Rule } from './rule.ts';

/** One sentence each, without a full stop. */
export function notesOn({ spec }: RateLimitPolicy): string[] {
  const notes: string[] = [];
  if (spec.jwt?.jwks.uri !== undefined) {
    notes.push('spec.jwt.jwks.uri is fetched by the operator; weir run takes inline keys only');
  }
  for (const method of new Set(spec.rules.flatMap(methodsOf))) {
    const upper = method.toUpperCase();
    if (method === upper || !USUAL_METHODS.has(upper)) continue;
    notes.push(`methods are case-sensitive: ${method} never matches a ${upper} request`);
  }
  return notes;
}

const USUAL_METHODS: ReadonlySet<string> = new Set([
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'],
]);

function methodsOf({ match = [], except = [], tiers = [] }: Rule): readonly string[] {
  const matches = [...match, ...except, ...tiers.flatMap((tier) => tier.match ?? [])];
  return matches.flatMap(({ methods }) => methods ?? []);
}
