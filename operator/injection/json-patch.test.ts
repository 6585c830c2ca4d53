import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { applyPatch, type Operation } from 'rfc6902';
import { diffJson } from './json-patch.ts';

function named(...names: readonly string[]): readonly object[] {
  return names.map((name) => ({ name }));
}

const ROWS: readonly (readonly [string, unknown, unknown])[] = [
  ['a field that is new', { a: 1 }, { a: 1, b: 2 }],
  ['a field that is gone', { a: 1, b: 2 }, { a: 1 }],
  ['a field that is another', { a: 1 }, { a: [1] }],
  ['a list instead of a field', { a: { b: 1 } }, { a: [1] }],
  ['a named thing before all others', { a: named('x') }, { a: named('new', 'x') }],
  ['named things between and after', { a: named('x', 'y') }, { a: named('x', 'n', 'y', 'm') }],
  ['a named thing that is gone', { a: named('x', 'y') }, { a: named('y') }],
  ['named things that changed places', { a: named('x', 'y') }, { a: named('y', 'n', 'x') }],
  ['things without names', { a: [1, { b: 2 }] }, { a: [1, { b: 3 }, null] }],
  ['a change deep in a list', { a: [{ name: 'x', b: [1] }] }, { a: [{ name: 'x', b: [2] }] }],
  ['a first list', {}, { a: named('x') }],
];

describe('a difference', () => {
  for (const [name, before, after] of ROWS) {
    it(`turns one into the other: ${name}`, () => {
      const patched = structuredClone(before);

      const faults = applyPatch(patched, [...diffJson(before, after)] as Operation[]);

      assert.ok(faults.every((fault) => fault === null));
      assert.deepEqual(patched, after);
    });
  }

  it('adds a named thing in one step, and leaves what others wrote alone', () => {
    const before = { a: [{ name: 'x', value: 1 }] };

    const patch = diffJson(before, { a: [{ name: 'new' }, { name: 'x', value: 2 }] });

    assert.deepEqual(patch, [
      { op: 'add', path: '/a/0', value: { name: 'new' } },
      { op: 'replace', path: '/a/1/value', value: 2 },
    ]);
  });

  it('of equal things is none', () => {
    const list = named('x');

    assert.deepEqual(diffJson({ a: list }, { a: list }), []);
    assert.deepEqual(diffJson({ a: list }, { a: named('x') }), []);
  });
});
