// Regular expressions of policies are RE2: linear time whatever the input, and the same dialect that the API server
// compiles in its CEL rules. Nothing else in the product may turn a policy's text into a RegExp.
import { RE2JS } from 're2js';

/** An expression in the RE2 dialect, unanchored. */
export interface CompiledExpression {
  /** Whether the expression matches anywhere in `input`. */
  test(input: string): boolean;
}

export type ExpressionOutcome =
  | { readonly kind: 'compiled'; readonly expression: CompiledExpression }
  | { readonly kind: 'invalid'; readonly cause: string };

/** Compiles `source`; `cause` is RE2's own words, e.g. ``missing closing ]: `[` ``. */
export function compileExpression(source: string): ExpressionOutcome {
  try {
    return { kind: 'compiled', expression: RE2JS.compile(source) };
  } catch (error) {
    return { kind: 'invalid', cause: causeOf(error) };
  }
}

function causeOf(error: unknown): string {
  return String(error).replace(/^[\w.]*(Error|Exception): (error parsing regexp: )?/, '');
}
