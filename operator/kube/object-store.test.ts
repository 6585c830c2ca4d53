import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Partition } from './object-store.ts';
import type { KubeObject } from './object.ts';

interface Policy extends KubeObject {
  readonly spec: Readonly<Record<string, string>>;
}

function policy(spec: Policy['spec'], resourceVersion = '7'): Policy {
  return { metadata: { namespace: 'shop', name: 'api', uid: 'u', resourceVersion }, spec };
}

describe('a new list', () => {
  it('changes nothing where it brings what is known', () => {
    const partition = new Partition<Policy>();
    partition.set(policy({ mode: 'Enforce' }));

    assert.deepEqual([...partition.replace([policy({ mode: 'Enforce' })])], []);
  });

  it('tells of a field that the same version has now, since its definition knows it', () => {
    const partition = new Partition<Policy>();
    const before = policy({});
    partition.set(before);
    const after = policy({ jitter: '5s' });

    const changes = [...partition.replace([after])];

    assert.deepEqual(changes, [{ key: 'shop/api', before, after }]);
    assert.deepEqual(partition.get('shop/api'), after);
  });
});
