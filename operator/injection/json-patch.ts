// The difference between a pod and its injected form as JSON Patch (RFC 6902). Lists of named things (containers,
// volumes, ports) are compared by name, so that an addition is one `add` and never a replacement of what others wrote;
// and so that a pod with thousands of variables costs no more than a small one.
import assert from 'node:assert/strict';
import { createPatch } from 'rfc6902';
import type { JsonPatchOperation } from '../kube/api.ts';

/** Operations that turn `before` into `after`; both are plain JSON. */
export function diffJson(before: unknown, after: unknown): readonly JsonPatchOperation[] {
  return createPatch(before, after, diffLists).map(operationOf);
}

type Operations = ReturnType<typeof createPatch>;

function operationOf(operation: Operations[number]): JsonPatchOperation {
  const { path } = operation;
  if (operation.op === 'remove') return { op: operation.op, path };
  assert(operation.op !== 'copy' && operation.op !== 'move', 'a difference copies nothing');
  const value: unknown = operation.value;
  return { op: operation.op, path, value };
}

function diffLists(
  before: unknown,
  after: unknown,
  pointer: { toString(): string },
): Operations | undefined {
  if (!Array.isArray(before) || !Array.isArray(after) || before === after) return undefined;
  const [old, wanted]: readonly [readonly unknown[], readonly unknown[]] = [before, after];
  const order = alignment(old, wanted);
  if (order === undefined) return undefined;
  return order.flatMap((from, index) => {
    const path = `${pointer.toString()}/${index}`;
    const value = wanted[index];
    if (from === undefined) return [{ op: 'add' as const, path, value }];
    return createPatch(old[from], value, diffLists).map((operation) => ({
      ...operation,
      path: `${path}${operation.path}`,
    }));
  });
}

/**
 * For each element of `after` its place in `before`; undefined = it is new. Undefined as a whole when something of
 * `before` went away or changed its place.
 */
function alignment(
  before: readonly unknown[],
  after: readonly unknown[],
): readonly (number | undefined)[] | undefined {
  if (before.length === after.length) return after.map((_, index) => index);
  let next = 0;
  const order = after.map((element) => {
    if (next === before.length || !isSame(before[next], element)) return undefined;
    next += 1;
    return next - 1;
  });
  return next === before.length ? order : undefined;
}

function isSame(one: unknown, other: unknown): boolean {
  const name = nameOf(one);
  return name !== undefined && name === nameOf(other);
}

function nameOf(element: unknown): unknown {
  return typeof element === 'object' && element !== null && 'name' in element
    ? element.name
    : undefined;
}
