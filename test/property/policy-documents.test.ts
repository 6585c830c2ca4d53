import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { stringify } from 'yaml';
import { createCelCompiler } from '../../crds/cel-environment.ts';
import { bundleOf, compilePolicy } from '../../crds/compile.ts';
import { conflictsOf } from '../../crds/conflicts.ts';
import { describePolicy } from '../../crds/describe.ts';
import { freshStarts } from '../../crds/identity.ts';
import { parsePolicyFile } from '../../crds/policy-file.ts';
import { UNITS_MAX } from '../../crds/limit.ts';
import { readDocument, readVerdicts } from '../conformance/verdicts.ts';

const cel = createCelCompiler();

/** Everything that is done with a text; throws only when something is broken. */
function useAll(text: string): 'policies' | 'problems' {
  const parsed = parsePolicyFile(text, 'p.yaml');
  if (parsed.kind === 'problems') {
    assert(parsed.problems.length > 0);
    for (const { line, column, message, advice } of parsed.problems) {
      assert(line >= 1 && column >= 1 && message !== '' && advice !== '');
    }
    return 'problems';
  }
  const compiled = parsed.documents.flatMap(({ policy }) => {
    assert.notEqual(describePolicy(policy), '');
    assert.deepEqual(freshStarts(policy, policy), []);
    const outcome = compilePolicy(policy, {
      cel,
      uid: 'u',
      generation: 1,
      replicas: 1,
      workload: 'deployment.a',
      keys: [],
    });
    return outcome.kind === 'compiled' ? [outcome.policy] : [];
  });
  conflictsOf(compiled);
  assert.deepEqual(bundleOf(compiled), bundleOf(compiled.toReversed()));
  return 'policies';
}

const run = { verbose: true, numRuns: 300 } as const;

const name = fc.stringMatching(/^[a-z][a-z0-9]{0,5}$/);
const bucket = fc.record({
  capacity: fc.integer({ min: 1, max: 100_000_000 }),
  refill: fc.record({
    tokens: fc.integer({ min: 1, max: 100_000_000 }),
    every: fc
      .tuple(fc.integer({ min: 1, max: 366 }), fc.constantFrom('ms', 's', 'm', 'h', 'd'))
      .map((parts) => parts.join('')),
  }),
});
const match = fc.record(
  {
    methods: fc.uniqueArray(fc.constantFrom('GET', 'POST', 'PUT'), { minLength: 1 }),
    path: fc.record({
      type: fc.constantFrom('Exact', 'Prefix', 'Regex'),
      value: fc.constantFrom('/', '/v1/', '/ä'),
    }),
    headers: fc.array(
      fc.record({ name, value: fc.string({ maxLength: 9 }), invert: fc.boolean() }),
      { minLength: 1, maxLength: 2 },
    ),
    hosts: fc.constant(['*.example.com']),
    cel: fc.record({ expression: fc.constantFrom('true', `request.path == '/'`, 'request.nope') }),
  },
  { requiredKeys: ['methods'] },
);
const rule = fc.record(
  {
    name,
    mode: fc.constantFrom('Shadow', 'Disabled'),
    match: fc.array(match, { minLength: 1, maxLength: 3 }),
    except: fc.array(match, { minLength: 1, maxLength: 2 }),
    key: fc.array(
      fc.constantFrom(
        { clientIP: {} },
        { header: { name: 'X' } },
        { pathSegment: { index: 2 } },
        { cel: { expression: 'client.ip' } },
      ),
      { minLength: 1, maxLength: 3 },
    ),
    cost: fc.record({ tokens: fc.integer({ min: 1, max: 3 }) }),
    buckets: fc.array(bucket, { minLength: 1, maxLength: 1 }),
  },
  { requiredKeys: ['name', 'buckets'] },
);
const spec = fc.record(
  {
    selector: fc.constantFrom({}, { matchLabels: { app: 'api' } }),
    rules: fc.uniqueArray(rule, { minLength: 1, maxLength: 4, selector: (item) => item.name }),
    mode: fc.constantFrom('Enforce', 'Shadow', 'Disabled'),
    scope: fc.constantFrom('Policy', 'Workload', 'Pod'),
    failureMode: fc.constantFrom('Open', 'Closed', 'Local'),
    except: fc.array(match, { minLength: 1, maxLength: 2 }),
  },
  { requiredKeys: ['selector', 'rules'] },
);
const policy = fc.record({
  apiVersion: fc.constant('weir.dev/v1alpha1'),
  kind: fc.constant('RateLimitPolicy'),
  metadata: fc.record({ name }),
  spec,
});

