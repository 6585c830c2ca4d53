import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { freshStarts } from './identity.ts';
import type { RateLimitPolicy } from './policy.ts';
import { validatePolicy } from './validation.ts';

const BUCKETS = [{ capacity: 100, refill: { tokens: 100, every: '1m' } }];

function policy(rule: object = {}, spec: object = {}): RateLimitPolicy {
  const written = { name: 'r', ...('tiers' in rule ? {} : { buckets: BUCKETS }), ...rule };
  const outcome = validatePolicy({
    apiVersion: 'weir.dev/v1alpha1',
    kind: 'RateLimitPolicy',
    metadata: { name: 'p', namespace: 'shop' },
    spec: { selector: {}, rules: [written], ...spec },
  });
  return outcome.kind === 'valid' ? outcome.policy : assert.fail(JSON.stringify(outcome.problems));
}

function fresh(before: RateLimitPolicy | undefined, after: RateLimitPolicy): string[] {
  return freshStarts(before, after).map(({ bucket, cause }) => `${bucket} ${cause}`);
}

describe('an edit of a policy', () => {
  const key = [{ header: { name: 'X-Key' } }];

  it('keeps every level when limits, matches, modes or costs change', () => {
    const before = policy({ key }, { mode: 'Shadow' });
    const after = policy(
      {
        key,
        onMissingKey: 'Skip',
        mode: 'Shadow',
        cost: { tokens: 2 },
        match: [{ methods: ['GET'] }],
        buckets: [{ capacity: 7, refill: { tokens: 1, every: '1d' } }],
      },
      { failureMode: 'Open', clientIP: { trustedHops: 1 } },
    );

    assert.deepEqual(fresh(before, after), []);
  });

  it('keeps levels when a header of the key is written in another case, or main is written out', () => {
    assert.deepEqual(fresh(policy({ key }), policy({ key: [{ header: { name: 'x-key' } }] })), []);
    assert.deepEqual(fresh(policy(), policy({ buckets: [{ name: 'main', ...BUCKETS[0] }] })), []);
  });

  it('starts afresh with another key or scope', () => {
    assert.deepEqual(fresh(policy(), policy({ key })), ['shop/p/r/-/main key']);
    assert.deepEqual(fresh(policy({ key }), policy({ key: [...key, { path: {} }] })), [
      'shop/p/r/-/main key',
    ]);
    assert.deepEqual(fresh(policy(), policy({}, { scope: 'Pod' })), ['shop/p/r/-/main scope']);
  });

  it('starts afresh with another name of a rule, tier or bucket', () => {
    assert.deepEqual(fresh(policy(), policy({ name: 'q' })), ['shop/p/q/-/main new-bucket']);
    assert.deepEqual(fresh(policy(), policy({ buckets: [{ name: 'b', ...BUCKETS[0] }] })), [
      'shop/p/r/-/b new-bucket',
    ]);
    const tier = (name: string): RateLimitPolicy => policy({ tiers: [{ name, buckets: BUCKETS }] });
    assert.deepEqual(fresh(tier('a'), tier('b')), ['shop/p/r/b/main new-bucket']);
    assert.deepEqual(fresh(tier('a'), tier('a')), []);
  });

  it('starts afresh when buckets become tiers', () => {
    assert.deepEqual(fresh(policy(), policy({ tiers: [{ name: 'a', buckets: BUCKETS }] })), [
      'shop/p/r/a/main new-bucket',
    ]);
  });

  it('is of a policy in the namespace default where it names none', () => {
    const { metadata, ...rest } = policy();

    assert.deepEqual(fresh(undefined, { ...rest, metadata: { name: metadata.name } }), [
      'default/p/r/-/main new-policy',
    ]);
  });

  it('starts afresh with a new policy', () => {
    assert.deepEqual(fresh(undefined, policy()), ['shop/p/r/-/main new-policy']);
  });
});
