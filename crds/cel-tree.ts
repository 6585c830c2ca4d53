// Looks at the syntax tree of an expression, for what types do not tell.
import type { ASTNode } from '@marcbachmann/cel-js';

const LOOPS = new Set(['all', 'exists', 'exists_one', 'map', 'filter']);
/** Functions that read a whole text and take long for it. */
const SCANS = new Set(['split', 'matches']);

/**
 * How deep loops are nested in the expression; 0 without any. What a loop goes over is done once, before it. Within a
 * loop, scanning a text that has nothing to do with the loop's `variable` is a loop too: it is done again each time.
 */
export function loopDepth(node: unknown, variable?: unknown): number {
  if (Array.isArray(node)) return Math.max(0, ...node.map((child) => loopDepth(child, variable)));
  if (!isNode(node)) return 0;
  return node.op === 'rcall' ? callDepth(node.args, variable) : loopDepth(node.args, variable);
}

type Call = readonly [name: string, receiver: ASTNode, args: readonly ASTNode[]];

function callDepth([name, receiver, args]: Call, variable: unknown): number {
  const before = loopDepth(receiver, variable);
  if (LOOPS.has(name)) return Math.max(before, 1 + loopDepth(args, args[0]?.args));
  const again = variable !== undefined && usesOf(variable, receiver).length === 0;
  return Math.max(before, SCANS.has(name) && again ? 1 : 0, loopDepth(args, variable));
}

/** Offsets at which the expression uses a name, in the order of the text. */
export function usesOf(name: unknown, node: unknown): number[] {
  if (Array.isArray(node)) return node.flatMap((child) => usesOf(name, child));
  if (!isNode(node)) return [];
  if (node.op === 'id') return node.args === name ? [node.start] : [];
  return usesOf(name, node.args);
}

function isNode(value: unknown): value is ASTNode {
  return typeof value === 'object' && value !== null && 'op' in value && 'args' in value;
}
