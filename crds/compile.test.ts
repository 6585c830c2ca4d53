import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CompiledPolicy, CompiledRule } from '../contract/bundle.ts';
import { bundleOf, COMPILED_MAX, compilePolicy } from './compile.ts';
import type { CompileContext } from './compile.ts';
import type { RateLimitPolicy } from './policy.ts';
import type { Problem } from './problem.ts';
import { validatePolicy } from './validation.ts';

const BUCKETS = [{ capacity: 100, refill: { tokens: 100, every: '1m' } }];
const LIMIT = { capacity: 100, unitsPerToken: 600_000, unitsPerTick: 1, tickUs: 1 };
const CONTEXT: CompileContext = { uid: 'u-1', generation: 7, replicas: 3 };
const EC = {
  kty: 'EC',
  crv: 'P-256',
  x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
};
const JWT = { issuer: 'i', jwks: { inline: JSON.stringify({ keys: [EC] }) } };

function policy(spec: object = {}, metadata: object = {}): RateLimitPolicy {
  const outcome = validatePolicy({
    apiVersion: 'weir.dev/v1alpha1',
    kind: 'RateLimitPolicy',
    metadata: { name: 'x', namespace: 'shop', ...metadata },
    spec: { selector: {}, rules: [{ name: 'all', buckets: BUCKETS }], ...spec },
  });
  if (outcome.kind === 'valid') return outcome.policy;
  return assert.fail(JSON.stringify(outcome.problems));
}

function compiled(spec: object = {}, context: Partial<CompileContext> = {}): CompiledPolicy {
  const outcome = compilePolicy(policy(spec), { ...CONTEXT, ...context });
  return outcome.kind === 'compiled'
    ? outcome.policy
    : assert.fail(JSON.stringify(outcome.problems));
}

function problems(spec: object, context: Partial<CompileContext> = {}): readonly Problem[] {
  const outcome = compilePolicy(policy(spec), { ...CONTEXT, ...context });
  return outcome.kind === 'problems' ? outcome.problems : [];
}

function ruleOf(rule: object, spec: object = {}): CompiledRule {
  const [first] = compiled({ ...spec, rules: [{ name: 'all', buckets: BUCKETS, ...rule }] }).rules;
  return first ?? assert.fail('the rule is left out');
}

describe('a compiled policy', () => {
  it('has every default written out', () => {
    assert.deepEqual(compiled(), {
      namespace: 'shop',
      name: 'x',
      uid: 'u-1',
      generation: 7,
      mode: 'Enforce',
      enforcePercent: 100,
      failureMode: 'Local',
      scope: 'Policy',
      replicas: 3,
      clientIP: { trustedHops: 0, trustedProxies: [], ipv6PrefixLength: 64 },
      response: { status: 429, quotaHeaders: 'RateLimit', headers: [] },
      except: [],
      rules: [
        {
          name: 'all',
          mode: 'Enforce',
          match: [],
          except: [],
          key: [],
          onMissingKey: 'ClientIP',
          tiers: [{ name: '-', match: [], buckets: [{ name: 'main', limit: LIMIT }] }],
          onNoTier: 'Skip',
          cost: { tokens: 1 },
        },
      ],
    });
  });

  it('is in the namespace default where it names none', () => {
    const outcome = compilePolicy(policy({}, { namespace: undefined }), CONTEXT);

    assert(outcome.kind === 'compiled');
    assert.equal(outcome.policy.namespace, 'default');
  });

  it('carries what was written', () => {
    const response = {
      status: 503,
      quotaHeaders: 'None',
      headers: [{ name: 'X-A', value: 'b' }],
      body: { contentType: 'text/plain', content: 'no' },
    };
    const clientIP = { trustedProxies: ['10.0.0.0/8'], ipv6PrefixLength: 56 };

    const result = compiled({
      mode: 'Enforce',
      enforcePercent: 0,
      failureMode: 'Closed',
      scope: 'Pod',
      clientIP,
      response,
      except: [{ methods: ['OPTIONS'] }],
    });

    assert.equal(result.enforcePercent, 0);
    assert.equal(result.failureMode, 'Closed');
    assert.equal(result.scope, 'Pod');
    assert.deepEqual(result.clientIP, { trustedHops: 0, ...clientIP });
    assert.deepEqual(result.response, response);
    assert.deepEqual(result.except, [{ methods: ['OPTIONS'] }]);
    assert.equal(compiled({ clientIP: { trustedHops: 2 } }).clientIP.trustedHops, 2);
  });

  it('names its workload exactly with the scope of one', () => {
    const context = { workload: 'deployment.api' };

    assert.equal(compiled({ scope: 'Workload' }, context).workload, 'deployment.api');
    assert(!('workload' in compiled({ scope: 'Policy' }, context)));
    assert.deepEqual(
      problems({ scope: 'Workload' }).map(({ path, reason }) => [path, reason]),
      [['spec.scope', 'reference']],
    );
  });
});

