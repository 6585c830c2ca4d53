import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type ConfigFrame,
  type PartFrame,
  PUSH_BYTES_MAX,
  PUSHED_POLICIES_MAX,
} from '../../contract/stream.ts';
import { compiledPolicy } from '../../test/support/compiled-policy.ts';
import { PushAssembly } from './push-assembly.ts';

const policy = compiledPolicy();

function head(nonce: number, rest: Partial<ConfigFrame> = {}): ConfigFrame {
  return {
    type: 'config',
    nonce,
    version: 'v',
    policies: [policy],
    settings: {},
    issuedAt: '',
    ...rest,
  };
}

function part(nonce: number, rest: Partial<PartFrame> = {}): PartFrame {
  return { type: 'part', nonce, policies: [policy], ...rest };
}

describe('a push in parts', () => {
  it('is whole with its last part', () => {
    const assembly = new PushAssembly();

    const kinds = [
      assembly.add(head(1, { more: true }), 1),
      assembly.add(part(1, { more: true }), 1),
      assembly.add(part(1), 1),
    ];

    assert.deepEqual(
      kinds.map(({ kind }) => kind),
      ['more', 'more', 'push'],
    );
    assert(kinds[2]?.kind === 'push');
    assert.equal(kinds[2].push.policies.length, 3);
  });

  it('is dropped when a newer one begins', () => {
    const assembly = new PushAssembly();
    assembly.add(head(1, { more: true }), 1);

    const newer = assembly.add(head(2), 1);
    const late = assembly.add(part(1), 1);

    assert(newer.kind === 'push');
    assert.equal(newer.push.policies.length, 1);
    assert.equal(late.kind, 'stale');
  });

  it('of an older nonce is stale', () => {
    const assembly = new PushAssembly();
    assembly.add(head(2), 1);

    assert.equal(assembly.add(head(2), 1).kind, 'stale');
    assert.equal(assembly.add(head(1), 1).kind, 'stale');
  });

  it('with a part of another one in between is broken', () => {
    const assembly = new PushAssembly();
    assembly.add(head(1, { more: true }), 1);

    assert.equal(assembly.add(part(3), 1).kind, 'broken');
  });

  it('may hold as many policies and bytes as the bounds, and no more', () => {
    const most = Array.from({ length: PUSHED_POLICIES_MAX }, () => policy);
    const begin = (bytes: number): PushAssembly => {
      const assembly = new PushAssembly();
      assembly.add(head(1, { policies: most.slice(1), more: true }), bytes);
      return assembly;
    };

    assert.equal(begin(1).add(part(1), PUSH_BYTES_MAX - 1).kind, 'push');
    assert.equal(begin(2).add(part(1), PUSH_BYTES_MAX - 1).kind, 'broken');
    assert.equal(begin(1).add(part(1, { policies: [policy, policy] }), 1).kind, 'broken');
  });
});
