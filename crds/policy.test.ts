// Both sides of every bound are in test/conformance/documents; here stand the words of refusals.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KEY_KINDS } from './key.ts';
import { policySpecSchema } from './policy.ts';
import { childrenOf, schemaAt } from './schema-tree.ts';
import { validatePolicy } from './validation.ts';

const BUCKETS = [{ capacity: 100, refill: { tokens: 100, every: '1m' } }];

function told(spec: object, rule: object = {}): string[] {
  const outcome = validatePolicy({
    apiVersion: 'weir.dev/v1alpha1',
    kind: 'RateLimitPolicy',
    metadata: { name: 'x' },
    spec: { selector: {}, rules: [{ name: 'all', buckets: BUCKETS, ...rule }], ...spec },
  });
  if (outcome.kind === 'valid') return [];
  return outcome.problems.map(({ path, message, advice }) => `${path}: ${message}: ${advice}`);
}

describe('a refusal', () => {
  it('of a number names the bounds', () => {
    assert.deepEqual(told({ enforcePercent: 101 }), [
      'spec.enforcePercent: is 101, above 100: use 0..100',
    ]);
    assert.deepEqual(told({ response: { status: 399 } }), [
      'spec.response.status: is 399, below 400: use 400..599',
    ]);
  });

  it('of a number beyond exact integers is told once', () => {
    assert.deepEqual(told({ enforcePercent: 2 ** 53 }), [
      'spec.enforcePercent: is 9007199254740992, above 100: use 0..100',
    ]);
    assert.deepEqual(told({ enforcePercent: -(2 ** 53) }), [
      'spec.enforcePercent: is -9007199254740992, below 0: use 0..100',
    ]);
  });

  it('of a word names the nearest, or all', () => {
    assert.deepEqual(told({ mode: 'enforce' }), [
      'spec.mode: "enforce" is not one of Enforce, Shadow, Disabled: did you mean Enforce?',
    ]);
    assert.deepEqual(told({ mode: 'Off' }), [
      'spec.mode: "Off" is not one of Enforce, Shadow, Disabled: use one of Enforce, Shadow, Disabled',
    ]);
  });

  it('of a list says how long it is', () => {
    const key = Array.from({ length: 9 }, () => ({ path: {} }));

    assert.deepEqual(told({}, { key }), [
      'spec.rules[0].key: has 9 items, more than 8: use at most 8',
    ]);
    assert.deepEqual(told({}, { key: [] }), [
      'spec.rules[0].key: is an empty list: write at least one item, or leave the field out where it is optional',
    ]);
  });

  it('of a regular expression says what RE2 says', () => {
    const advice = 'use RE2 syntax: no look-around, no back-references, repeats up to 1000';

    assert.deepEqual(told({}, { match: [{ path: { type: 'Regex', value: '[' } }] }), [
      `spec.rules[0].match[0].path.value: not a valid RE2 expression: missing closing ]: \`[\`: ${advice}`,
    ]);
    assert.deepEqual(told({}, { match: [{ query: [{ name: 'a', type: 'Regex', value: '(' }] }] }), [
      `spec.rules[0].match[0].query[0].value: not a valid RE2 expression: missing closing ): \`(\`: ${advice}`,
    ]);
  });

  it('of a port names both ways to write one', () => {
    const fault = (index: number): string =>
      `spec.ports[${String(index)}]: must be 1..65535 or a container port name: use a number such as 8080 or a name such as http`;

    assert.deepEqual(told({ ports: [true, {}, 1.5, '8080', 'http'] }), [0, 1, 2, 3].map(fault));
  });
});

describe('the kinds of a key', () => {
  it('are the fields of a part of the key', () => {
    const part = schemaAt(policySpecSchema, ['rules', 0, 'key', 0]);

    assert.deepEqual([...(childrenOf(part)?.fields.keys() ?? [])].toSorted(), KEY_KINDS.toSorted());
  });
});