describe('a compiled rule', () => {
  it('is left out when disabled, and softened by the mode of the policy and its own', () => {
    assert.deepEqual(
      compiled({ rules: [{ name: 'a', mode: 'Disabled', buckets: BUCKETS }] }).rules,
      [],
    );
    assert.equal(ruleOf({ mode: 'Shadow' }).mode, 'Shadow');
    assert.equal(ruleOf({}, { mode: 'Shadow' }).mode, 'Shadow');
    assert.equal(ruleOf({}, { mode: 'Disabled' }).mode, 'Enforce');
  });

  it('has names of headers in lower case, of cookies and parameters as written', () => {
    const key = [
      { header: { name: 'X-Key' } },
      { cookie: { name: 'SID' } },
      { query: { name: 'Q' } },
    ];
    const match = [
      {
        headers: [{ name: 'X-Plan', value: 'A' }],
        query: [{ name: 'V', type: 'Present', invert: true }],
      },
    ];

    const rule = ruleOf({ key, match });

    assert.deepEqual(rule.key, [
      { kind: 'header', name: 'x-key' },
      { kind: 'cookie', name: 'SID' },
      { kind: 'query', name: 'Q' },
    ]);
    assert.deepEqual(rule.match, [
      {
        headers: [{ name: 'x-plan', type: 'Exact', value: 'A', invert: false }],
        query: [{ name: 'V', type: 'Present', value: '', invert: true }],
      },
    ]);
  });

  it('has every other kind of key as written', () => {
    const key = [
      { clientIP: {} },
      { claim: { path: ['a', 'b.c'] } },
      { path: {} },
      { pathSegment: { index: 2 } },
      { method: {} },
      { host: {} },
      { constant: { value: 'k' } },
    ];

    const rule = ruleOf({ key, onMissingKey: 'Deny' }, { jwt: JWT });

    assert.equal(rule.onMissingKey, 'Deny');
    assert.deepEqual(rule.key, [
      { kind: 'clientIP' },
      { kind: 'claim', path: ['a', 'b.c'] },
      { kind: 'path' },
      { kind: 'pathSegment', index: 2 },
      { kind: 'method' },
      { kind: 'host' },
      { kind: 'constant', value: 'k' },
    ]);
    assert.deepEqual(ruleOf({ key: [{ cel: { expression: 'request.host' } }] }).key, [
      { kind: 'cel', expression: 'request.host' },
    ]);
  });

  it('has the other conditions as written', () => {
    const match = {
      methods: ['GET'],
      path: { type: 'Regex', value: '^/a' },
      hosts: ['a.example'],
      clientCIDRs: ['10.0.0.0/8'],
      claims: [{ path: ['a'], value: 'b' }],
      cel: { expression: 'true' },
    };

    assert.deepEqual(ruleOf({ match: [match], except: [match] }, { jwt: JWT }).except, [
      { ...match, claims: [{ path: ['a'], value: 'b', invert: false }] },
    ]);
  });

  it('has its tiers in order', () => {
    const [rule] = compiled({
      rules: [
        {
          name: 'all',
          onNoTier: 'Deny',
          tiers: [
            { name: 'a', match: [{ methods: ['GET'] }], buckets: [{ name: 'b', ...BUCKETS[0] }] },
          ],
        },
      ],
    }).rules;

    assert.equal(rule?.onNoTier, 'Deny');
    assert.deepEqual(rule.tiers, [
      { name: 'a', match: [{ methods: ['GET'] }], buckets: [{ name: 'b', limit: LIMIT }] },
    ]);
  });

  it('has the cost of a request, from a header and from the response', () => {
    const header = { name: 'X-Cost', default: 2, max: 50 };
    const response = { header: { name: 'X-Took', max: 9 } };

    assert.deepEqual(ruleOf({ cost: { tokens: 5 } }).cost, { tokens: 5 });
    assert.deepEqual(ruleOf({ cost: { header } }).cost, {
      tokens: 2,
      header: { name: 'x-cost', max: 50 },
    });
    assert.deepEqual(ruleOf({ cost: { response } }).cost, {
      tokens: 1,
      response: { name: 'x-took', max: 9 },
    });
  });
});

