import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CompiledPolicy } from '../contract/bundle.ts';
import { compilePolicy } from './compile.ts';
import { conflictsOf } from './conflicts.ts';
import { validatePolicy } from './validation.ts';

const BUCKETS = [{ capacity: 100, refill: { tokens: 100, every: '1m' } }];
const TIGHTER = [{ capacity: 10, refill: { tokens: 10, every: '1m' } }];

function policy(name: string, rules: object[], spec: object = {}): CompiledPolicy {
  const outcome = validatePolicy({
    apiVersion: 'weir.dev/v1alpha1',
    kind: 'RateLimitPolicy',
    metadata: { name, namespace: 'shop' },
    spec: { selector: {}, rules, ...spec },
  });
  if (outcome.kind === 'invalid') return assert.fail(JSON.stringify(outcome.problems));
  const compiled = compilePolicy(outcome.policy, { uid: name, generation: 1, replicas: 1 });
  return compiled.kind === 'compiled' ? compiled.policy : assert.fail('does not compile');
}

function found(...policies: CompiledPolicy[]): string[] {
  return conflictsOf(policies).map(({ kind, rules }) => `${kind} ${rules.join(' ')}`);
}

describe('rules of one workload', () => {
  const all = { name: 'all', buckets: BUCKETS };

  it('are equal when they say the same in other policies', () => {
    assert.deepEqual(found(policy('a', [all]), policy('b', [{ ...all, name: 'any' }])), [
      'equal shop/a/all shop/b/any',
    ]);
  });

  it('are equal when they say the same in one policy', () => {
    assert.deepEqual(found(policy('a', [all, { ...all, name: 'any' }])), [
      'equal shop/a/all shop/a/any',
    ]);
  });

  it('are contradictory when they allow the same requests something else', () => {
    const conflicts = conflictsOf([
      policy('a', [all]),
      policy('b', [{ ...all, buckets: TIGHTER }]),
    ]);

    assert.deepEqual(conflicts, [
      {
        kind: 'contradictory',
        rules: ['shop/a/all', 'shop/b/all'],
        message:
          'shop/a/all and shop/b/all limit the same requests differently: the tighter one decides',
      },
    ]);
  });

  it('may allow the same requests something else within one policy', () => {
    assert.deepEqual(found(policy('a', [all, { name: 'day', buckets: TIGHTER }])), []);
  });

  it('are compared without regard to the order of conditions', () => {
    const get = { methods: ['GET'] };
    const path = { path: { type: 'Prefix', value: '/a' } };

    assert.deepEqual(
      found(
        policy('a', [{ ...all, match: [get, path] }]),
        policy('b', [{ ...all, match: [path, get] }]),
      ),
      ['equal shop/a/all shop/b/all'],
    );
    assert.deepEqual(
      found(policy('a', [{ ...all, except: [get] }]), policy('b', [all], { except: [get] })),
      ['equal shop/a/all shop/b/all'],
    );
  });

  it('have nothing to do with each other when requests or clients differ', () => {
    const byHeader = { ...all, key: [{ header: { name: 'X' } }] };

    assert.deepEqual(
      found(policy('a', [all]), policy('b', [{ ...all, match: [{ methods: ['GET'] }] }])),
      [],
    );
    assert.deepEqual(found(policy('a', [all]), policy('b', [byHeader])), []);
    assert.deepEqual(
      found(policy('a', [byHeader]), policy('b', [{ ...byHeader, onMissingKey: 'Skip' }])),
      [],
    );
    assert.deepEqual(
      found(policy('a', [byHeader]), policy('b', [byHeader], { clientIP: { trustedHops: 1 } })),
      [],
    );
  });

  it('do not conflict with rules that are off', () => {
    assert.deepEqual(found(policy('a', [all]), policy('b', [all], { mode: 'Disabled' })), []);
    assert.deepEqual(found(policy('a', [all]), policy('b', [{ ...all, mode: 'Disabled' }])), []);
  });

  it('are reported as pairs, each once', () => {
    assert.equal(found(policy('a', [all]), policy('b', [all]), policy('c', [all])).length, 3);
  });
});
