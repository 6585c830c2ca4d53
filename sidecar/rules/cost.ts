// Hot path.
// What a request costs in tokens.
import type { CompiledRule } from '../../contract/bundle.ts';

/** Longer digit strings are above every `max` (10^8): they need no exact value. */
const MAX_DIGITS = 15;

/** Tokens of a request, at least 1. `sent` is the cost header's value. */
export function requestCost(cost: CompiledRule['cost'], sent: string | undefined): number {
  if (cost.header === undefined || sent === undefined) return cost.tokens;
  const tokens = wholeTokens(sent);
  return tokens < 1 ? cost.tokens : Math.min(tokens, cost.header.max);
}

/**
 * Tokens that a response costs on top, 0 when it says nothing readable.
 * @param header reads a response field by lower-case name
 */
export function responseCost(
  rule: CompiledRule,
  header: (name: string) => string | undefined,
): number {
  const { response } = rule.cost;
  const sent = response === undefined ? undefined : header(response.name);
  if (response === undefined || sent === undefined) return 0;
  return Math.min(Math.max(0, wholeTokens(sent)), response.max);
}

/** A decimal integer without sign, -1 for anything else. */
function wholeTokens(text: string): number {
  const digits = text.trim();
  if (!/^[0-9]+$/.test(digits)) return -1;
  const significant = digits.replace(/^0+(?=[0-9])/, '');
  return significant.length > MAX_DIGITS ? Infinity : Number(significant);
}
