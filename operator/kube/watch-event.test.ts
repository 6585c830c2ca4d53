import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LineSplitter } from './line-splitter.ts';
import type { KubeObject } from './object.ts';
import { readWatchEvent, type WatchEvent } from './watch-event.ts';

const pods = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', isNamespaced: true };
const read = (line: unknown): WatchEvent<KubeObject> =>
  readWatchEvent(typeof line === 'string' ? line : JSON.stringify(line), { resource: pods });

describe('a line of a watch', () => {
  it('says what changed, what is gone, or only how far nothing happened', () => {
    const object = { metadata: { name: 'a', resourceVersion: '7' } };
    const admitted = { apiVersion: 'v1', kind: 'Pod', ...object };
    const resourceVersion = '7';

    for (const type of ['ADDED', 'MODIFIED']) {
      assert.deepEqual(read({ type, object }), {
        kind: 'changed',
        object: admitted,
        resourceVersion,
      });
    }
    assert.deepEqual(read({ type: 'DELETED', object }), {
      kind: 'deleted',
      object: admitted,
      resourceVersion,
    });
    assert.deepEqual(read({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '7' } } }), {
      kind: 'bookmark',
      resourceVersion,
    });
  });

  it('carries the Status that ends the stream', () => {
    const object = { code: 410, reason: 'Expired', message: 'too old' };

    assert.deepEqual(read({ type: 'ERROR', object }), {
      kind: 'failure',
      failure: { code: 410, reason: 'Expired' },
      message: 'too old',
    });
  });

  it('is garbage when it is anything else', () => {
    const metadata = { name: 'a', resourceVersion: '7' };
    const lines = [
      '{',
      '[]',
      'null',
      '1',
      { type: 'ADDED' },
      { type: 'ADDED', object: { metadata: { name: 'a' } } },
      { type: 'ADDED', object: { metadata: { resourceVersion: '7' } } },
      { type: 'ADDED', object: { metadata: { ...metadata, name: 1 } } },
      { type: 'CHANGED', object: { metadata } },
      { object: { metadata } },
    ];

    for (const line of lines) assert.equal(read(line).kind, 'garbage', JSON.stringify(line));
  });

  it('may be as long as the bound, and not one byte longer', () => {
    const splitter = new LineSplitter(4);

    assert.deepEqual(
      [...splitter.push(Buffer.from('ab')), ...splitter.push(Buffer.from('cd\n'))],
      ['abcd'],
    );
    assert.throws(() => [...splitter.push(Buffer.from('abcde'))], RangeError);
  });
});
