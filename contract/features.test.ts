import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CompiledFieldMatch, CompiledMatch, CompiledPolicy, CompiledRule } from './bundle.ts';
import { FEATURES, featuresOf } from './features.ts';

const LIMIT = { capacity: 1, unitsPerToken: 1, unitsPerTick: 1, tickUs: 1 } as const;
const FIELDS: readonly CompiledFieldMatch[] = (
  ['Exact', 'Prefix', 'Regex', 'Present'] as const
).map((type) => ({ name: 'x', type, value: '', invert: false }));
const MATCHES: readonly CompiledMatch[] = [
  ...(['Exact', 'Prefix', 'Regex'] as const).map((type) => ({ path: { type, value: '/' } })),
  { methods: ['GET'], headers: FIELDS, query: FIELDS, hosts: ['a'], clientCIDRs: ['::/0'] },
  { claims: [{ path: ['sub'], value: 'a', invert: false }], cel: { expression: 'true' } },
];

function compiledPolicy(fields: Partial<CompiledPolicy> = {}): CompiledPolicy {
  return {
    ...{ namespace: 'shop', name: 'api', uid: 'uid-api', generation: 1 },
    ...{ mode: 'Enforce', enforcePercent: 100, failureMode: 'Local', scope: 'Policy', replicas: 1 },
    clientIP: { trustedHops: 0, trustedProxies: [], ipv6PrefixLength: 64 },
    response: { status: 429, quotaHeaders: 'RateLimit', headers: [] },
    except: [],
    rules: [rule()],
    ...fields,
  };
}

function rule(fields: Partial<CompiledRule> = {}): CompiledRule {
  return {
    ...{ name: 'per-key', mode: 'Enforce', match: [], except: [] },
    key: [{ kind: 'header', name: 'x-api-key' }],
    onMissingKey: 'ClientIP',
    tiers: [{ name: '-', match: [], buckets: [{ name: 'main', limit: LIMIT }] }],
    onNoTier: 'Skip',
    cost: { tokens: 1 },
    ...fields,
  };
}

/** Everything the contract knows, spread over as many policies as it has exclusive choices. */
const EVERYTHING: readonly CompiledPolicy[] = [
  compiledPolicy({
    ports: [80],
    jwt: { audiences: [], header: 'authorization', keys: [] },
    rules: [
      rule({
        match: MATCHES,
        onNoTier: 'Deny',
        cost: { tokens: 1, header: { name: 'a', max: 2 } },
      }),
      rule({ mode: 'Shadow', cost: { tokens: 1, response: { name: 'a', max: 2 } } }),
      ...(['Skip', 'Deny', 'ClientIP', 'Shared'] as const).map((onMissingKey) =>
        rule({ onMissingKey }),
      ),
      rule({
        key: [
          ...([{ kind: 'clientIP' }, { kind: 'path' }, { kind: 'method' }] as const),
          ...([{ kind: 'host' }, { kind: 'pathSegment', index: 1 }] as const),
          ...([
            { kind: 'cookie', name: 'a' },
            { kind: 'query', name: 'a' },
          ] as const),
          ...([
            { kind: 'claim', path: ['a'] },
            { kind: 'constant', value: 'a' },
          ] as const),
          { kind: 'cel', expression: '"a"' },
        ],
      }),
    ],
  }),
  compiledPolicy({
    ...{ mode: 'Shadow', failureMode: 'Open', scope: 'Workload' },
    response: { status: 429, quotaHeaders: 'XRateLimit', headers: [] },
  }),
  compiledPolicy({
    ...{ mode: 'Disabled', failureMode: 'Closed', scope: 'Pod' },
    response: { status: 429, quotaHeaders: 'None', headers: [] },
  }),
];

describe('the features of a compiled policy', () => {
  it('are, over all that can be written, exactly those the contract lists', () => {
    const found = new Set(EVERYTHING.flatMap((policy) => [...featuresOf(policy)]));

    assert.deepEqual([...found].toSorted(), FEATURES.toSorted());
  });

  it('are found wherever a match may stand', () => {
    const match: readonly CompiledMatch[] = [{ cel: { expression: 'true' } }];
    const tiers = [{ name: 'gold', match, buckets: [{ name: 'main', limit: LIMIT }] }];
    const places = [
      { except: match },
      { rules: [rule({ match })] },
      { rules: [rule({ except: match })] },
      { rules: [rule({ tiers })] },
    ];

    const found = places.map((fields) => featuresOf(compiledPolicy(fields)).has('match:cel'));

    assert.deepEqual(found, [true, true, true, true]);
    assert.equal(featuresOf(compiledPolicy()).has('match:cel'), false);
  });
});