describe('any text', () => {
  it('is read without an exception, whatever its characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        useAll(text);
      }),
      run,
    );
  });

  it('is read without an exception, whatever YAML it is', () => {
    const pieces = fc.constantFrom(
      'a: ',
      '- ',
      '[',
      ']',
      '{',
      '}',
      ',',
      '\n',
      '  ',
      '&a ',
      '*a',
      '!!str ',
      '<<: ',
      '"',
      "'",
      '|\n',
      '---\n',
      '#',
      '? ',
      ': ',
      '1',
      'spec:\n',
      'rules:\n',
      'kind: RateLimitPolicy\n',
    );

    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 60 }), (parts) => {
        useAll(parts.join(''));
      }),
      { ...run, numRuns: 1_000 },
    );
  });

  it('is read without an exception, whatever JSON it is', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        useAll(JSON.stringify({ ...Object(value), kind: 'RateLimitPolicy', spec: value }));
      }),
      run,
    );
  });
});

describe('any document of the table', () => {
  const texts = readVerdicts()
    .map(({ file }) => readDocument(file))
    .filter((text) => text.length < 2_000);

  it('is read without an exception after a line was lost, repeated or changed', () => {
    const edit = fc.record({
      text: fc.constantFrom(...texts),
      line: fc.nat({ max: 40 }),
      by: fc.constantFrom('', '\n', ' null', 'x: y\n', '- ', '[]', '{}'),
      kind: fc.constantFrom('drop', 'repeat', 'append'),
    });
    fc.assert(
      fc.property(edit, ({ text, line, by, kind }) => {
        const lines = text.split('\n');
        const place = line % lines.length;
        const old = String(lines[place]);
        lines.splice(
          place,
          1,
          ...(kind === 'drop' ? [] : kind === 'repeat' ? [old, old] : [old + by]),
        );
        useAll(lines.join('\n'));
      }),
      { ...run, numRuns: 1_000 },
    );
  });
});

describe('any policy within the bounds', () => {
  it('is judged the same as YAML and as JSON', () => {
    fc.assert(
      fc.property(policy, (value) => {
        assert.equal(useAll(stringify(value, { version: '1.1' })), useAll(JSON.stringify(value)));
      }),
      run,
    );
  });

  it('compiles once it is accepted, but for its CEL', () => {
    let compiledPolicies = 0;
    fc.assert(
      fc.property(policy, (value) => {
        const parsed = parsePolicyFile(JSON.stringify(value), 'p.json');
        if (parsed.kind === 'problems') return;
        for (const document of parsed.documents) {
          const outcome = compilePolicy(document.policy, {
            cel,
            uid: 'u',
            generation: 1,
            replicas: 1,
            workload: 'deployment.a',
          });
          if (outcome.kind === 'problems') {
            assert(
              outcome.problems.every(
                ({ reason, message }) => reason === 'cel' && message.includes('nope'),
              ),
            );
            continue;
          }
          compiledPolicies += 1;
          const limits = outcome.policy.rules.flatMap(({ tiers }) =>
            tiers.flatMap(({ buckets }) => buckets.map(({ limit }) => limit)),
          );
          for (const limit of limits) assert(limit.capacity * limit.unitsPerToken <= UNITS_MAX);
        }
      }),
      { ...run, numRuns: 1_000 },
    );
    // Otherwise the generator has left the bounds and nothing was shown.
    assert(compiledPolicies > 50);
  });
});
