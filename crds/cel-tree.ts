// Looks at the syntax tree of an expression, for what types do not tell.
import type { ASTNode } from '@marcbachmann/cel-js';

const LOOPS = new Set(['all', 'exists', 'exists_one', 'map', 'filter']);

/** How deep loops are nested in the expression; 0 without any. */
export function loopDepth(node: unknown): number {
  if (Array.isArray(node)) return Math.max(0, ...node.map(loopDepth));
  if (!isNode(node)) return 0;
  const isLoop = node.op === 'rcall' && LOOPS.has(node.args[0]);
  return loopDepth(node.args) + (isLoop ? 1 : 0);
}

/** Offsets at which the expression uses a name, in the order of the text. */
export function usesOf(name: string, node: unknown): number[] {
  if (Array.isArray(node)) return node.flatMap((child) => usesOf(name, child));
  if (!isNode(node)) return [];
  if (node.op === 'id') return node.args === name ? [node.start] : [];
  return usesOf(name, node.args);
}

function isNode(value: unknown): value is ASTNode {
  return typeof value === 'object' && value !== null && 'op' in value && 'args' in value;
}
