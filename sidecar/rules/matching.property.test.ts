// The indexed, compiled matcher against one written the plain way: every rule of every policy, in any order, each field
// looked at when its turn comes.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type {
  CompiledFieldMatch,
  CompiledMatch,
  CompiledPolicy,
  CompiledRule,
} from '../../contract/bundle.ts';
import {
  bundleOf,
  chargesOf,
  policyOf,
  requestOf,
  ruleOf,
  tierOf,
} from '../../test/support/rule-bundle.ts';
import { Evaluation } from './evaluation.ts';
import { compileRules } from './rule-set.ts';

interface PlainRequest {
  readonly method: string;
  readonly path: string;
  readonly host: string;
  readonly address: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
}

const METHODS = ['GET', 'PUT', 'POST'] as const;
const SEGMENTS = ['v1', 'v10', 'a', 'b'] as const;
const NAMES = ['x-plan', 'x-key'] as const;
const VALUES = ['', 'a', 'ab', 'b'] as const;

const pathText = fc
  .array(fc.constantFrom(...SEGMENTS), { maxLength: 3 })
  .map((segments) => `/${segments.join('/')}`);

const fieldMatch: fc.Arbitrary<CompiledFieldMatch> = fc.record({
  name: fc.constantFrom(...NAMES),
  type: fc.constantFrom('Exact', 'Prefix', 'Regex', 'Present'),
  value: fc.constantFrom(...VALUES),
  invert: fc.boolean(),
});

const match: fc.Arbitrary<CompiledMatch> = fc
  .record(
    {
      methods: fc.uniqueArray(fc.constantFrom(...METHODS), { minLength: 1 }),
      path: fc.record({ type: fc.constantFrom('Exact', 'Prefix', 'Regex'), value: pathText }),
      hosts: fc.uniqueArray(fc.constantFrom('a.example', '*.a.example', 'b.example'), {
        minLength: 1,
      }),
      headers: fc.array(fieldMatch, { minLength: 1, maxLength: 2 }),
      query: fc.array(fieldMatch, { minLength: 1, maxLength: 2 }),
      clientCIDRs: fc.uniqueArray(fc.constantFrom('10.0.0.0/8', '192.0.2.0/25'), { minLength: 1 }),
    },
    { requiredKeys: [] },
  )
  .filter((one) => Object.keys(one).length > 0);

const matches = fc.array(match, { maxLength: 3 });
const rarely = fc.oneof(
  { weight: 3, arbitrary: fc.constant([]) },
  { weight: 1, arbitrary: matches },
);

const rule: fc.Arbitrary<CompiledRule> = fc
  .record({
    match: matches,
    except: rarely,
    tierMatches: fc.array(matches, { minLength: 1, maxLength: 3 }),
    key: fc.constantFrom<CompiledRule['key']>([], [{ kind: 'header', name: 'x-key' }]),
    onMissingKey: fc.constantFrom('Skip', 'Deny', 'ClientIP', 'Shared'),
    onNoTier: fc.constantFrom('Skip', 'Deny'),
    mode: fc.constantFrom('Enforce', 'Shadow'),
  })
  .map(({ tierMatches, ...fields }) =>
    ruleOf({
      ...fields,
      tiers: tierMatches.map((list, i) => tierOf({ name: `t${String(i)}`, match: list })),
    }),
  );

const policies: fc.Arbitrary<readonly CompiledPolicy[]> = fc
  .array(fc.record({ rules: fc.array(rule, { maxLength: 12 }), except: rarely }), { maxLength: 4 })
  .map((list) =>
    list.map(({ rules, except }, p) =>
      policyOf({
        name: `p${String(p)}`,
        except,
        rules: rules.map((one, r) => ({ ...one, name: `r${String(r).padStart(2, '0')}` })),
      }),
    ),
  );

const sentFields = fc.dictionary(fc.constantFrom(...NAMES), fc.constantFrom(...VALUES));
const request: fc.Arbitrary<PlainRequest> = fc.record({
  method: fc.constantFrom(...METHODS, 'PATCH'),
  path: pathText,
  host: fc.constantFrom('a.example', 'x.a.example', 'b.example', 'c.example'),
  address: fc.constantFrom('10.1.2.3', '192.0.2.1', '192.0.2.200'),
  headers: sentFields,
  query: sentFields,
});

