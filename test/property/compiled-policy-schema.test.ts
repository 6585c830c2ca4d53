import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compiledPolicy } from '../support/compiled-policy.ts';
import { checkPolicy } from '../../contract/compiled-policy-schema.ts';
import { FEATURES, featuresOf } from '../../contract/features.ts';

describe('a compiled policy from outside', () => {
  it('is taken as it is when in order, with what is not known here', () => {
    const policy = { ...compiledPolicy(), colour: 'red' };

    assert.deepEqual(checkPolicy(policy), { kind: 'policy', policy });
  });

  it('is refused with the path of what is wrong', () => {
    const policy = compiledPolicy();
    const rules = policy.rules.map((rule) => ({ ...rule, key: [{ kind: 'moon' }] }));

    const checked = checkPolicy({ ...policy, rules });

    assert.equal(checked.kind, 'invalid');
    assert.equal(checked.path, 'rules.0.key.0.kind');
  });

  it('is refused with a limit beyond exact arithmetic, and taken at its bound', () => {
    const withLimit = (unitsPerToken: number): unknown => {
      const policy = compiledPolicy();
      const limit = { capacity: 9, unitsPerToken, unitsPerTick: 1, tickUs: 1 };
      const tiers = [{ name: '-', match: [], buckets: [{ name: 'main', limit }] }];
      return { ...policy, rules: policy.rules.map((rule) => ({ ...rule, tiers })) };
    };

    assert.equal(checkPolicy(withLimit(1e15)).kind, 'policy');
    assert.equal(checkPolicy(withLimit(1e15 + 1)).kind, 'invalid');
  });

  it('is refused with a header that could end a line of a response', () => {
    const response = { ...compiledPolicy().response, headers: [{ name: 'a', value: 'b\r\nc: d' }] };

    assert.equal(checkPolicy(compiledPolicy({ response })).kind, 'invalid');
  });
});

describe('the features of a policy', () => {
  it('are known when the contract knows them', () => {
    assert.deepEqual(
      [...featuresOf(compiledPolicy({ ports: [80] }))].filter((one) => !FEATURES.includes(one)),
      [],
    );
  });

  it('show a field of a match that is not known here', () => {
    const except = [{ cel: { expression: 'true' }, moon: 'full' }];

    assert.deepEqual(
      [...featuresOf(compiledPolicy({ except }))].filter((one) => !FEATURES.includes(one)),
      ['match:moon'],
    );
  });
});
