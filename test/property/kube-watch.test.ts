import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { LineSplitter } from '../../operator/kube/line-splitter.ts';
import { keyOf, type KubeObject } from '../../operator/kube/object.ts';
import { Partition, type Change } from '../../operator/kube/object-store.ts';

const text = fc.string({ unit: 'binary', maxLength: 40 }).map((line) => JSON.stringify({ line }));

/** Bytes cut at arbitrary places, empty pieces included. */
function cut(bytes: Uint8Array, places: readonly number[]): readonly Uint8Array[] {
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length].toSorted(
    (a, b) => a - b,
  );
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

const metadata = fc.record(
  {
    namespace: fc.constantFrom('a', 'b'),
    name: fc.constantFrom('one', 'two', 'three', 'four'),
    uid: fc.constantFrom('u', 'v'),
    resourceVersion: fc.constantFrom('1', '2', '3'),
  },
  { noNullPrototype: true },
);
const object = fc.record({ metadata }, { noNullPrototype: true });
const listed = fc.uniqueArray(object, { selector: keyOf, maxLength: 8 });

/** What a handler that only hears changes believes. */
function apply(state: Map<string, KubeObject>, change: Change<KubeObject>): void {
  assert.equal(state.has(change.key), change.before !== undefined);
  if (change.after === undefined) state.delete(change.key);
  else state.set(change.key, change.after);
}

describe('the lines of a watch', () => {
  it('are the same however the bytes are split', () => {
    fc.assert(
      fc.property(
        fc.array(text, { maxLength: 8 }),
        fc.array(fc.nat(), { maxLength: 20 }),
        (lines, places) => {
          const bytes = new TextEncoder().encode(lines.map((line) => `${line}\n`).join(''));
          const splitter = new LineSplitter();

          const read = cut(bytes, places).flatMap((piece) => [...splitter.push(piece)]);

          assert.deepEqual(read, lines);
        },
      ),
    );
  });

  it('are the same when every byte comes alone, in characters of one to four bytes', () => {
    const lines = ['{"a":"é€😀"}', '{"b":"\\n"}'];
    const bytes = new TextEncoder().encode(`${lines.join('\n')}\n`);
    const splitter = new LineSplitter();

    const read = [...bytes].flatMap((byte) => [...splitter.push(Uint8Array.of(byte))]);

    assert.deepEqual(read, lines);
  });
});

describe('the difference of lists', () => {
  it('applied to what was known gives what is listed, and says nothing when nothing changed', () => {
    fc.assert(
      fc.property(fc.array(listed, { minLength: 1, maxLength: 4 }), (lists) => {
        const partition = new Partition<KubeObject>();
        const heard = new Map<string, KubeObject>();

        for (const list of lists) {
          for (const change of partition.replace(list)) apply(heard, change);

          const expected = new Map(list.map((one) => [keyOf(one), one]));
          assert.deepEqual(heard, expected);
          assert.equal(partition.size, expected.size);
          assert.deepEqual([...partition.replace(list)], []);
        }
      }),
    );
  });
});