describe('the indexed matcher', () => {
  it('says what a plain one says, whatever the order of policies and rules', async () => {
    await fc.assert(
      fc.asyncProperty(
        policies,
        fc.array(request, { minLength: 8, maxLength: 8 }),
        async (list, requests) => {
          const forward = await compileRules(bundleOf(...list), { nowMs: () => 0 });
          const turned = list
            .toReversed()
            .map((one) => ({ ...one, rules: one.rules.toReversed() }));
          const backward = await compileRules(bundleOf(...turned), { nowMs: () => 0 });
          const out = new Evaluation();

          for (const plain of requests) {
            const expected = plainOutcome(list, plain);
            for (const rules of [forward, backward]) {
              assert.equal(rules.evaluate(written(plain), out), 'ready');
              assert.deepEqual(outcomeOf(out), expected);
            }
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

interface Outcome {
  readonly charges: readonly string[];
  readonly exempt: string | undefined;
  readonly refused: string | undefined;
  readonly shadowRefusals: readonly string[];
}

function outcomeOf(out: Evaluation): Outcome {
  const refusals = out.shadowRefusals.map((one) => `${one.rule.rule.name} ${one.reason}`);
  return {
    charges: chargesOf(out).map(
      ({ rule: one, tierIndex, shadow }) =>
        `${one.policy.name}/${one.rule.name}/${String(tierIndex)}/${String(shadow)}`,
    ),
    exempt: out.exempt,
    refused: out.refused && `${out.refused.rule.rule.name} ${out.refused.reason}`,
    // After a refusal nobody looks further.
    shadowRefusals: out.refused === undefined ? refusals : [],
  };
}

/** The request on a wire, its path in another spelling. */
function written(plain: PlainRequest): ReturnType<typeof requestOf> {
  const path = plain.path.replace('/v1', '//x/%2e%2e/%76%31').replace('a', '%61');
  const query = new URLSearchParams(plain.query).toString();
  return requestOf({
    method: plain.method,
    target: `${path}?${query}`,
    host: plain.host.toUpperCase(),
    peerAddress: `::ffff:${plain.address}`,
    headers: plain.headers,
  });
}

function plainOutcome(list: readonly CompiledPolicy[], plain: PlainRequest): Outcome {
  const all = list.flatMap((policy) =>
    policy.rules.map((one) => ({
      says: plainVerdict(policy, one, plain),
      name: `${policy.name}/${one.name}`,
      one,
    })),
  );
  const refusal = all.find(({ says, one }) => REFUSALS.has(says) && one.mode === 'Enforce');
  if (refusal !== undefined) {
    const refused = `${refusal.one.name} ${refusal.says}`;
    return { charges: [], exempt: undefined, refused, shadowRefusals: [] };
  }
  const charges = all
    .filter(({ says }) => /^[0-9]+$/.test(says))
    .map(({ says, name, one }) => `${name}/${says}/${String(one.mode === 'Shadow')}`);
  const none = all.some(({ says }) => says === 'excepted') ? 'exception' : 'no-match';
  return {
    charges,
    exempt: charges.length === 0 ? none : undefined,
    refused: undefined,
    shadowRefusals: all
      .filter(({ says }) => REFUSALS.has(says))
      .map(({ says, one }) => `${one.name} ${says}`),
  };
}

const REFUSALS = new Set(['no-tier', 'missing-key']);

/** The tier's number, a reason to refuse, or why the rule does not apply. */
function plainVerdict(policy: CompiledPolicy, one: CompiledRule, plain: PlainRequest): string {
  if (!anyHolds(one.match, plain, true)) return 'no-match';
  if (anyHolds([...policy.except, ...one.except], plain, false)) return 'excepted';
  const tier = one.tiers.findIndex((each) => anyHolds(each.match, plain, true));
  const isKeyless = one.key.length > 0 && (plain.headers['x-key'] ?? '') === '';
  const reasons = [
    ...(tier < 0 ? [{ reason: 'no-tier', then: one.onNoTier }] : []),
    ...(isKeyless ? [{ reason: 'missing-key', then: one.onMissingKey }] : []),
  ];
  if (reasons.some(({ then }) => then === 'Skip')) return 'skipped';
  return reasons.find(({ then }) => then === 'Deny')?.reason ?? String(tier);
}

function anyHolds(list: readonly CompiledMatch[], plain: PlainRequest, ifEmpty: boolean): boolean {
  return list.length === 0 ? ifEmpty : list.some((one) => holds(one, plain));
}

function holds(one: CompiledMatch, plain: PlainRequest): boolean {
  return [
    one.methods?.includes(plain.method),
    one.path && pathHolds(one.path, plain.path),
    one.hosts?.some((host) => hostHolds(host, plain.host)),
    one.headers?.every((field) => fieldHolds(field, plain.headers)),
    one.query?.every((field) => fieldHolds(field, plain.query)),
    one.clientCIDRs?.some((cidr) => cidrHolds(cidr, plain.address)),
  ].every((isTrue) => isTrue ?? true);
}

function pathHolds({ type, value }: NonNullable<CompiledMatch['path']>, path: string): boolean {
  if (type === 'Exact') return path === value;
  if (type === 'Regex') return new RegExp(value).test(path);
  const wanted = value.split('/').filter((segment) => segment !== '');
  const sent = path.split('/').filter((segment) => segment !== '');
  return wanted.every((segment, i) => sent[i] === segment);
}

function hostHolds(pattern: string, host: string): boolean {
  return pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) : host === pattern;
}

function fieldHolds(
  { name, type, value, invert }: CompiledFieldMatch,
  fields: Readonly<Record<string, string>>,
): boolean {
  const sent = fields[name];
  if (sent === undefined) return invert;
  const tests = {
    Exact: sent === value,
    Prefix: sent.startsWith(value),
    Regex: new RegExp(value).test(sent),
    Present: true,
  };
  return tests[type] !== invert;
}

function cidrHolds(cidr: string, address: string): boolean {
  const numbers = address.split('.').map(Number);
  return cidr === '10.0.0.0/8' ? numbers[0] === 10 : numbers[0] === 192 && Number(numbers[3]) < 128;
}