describe('what only the compiler finds', () => {
  const bad = { cel: { expression: 'request.nope' } };

  it('is CEL, wherever it stands, all of it in one pass', () => {
    const rule = {
      name: 'a',
      match: [bad],
      except: [bad],
      key: [bad],
      onNoTier: 'Skip',
      tiers: [{ name: 't', match: [bad], buckets: BUCKETS }],
    };

    const found = problems({
      except: [bad],
      rules: [rule, { ...rule, name: 'b', mode: 'Disabled' }],
    });

    const inRule = (index: number): string[] =>
      ['match[0]', 'except[0]', 'key[0]', 'tiers[0].match[0]'].map(
        (place) => `spec.rules[${String(index)}].${place}.cel.expression`,
      );
    assert.deepEqual(
      found.map(({ path }) => path),
      ['spec.except[0].cel.expression', ...inRule(0), ...inRule(1)],
    );
    assert.deepEqual(
      new Set(found.map(({ reason, excerpt }) => `${reason} ${String(excerpt)}`)),
      new Set(['cel request.nope\n        ^']),
    );
  });

  it('is an expression that uses claims of no token', () => {
    const cel = { expression: `'a' == claims.plan` };
    const rules = [{ name: 'a', match: [{ cel }], buckets: BUCKETS }];

    const [found, ...others] = problems({ rules });

    assert.deepEqual(others, []);
    assert.equal(found?.message, 'claims need spec.jwt');
    assert.equal(found.reason, 'cel');
    assert.equal(found.excerpt, `'a' == claims.plan\n       ^`);
    assert.deepEqual(problems({ rules, jwt: JWT }), []);
  });

  it('is a key set that is none', () => {
    const jwt = { issuer: 'i', jwks: { inline: '{"keys": []}' } };

    assert.deepEqual(
      problems({ jwt }).map(({ path, reason }) => [path, reason]),
      [['spec.jwt.jwks.inline', 'reference']],
    );
  });

  it('is a key set to be fetched where nobody fetches', () => {
    const jwt = { issuer: 'i', audiences: ['a'], header: 'X-Token', jwks: { uri: 'https://a/j' } };

    assert.deepEqual(
      problems({ jwt }).map(({ path, advice }) => [path, advice]),
      [['spec.jwt.jwks.uri', 'use inline']],
    );
    assert.deepEqual(compiled({ jwt }, { keys: [EC] }).jwt, {
      issuer: 'i',
      audiences: ['a'],
      header: 'x-token',
      keys: [EC],
    });
  });

  it('is the size: 256 KiB pass, a byte more does not', () => {
    const withBytes = (count: number): object => ({
      rules: Array.from({ length: 64 }, (_, index) => ({
        name: `r${String(index)}`,
        buckets: BUCKETS,
        match: Array.from({ length: 6 }, (_item, place) => ({
          path: { type: 'Exact', value: `/${'x'.repeat(padding(count, index * 6 + place))}` },
        })),
      })),
    });
    // Spreads `count` characters over 384 paths.
    const padding = (count: number, place: number): number =>
      Math.floor((count + 383 - place) / 384);
    const empty = Buffer.byteLength(JSON.stringify(compiled(withBytes(0))));

    assert.deepEqual(problems(withBytes(COMPILED_MAX - empty)), []);
    const [found] = problems(withBytes(COMPILED_MAX - empty + 1));
    assert.equal(found?.reason, 'too-large');
    assert.equal(found.message, 'compiles to 262145 bytes, more than 262144');
  });
});

describe('a bundle', () => {
  const a = compiled();
  const b = { ...compiled(), name: 'a' };

  it('has one version for the same policies, in any order', () => {
    assert.deepEqual(bundleOf([a, b]), bundleOf([b, a]));
    assert.deepEqual(
      bundleOf([a, b]).policies.map(({ name }) => name),
      ['a', 'x'],
    );
    assert.deepEqual(bundleOf([a, a]).policies, [a, a]);
  });

  it('has another version for any other policy', () => {
    const versions = [[], [a], [b], [a, b], [{ ...a, generation: 8 }]].map(
      (policies) => bundleOf(policies).version,
    );

    assert.equal(new Set(versions).size, versions.length);
    assert(versions.every((version) => /^[0-9a-f]{32}$/.test(version)));
  });

  it('is plain JSON', () => {
    const bundle = bundleOf([a, b]);

    assert.deepEqual(JSON.parse(JSON.stringify(bundle)), bundle);
  });
});
