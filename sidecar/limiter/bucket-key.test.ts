import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { tierOf } from '../../test/support/limiter-fixture.ts';
import {
  bucketKey,
  bucketPath,
  hashKeyText,
  hashTag,
  overflowKey,
  partitionOf,
} from './bucket-key.ts';

const { policy } = tierOf({ policy: { namespace: 'shop', uid: '6f1c' } });

describe('the key of a bucket', () => {
  test('names policy, rule, tier and bucket, and hides the client', () => {
    const key = bucketKey(
      hashTag(policy, 0, 1),
      bucketPath('per-client', 'free', 'burst'),
      hashKeyText('x'),
    );

    assert.equal(key, 'weir1:{shop/6f1c}:per-client:free:burst:LXEWQrcmsEQBYnyp-6wy9Q');
  });

  test('has the owner in its tag with scope Workload', () => {
    const workload = { ...policy, scope: 'Workload', workload: 'deployment.api' } as const;

    assert.equal(hashTag(workload, 0, 1), 'shop/6f1c/deployment.api');
  });

  test('has its partition in its tag where there are several', () => {
    assert.equal(hashTag(policy, 3, 8), 'shop/6f1c/3');
  });

  test('keeps 128 bits of the hash in 22 characters of the base64url alphabet', () => {
    assert.match(hashKeyText('{evil}:*\r\n'), /^[\w-]{22}$/);
  });

  test('spreads over all partitions, by the key alone', () => {
    const seen = new Set(Array.from({ length: 200 }, (_, i) => partitionOf(`key ${i}`, 8)));

    assert.deepEqual([...seen].sort(), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert.equal(partitionOf('key 1', 1), 0);
  });

  test('shares one overflow bucket with its neighbours', () => {
    const tag = hashTag(policy, 0, 1);
    const path = bucketPath('rule', '-', 'main');
    const keys = ['a', 'b'].map((text) => overflowKey(bucketKey(tag, path, hashKeyText(text))));

    assert.deepEqual(keys, [
      'weir1:{shop/6f1c}:rule:-:main:overflow',
      'weir1:{shop/6f1c}:rule:-:main:overflow',
    ]);
  });
});
