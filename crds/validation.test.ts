import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ISSUES_MAX, validatePolicy } from './validation.ts';

const BUCKETS = [{ capacity: 100, refill: { tokens: 100, every: '1m' } }];

function policy(spec: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    apiVersion: 'weir.dev/v1alpha1',
    kind: 'RateLimitPolicy',
    metadata: { name: 'x' },
    spec: { selector: {}, rules: [{ name: 'all', buckets: BUCKETS }], ...spec },
  };
}

function problemsOf(value: unknown): string[] {
  const outcome = validatePolicy(value);
  if (outcome.kind === 'valid') return [];
  return outcome.problems.map(({ path, message, advice }) => `${path}: ${message}: ${advice}`);
}

describe('validation', () => {
  it('writes out the defaults of the schema', () => {
    const outcome = validatePolicy(policy({ response: {}, clientIP: {} }));

    assert(outcome.kind === 'valid');
    const { mode, failureMode, scope, response, clientIP } = outcome.policy.spec;
    assert.deepEqual(
      { mode, failureMode, scope, response, clientIP },
      {
        mode: 'Enforce',
        failureMode: 'Local',
        scope: 'Policy',
        response: { status: 429, quotaHeaders: 'RateLimit' },
        clientIP: { ipv6PrefixLength: 64 },
      },
    );
  });

  it('takes what the API server adds to an object', () => {
    const stored = {
      ...policy(),
      metadata: {
        name: 'x',
        namespace: 'shop',
        uid: 'b0a1',
        generation: 3,
        resourceVersion: '7',
        creationTimestamp: '2026-01-01T00:00:00Z',
        labels: { a: 'b' },
        annotations: { c: 'd' },
        managedFields: [{ manager: 'kubectl' }],
        ownerReferences: [],
        finalizers: ['x'],
      },
      status: { conditions: [{ type: 'Accepted' }] },
    };

    const outcome = validatePolicy(stored);

    assert(outcome.kind === 'valid');
    assert.equal(outcome.policy.metadata.uid, 'b0a1');
    assert.equal(outcome.policy.metadata.generation, 3);
  });

  it('finds every problem in one pass', () => {
    const faulty = policy({
      mode: 'off',
      portz: [],
      rules: [{ name: 'A', buckets: [{ capacity: 0, refill: { tokens: 1, every: '1x' } }] }],
    });

    assert.deepEqual(
      problemsOf(faulty).map((text) => text.split(': ')[0]),
      [
        'spec.portz',
        'spec.rules[0].name',
        'spec.rules[0].buckets[0].capacity',
        'spec.rules[0].buckets[0].refill.every',
        'spec.mode',
      ],
    );
  });

  it('does not say that a misspelt field is missing as well', () => {
    const { apiVersion, kind, metadata, spec } = policy();

    assert.deepEqual(problemsOf({ apiVersion, kind, metdata: metadata, spec }), [
      'metdata: is not a field: did you mean metadata?',
    ]);
  });

  it('marks unknown fields, so that an operator can tell them apart', () => {
    const outcome = validatePolicy(policy({ targetRefs: [] }));

    assert(outcome.kind === 'invalid');
    assert.deepEqual(
      outcome.problems.map(({ reason, line }) => ({ reason, line })),
      [{ reason: 'unknown-field', line: 0 }],
    );
  });

  it('does not look into a field it does not know', () => {
    assert.equal(problemsOf(policy({ targetRefs: [{ capcity: 1 }] })).length, 1);
  });

  it('says so where an object has no fields at all', () => {
    const rules = [{ name: 'all', key: [{ path: { index: 1 } }], buckets: BUCKETS }];

    assert.deepEqual(problemsOf(policy({ rules })), [
      'spec.rules[0].key[0].path.index: is not a field: fields here: none',
    ]);
  });

  it('refuses a field by the name of the prototype', () => {
    const hostile: unknown = JSON.parse('{"__proto__": {"app": "api"}, "a": "b"}');

    assert.deepEqual(problemsOf(policy({ selector: { matchLabels: hostile } })), [
      'spec.selector.matchLabels.__proto__: is not a field: fields here: none',
    ]);
    assert.match(
      problemsOf(policy({ ['constructor']: 1 })).join(),
      /^spec\.constructor: is not a field/,
    );
  });

  it('takes null for absent, and refuses it in a list', () => {
    assert.deepEqual(problemsOf(policy({ mode: null, except: undefined })), []);
    assert.deepEqual(problemsOf(policy({ except: [null] })), [
      'spec.except[0]: is null, not an object: use an object with some of methods, path, headers, query, hosts, clientCIDRs, claims, cel',
    ]);
  });

  it('names the kind of what is no policy', () => {
    const values = [undefined, null, [], 'a', 1, true];

    const told = values.map((value) => problemsOf(value).join());

    assert.deepEqual(
      told.map((text) => text.slice(2, text.indexOf(','))),
      ['is empty', 'is empty', 'is a list', 'is a string', 'is a number', 'is a boolean'],
    );
  });

  it('refuses another kind or version with one sentence', () => {
    assert.deepEqual(problemsOf({ kind: 'Deployment', spec: { replicas: 1 } }).length, 1);
    assert.match(
      problemsOf({ ...policy(), apiVersion: 'weir.dev/v2' }).join(),
      /^apiVersion: "weir.dev\/v2" is not a version/,
    );
    assert.match(
      problemsOf({ ...policy(), apiVersion: 1 }).join(),
      /^apiVersion: 1 is not one of weir\.dev\/v1alpha1/,
    );
  });

  it('says what to write where something is missing', () => {
    assert.deepEqual(problemsOf({}), [
      'apiVersion: is missing: write apiVersion: weir.dev/v1alpha1',
      'kind: is missing: write kind: RateLimitPolicy',
      'metadata: is missing: write metadata: at least a name, {name: public-api}',
      'spec: is missing: write spec: What is limited, and how.',
    ]);
  });

  it('says how to write what has the wrong type', () => {
    const rule = (fields: object): unknown =>
      policy({ rules: [{ name: 'all', buckets: BUCKETS, ...fields }] });
    const cases: [unknown, string][] = [
      [
        rule({ name: true }),
        'spec.rules[0].name: is true, not a string: quote it: unquoted yes, no, on, off, true and false are booleans in YAML',
      ],
      [
        rule({ name: 8 }),
        'spec.rules[0].name: is 8, not a string: quote it: an unquoted number is no string in YAML',
      ],
      [
        rule({ buckets: [{ capacity: 1, refill: { tokens: 1, every: 2 } }] }),
        'spec.rules[0].buckets[0].refill.every: is 2, not a string: give it a unit, such as 2s',
      ],
      [rule({ name: {} }), 'spec.rules[0].name: is an object, not a string: use a string'],
      [rule({ name: [] }), 'spec.rules[0].name: is a list, not a string: use a string'],
      [
        rule({ key: ['clientIP'] }),
        'spec.rules[0].key[0]: is the string "clientIP", not an object: write it as an object: { clientIP: {} }',
      ],
      [
        rule({ match: 'GET' }),
        'spec.rules[0].match: is the string "GET", not a list: write it as a list: [{ methods: [GET] }]',
      ],
      [
        rule({ match: { methods: ['GET'] } }),
        'spec.rules[0].match: is an object, not a list: write it as a list: [{ methods: [GET] }]',
      ],
      [
        policy({ enforcePercent: 1.5 }),
        'spec.enforcePercent: is 1.5, not an integer: use an integer',
      ],
      [
        policy({ selector: 'app' }),
        'spec.selector: is the string "app", not an object: use an object with some of matchLabels, matchExpressions',
      ],
      [
        policy({ mode: 7 }),
        'spec.mode: 7 is not one of Enforce, Shadow, Disabled: use one of Enforce, Shadow, Disabled',
      ],
      [
        policy({ selector: { matchLabels: [] } }),
        'spec.selector.matchLabels: is a list, not an object: use an object',
      ],
    ];

    for (const [value, told] of cases) assert.deepEqual(problemsOf(value), [told]);
  });

  it('says that the form is wrong where the length is wrong as well', () => {
    const refill = { tokens: 1, every: '5 seconds' };
    const rule = { name: 'all', buckets: [{ capacity: 1, refill }] };
    const network = 'from the office, and from the other office too';

    const told = problemsOf(policy({ rules: [{ ...rule, match: [{ clientCIDRs: [network] }] }] }));

    assert.deepEqual(told, [
      'spec.rules[0].match[0].clientCIDRs[0]: must be a network such as 10.0.0.0/8 or fd00::/8, without host bits: use a network such as 10.0.0.0/8 or fd00::/8',
      'spec.rules[0].buckets[0].refill.every: "5 seconds" does not have the form: use one integer and one unit of ms, s, m, h, d, such as 500ms, 90m or 1d; five digits at most',
    ]);
  });

  it('says of what is no list only that, whatever length it has', () => {
    const told = (key: unknown): string[] =>
      problemsOf(policy({ rules: [{ name: 'all', key, buckets: BUCKETS }] }));

    for (const key of ['', 'X-Api-Key', { length: 0 }, { length: 9 }]) {
      assert.match(told(key).join('\n'), /^spec\.rules\[0\]\.key.*: is [^\n]*, not a list: .*$/m);
    }
  });

  it('stops at a thousand faults', () => {
    const rule = { match: Array(16).fill('x y'), buckets: BUCKETS };
    const rules = Array.from({ length: 64 }, (_, index) => ({ name: `r${index}`, ...rule }));

    assert.equal(problemsOf(policy({ rules: rules.slice(0, 62) })).length, 62 * 16);
    assert.equal(problemsOf(policy({ rules })).length, ISSUES_MAX);
  });

  it('ends on nesting without end', () => {
    let nested: unknown = {};
    for (let depth = 0; depth < 20_000; depth += 1) nested = { spec: nested };

    assert(problemsOf(policy({ nested })).length > 0);
  });

  it('throws for no value at all', () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true }), (value) => {
        assert.equal(validatePolicy(value).kind, 'invalid');
      }),
      { numRuns: 500, verbose: true },
    );
  });
});
