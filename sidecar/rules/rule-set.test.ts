import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { CompiledMatch, CompiledRule } from '../../contract/bundle.ts';
import { WeirError } from '../../contract/errors.ts';
import {
  chargesOf,
  evaluate,
  isCharged,
  keyTextOf,
  policyOf,
  requestOf,
  ruleOf,
  rulesOf,
  tierOf,
} from '../../test/support/rule-bundle.ts';
import { Evaluation } from './evaluation.ts';
import { isEnforced } from './enforced-share.ts';
import { newRuleCounters } from './rule-counters.ts';
import { compileRules } from './rule-set.ts';

const EXACT = (value: string): CompiledMatch => ({ path: { type: 'Exact', value } });

describe('an evaluation', () => {
  it('charges every matching rule of every policy', async () => {
    const rules = await rulesOf(
      policyOf({ name: 'a', rules: [ruleOf({ name: 'r1' }), ruleOf({ name: 'r2' })] }),
      policyOf({ name: 'b', rules: [ruleOf({ name: 'r1' }), ruleOf({ match: [EXACT('/no')] })] }),
    );

    const charges = chargesOf(evaluate(rules));

    assert.deepEqual(
      charges.map(({ rule }) => `${rule.policy.name}/${rule.rule.name}`),
      ['a/r1', 'a/r2', 'b/r1'],
    );
  });

  it('leaves nothing of an earlier request behind', async () => {
    const denied = ruleOf({
      name: 'deny',
      match: [EXACT('/deny')],
      key: [{ kind: 'host' }],
      onMissingKey: 'Deny',
    });
    const shadow = { ...denied, name: 'shadow', mode: 'Shadow' as const };
    const rules = await rulesOf(
      policyOf({ except: [EXACT('/free')], rules: [ruleOf(), denied, shadow] }),
    );
    const out = new Evaluation();

    rules.evaluate(requestOf({ target: '/deny', host: '' }), out);
    rules.evaluate(requestOf({ target: '/free' }), out);
    rules.evaluate(requestOf(), out);

    assert.equal(out.count, 1);
    assert.equal(out.exempt, undefined);
    assert.equal(out.refused, undefined);
    assert.deepEqual(out.shadowRefusals, []);
    assert.equal(out.forwardedSeen, false);
  });

  it('reuses the charges it was given', async () => {
    const rules = await rulesOf(policyOf({ rules: [ruleOf({ key: [{ kind: 'path' }] })] }));
    const out = new Evaluation();
    rules.evaluate(requestOf({ target: '/a' }), out);
    const [first] = out.charges;

    rules.evaluate(requestOf({ target: '/b' }), out);

    assert.equal(out.charges[0], first);
    assert.equal(first?.keyText, 'k1p0:2:/b');
  });

  it('refuses a target whose path cannot be interpreted', async () => {
    const rules = await rulesOf(policyOf());

    assert.equal(rules.evaluate(requestOf({ target: '/%zz' }), new Evaluation()), 'bad-request');
  });

  it('refuses nothing while there are no rules', async () => {
    const rules = await rulesOf();
    const out = new Evaluation();

    assert.equal(rules.evaluate(requestOf({ target: '/%zz' }), out), 'ready');
    assert.equal(out.exempt, 'no-match');
  });

  it('numbers rules alike whatever the order of policies and rules', async () => {
    const policies = ['b', 'a', 'c'].flatMap((namespace) =>
      ['y', 'x'].map((name) =>
        policyOf({ namespace, name, rules: [ruleOf({ name: 'r2' }), ruleOf({ name: 'r1' })] }),
      ),
    );
    const twin = policyOf({ namespace: 'a', name: 'x', uid: '1', rules: [] });
    const expected = await namesOf([...policies, twin]);

    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray(policies, { minLength: 6 }), async (shuffled) => {
        const turned = shuffled.map((one) => ({ ...one, rules: one.rules.toReversed() }));

        assert.deepEqual(await namesOf([twin, ...turned]), expected);
      }),
      { numRuns: 20 },
    );

    async function namesOf(list: readonly ReturnType<typeof policyOf>[]): Promise<string[]> {
      const { entries } = await rulesOf(...list);
      return entries.map(({ id, policy, rule }) =>
        [id, policy.namespace, policy.name, policy.uid, rule.name].join(' '),
      );
    }
  });
});

describe('exceptions', () => {
  it('of a policy keep all of its rules from looking, and no other policy', async () => {
    const rules = await rulesOf(
      policyOf({ name: 'a', except: [EXACT('/health')] }),
      policyOf({ name: 'b' }),
    );

    const charges = chargesOf(evaluate(rules, requestOf({ target: '/health' })));

    assert.deepEqual(
      charges.map(({ rule }) => rule.policy.name),
      ['b'],
    );
  });

  it('of a rule keep that rule only', async () => {
    const free = ruleOf({ name: 'free', except: [EXACT('/health')] });
    const rules = await rulesOf(policyOf({ rules: [free, ruleOf({ name: 'all' })] }));

    const charges = chargesOf(evaluate(rules, requestOf({ target: '/health' })));

    assert.deepEqual(
      charges.map(({ rule }) => rule.rule.name),
      ['all'],
    );
  });

  it('are told from requests that nothing matches', async () => {
    const match = [EXACT('/a'), EXACT('/b')];
    const rules = await rulesOf(policyOf({ except: [EXACT('/a')], rules: [ruleOf({ match })] }));

    assert.equal(evaluate(rules, requestOf({ target: '/a' })).exempt, 'exception');
    assert.equal(evaluate(rules, requestOf({ target: '/c' })).exempt, 'no-match');
    assert.equal(evaluate(rules, requestOf({ target: '/b' })).exempt, undefined);
  });

  it('are tested again for the next request', async () => {
    const rules = await rulesOf(policyOf({ except: [EXACT('/a')] }));

    assert.equal(evaluate(rules, requestOf({ target: '/a' })).count, 0);
    assert.equal(evaluate(rules, requestOf({ target: '/b' })).count, 1);
  });
});

describe('tiers', () => {
  const plan = (value: string): CompiledMatch => ({
    headers: [{ name: 'x-plan', type: 'Exact', value, invert: false }],
  });
  const tiers = [
    tierOf({ name: 'premium', match: [plan('premium')] }),
    tierOf({ name: 'any', match: [plan('premium'), plan('pro')] }),
  ];
  const asked = (value: string): ReturnType<typeof requestOf> =>
    requestOf({ headers: { 'X-Plan': value } });

  it('are tried in order, the first match wins', async () => {
    const rules = await rulesOf(policyOf({ rules: [ruleOf({ tiers })] }));

    assert.equal(chargesOf(evaluate(rules, asked('premium')))[0]?.tierIndex, 0);
    assert.equal(chargesOf(evaluate(rules, asked('pro')))[0]?.tierIndex, 1);
  });

  it('may end in one for everybody', async () => {
    const all = [...tiers, tierOf({ name: 'free' })];
    const rules = await rulesOf(policyOf({ rules: [ruleOf({ tiers: all })] }));

    assert.equal(chargesOf(evaluate(rules, asked('none')))[0]?.tierIndex, 2);
  });

  it('that all fail skip the rule under onNoTier: Skip', async () => {
    assert.equal(await isCharged({ tiers, onNoTier: 'Skip' }, asked('none')), false);
  });

  it('that all fail refuse the request under onNoTier: Deny', async () => {
    const rules = await rulesOf(policyOf({ rules: [ruleOf({ tiers, onNoTier: 'Deny' })] }));

    const out = evaluate(rules, asked('none'));

    assert.equal(out.refused?.reason, 'no-tier');
    assert.equal(out.refused.rule, rules.entries[0]);
    assert.equal(out.count, 0);
  });

  it('that fail alone do not skip', async () => {
    const match = [plan('premium')];

    assert.equal(await isCharged({ tiers: [tierOf({ match })] }, asked('none')), false);
    assert.equal(await isCharged({ tiers: [tierOf({ match })] }, asked('premium')), true);
  });
});

describe('a missing key', () => {
  const key: CompiledRule['key'] = [{ kind: 'header', name: 'x-api-key' }];

  it('skips the rule under Skip', async () => {
    const rules = await rulesOf(policyOf({ rules: [ruleOf({ key, onMissingKey: 'Skip' })] }));

    const out = evaluate(rules);

    assert.equal(out.count, 0);
    assert.equal(out.exempt, 'no-match');
  });

  it('refuses the request under Deny, whatever other rules say', async () => {
    const rules = await rulesOf(
      policyOf({
        rules: [ruleOf({ name: 'a' }), ruleOf({ name: 'b', key, onMissingKey: 'Deny' })],
      }),
    );

    const out = evaluate(rules);

    assert.equal(out.refused?.reason, 'missing-key');
    assert.equal(out.refused.rule.rule.name, 'b');
    assert.equal(out.count, 0);
    assert.equal(out.exempt, undefined);
  });

  it('is the client address in a key space of its own under ClientIP', async () => {
    const text = await keyTextOf({ key, onMissingKey: 'ClientIP' }, requestOf());

    assert.equal(text, 'm12:h9:x-api-key9:192.0.2.1');
  });

  it('is one bucket for all under Shared', async () => {
    const [one, other] = ['192.0.2.1', '192.0.2.2'].map((peerAddress) =>
      requestOf({ peerAddress }),
    );
    const rule = { key, onMissingKey: 'Shared' as const };

    assert.equal(await keyTextOf(rule, one ?? requestOf()), 's12:h9:x-api-key');
    assert.equal(await keyTextOf(rule, other ?? requestOf()), 's12:h9:x-api-key');
  });

  it('under Skip keeps a rule without tier from refusing', async () => {
    const tiers = [tierOf({ match: [EXACT('/none')] })];

    const rules = await rulesOf(
      policyOf({ rules: [ruleOf({ key, tiers, onNoTier: 'Deny', onMissingKey: 'Skip' })] }),
    );

    assert.equal(evaluate(rules).refused, undefined);
  });

  it('under Deny does not refuse where no tier skips the rule', async () => {
    const tiers = [tierOf({ match: [EXACT('/none')] })];

    const rules = await rulesOf(
      policyOf({ rules: [ruleOf({ key, tiers, onNoTier: 'Skip', onMissingKey: 'Deny' })] }),
    );

    assert.equal(evaluate(rules).refused, undefined);
  });
});

describe('modes', () => {
  const key: CompiledRule['key'] = [{ kind: 'header', name: 'x-api-key' }];

  it('a disabled policy is not evaluated', async () => {
    const rules = await rulesOf(policyOf({ mode: 'Disabled' }));

    assert.equal(rules.entries.length, 0);
  });

  it('a shadow policy makes every charge a shadow', async () => {
    const rules = await rulesOf(policyOf({ mode: 'Shadow' }));

    assert.deepEqual(
      chargesOf(evaluate(rules)).map(({ shadow }) => shadow),
      [true],
    );
  });

  it('a shadow rule makes its own charge a shadow', async () => {
    const rules = await rulesOf(
      policyOf({ rules: [ruleOf({ name: 'a', mode: 'Shadow' }), ruleOf({ name: 'b' })] }),
    );

    assert.deepEqual(
      chargesOf(evaluate(rules)).map(({ shadow }) => shadow),
      [true, false],
    );
  });

  it('a shadow rule never refuses, and its refusal is told', async () => {
    const deny = ruleOf({ name: 'b', mode: 'Shadow', key, onMissingKey: 'Deny' });
    const rules = await rulesOf(policyOf({ rules: [ruleOf({ name: 'a' }), deny] }));

    const out = evaluate(rules);

    assert.equal(out.refused, undefined);
    assert.deepEqual(out.shadowRefusals, [{ rule: rules.entries[1], reason: 'missing-key' }]);
    assert.equal(out.count, 1);
  });
});

describe('enforcePercent', () => {
  const CLIENTS = 2_000;

  it('of 100 enforces everybody and of 0 nobody', () => {
    const keys = Array.from({ length: CLIENTS }, (_, i) => `key-${String(i)}`);

    assert(keys.every((one) => isEnforced(one, 100)));
    assert(!keys.some((one) => isEnforced(one, 0)));
  });

  it('enforces about its share of keys', () => {
    const keys = Array.from({ length: CLIENTS }, (_, i) => `k1h9:x-api-key4:${String(i)}`);
    const enforced = keys.filter((one) => isEnforced(one, 30)).length;

    // Binomial with n = 2000, p = 0.3: σ = √(2000·0.3·0.7) ≈ 20.5. The hash is fixed, so this holds or not for ever;
    // five σ would be exceeded by one good hash in a million.
    assert(Math.abs(enforced - 0.3 * CLIENTS) < 5 * 20.5, String(enforced));
  });

  it('keeps who is enforced when it is raised', () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(100), fc.nat(100), (text, a, b) => {
        const [low, high] = [Math.min(a, b), Math.max(a, b)];

        assert(!isEnforced(text, low) || isEnforced(text, high));
      }),
    );
  });

  it('goes by the key of a rule with key, whoever the client is', async () => {
    const key: CompiledRule['key'] = [{ kind: 'header', name: 'x-api-key' }];
    const rules = await rulesOf(policyOf({ enforcePercent: 50, rules: [ruleOf({ key })] }));

    const shadows = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4'].map((peerAddress) => {
      const request = requestOf({ peerAddress, headers: { 'X-Api-Key': 'a' } });
      return chargesOf(evaluate(rules, request))[0]?.shadow;
    });

    assert.equal(new Set(shadows).size, 1);
  });

  const byClient: Readonly<Record<string, Partial<CompiledRule>>> = {
    'of a rule without key': {},
    'of requests without key that share a bucket': {
      key: [{ kind: 'header', name: 'x-api-key' }],
      onMissingKey: 'Shared',
    },
    'of requests without key that fall back to the address': {
      key: [{ kind: 'header', name: 'x-api-key' }],
      onMissingKey: 'ClientIP',
    },
  };
  for (const [what, rule] of Object.entries(byClient)) {
    it(`goes by the client's address ${what}`, async () => {
      const rules = await rulesOf(policyOf({ enforcePercent: 50, rules: [ruleOf(rule)] }));

      for (let i = 1; i < 50; i += 1) {
        const peerAddress = `192.0.2.${String(i)}`;
        const [charge] = chargesOf(evaluate(rules, requestOf({ peerAddress })));

        assert.equal(charge?.shadow, !isEnforced(peerAddress, 50));
      }
    });
  }

  it('turns a refusal outside of the share into a shadow', async () => {
    const key: CompiledRule['key'] = [{ kind: 'header', name: 'x-api-key' }];
    const rules = await rulesOf(
      policyOf({ enforcePercent: 50, rules: [ruleOf({ key, onMissingKey: 'Deny' })] }),
    );

    for (let i = 1; i < 20; i += 1) {
      const peerAddress = `192.0.2.${String(i)}`;
      const out = evaluate(rules, requestOf({ peerAddress }));

      assert.equal(out.refused === undefined, !isEnforced(peerAddress, 50));
      assert.equal(out.shadowRefusals.length, isEnforced(peerAddress, 50) ? 0 : 1);
    }
  });
});

describe('forwardedSeen', () => {
  const address: CompiledRule['key'] = [{ kind: 'clientIP' }];
  const header: CompiledRule['key'] = [{ kind: 'header', name: 'x-api-key' }];
  const forwarded = { 'X-Forwarded-For': '203.0.113.7' };
  const trusting = { clientIP: { trustedHops: 1, trustedProxies: [], ipv6PrefixLength: 64 } };
  const cases: Readonly<
    Record<
      string,
      readonly [Partial<CompiledRule>, Readonly<Record<string, string>>, boolean, object?]
    >
  > = {
    'is set by X-Forwarded-For': [{ key: address }, forwarded, true],
    'is set by Forwarded': [{ key: address }, { Forwarded: 'for=203.0.113.7' }, true],
    'is not set without such a header': [{ key: address }, {}, false],
    'is not set by a rule that keys on something else': [
      { key: header },
      { ...forwarded, 'X-Api-Key': 'a' },
      false,
    ],
    'is set when a missing key falls back to the address': [{ key: header }, forwarded, true],
    'is not set when a missing key is shared': [
      { key: header, onMissingKey: 'Shared' },
      forwarded,
      false,
    ],
    'is not set by a rule without key': [{}, forwarded, false],
    'is not set where hops are trusted': [{ key: address }, forwarded, false, trusting],
  };
  for (const [claim, [rule, headers, expected, policy]] of Object.entries(cases)) {
    it(claim, async () => {
      const rules = await rulesOf(policyOf({ ...policy, rules: [ruleOf(rule)] }));

      assert.equal(evaluate(rules, requestOf({ headers })).forwardedSeen, expected);
    });
  }
});

describe('policies with other settings', () => {
  it('see other clients in one request', async () => {
    const key: CompiledRule['key'] = [{ kind: 'clientIP' }];
    const clientIP = { trustedHops: 1, trustedProxies: [], ipv6PrefixLength: 64 };
    const rules = await rulesOf(
      policyOf({ name: 'a', rules: [ruleOf({ key })] }),
      policyOf({ name: 'b', clientIP, rules: [ruleOf({ key })] }),
      policyOf({ name: 'c', clientIP, rules: [ruleOf({ key })] }),
    );

    const request = requestOf({ headers: { 'X-Forwarded-For': '203.0.113.7' } });
    const texts = chargesOf(evaluate(rules, request)).map(({ keyText }) => keyText);

    assert.deepEqual(texts, ['k1a0:9:192.0.2.1', 'k1a0:11:203.0.113.7', 'k1a0:11:203.0.113.7']);
  });
});

describe('cost', () => {
  it('is taken from the request header of the rule', async () => {
    const cost = { tokens: 2, header: { name: 'x-cost', max: 50 } };
    const rules = await rulesOf(policyOf({ rules: [ruleOf({ cost })] }));

    const weights = ['7', 'x'].map((value) => {
      const [charge] = chargesOf(evaluate(rules, requestOf({ headers: { 'X-Cost': value } })));
      return charge?.weight;
    });

    assert.deepEqual(weights, [7, 2]);
  });
});

describe('compileRules', () => {
  const broken: Readonly<Record<string, Partial<CompiledRule>>> = {
    'an expression that is not RE2': { match: [{ path: { type: 'Regex', value: '(?=a)' } }] },
    'an expression that is not CEL': { match: [{ cel: { expression: 'request.' } }] },
    'a key that is not text': { key: [{ kind: 'cel', expression: '1 + 1' }] },
  };
  for (const [what, rule] of Object.entries(broken)) {
    it(`throws POLICY_INVALID for ${what}, naming the policy`, async () => {
      await assert.rejects(
        rulesOf(policyOf({ rules: [ruleOf(rule)] })),
        (error) =>
          error instanceof WeirError &&
          error.code === 'POLICY_INVALID' &&
          error.details['policy'] === 'default/policy',
      );
    });
  }

  it('throws POLICY_INVALID for keys that cannot be used', async () => {
    // A function can neither be cloned nor be part of a key.
    const keys = [{ kty: 'OKP', alg: () => 'EdDSA' }];

    await assert.rejects(
      rulesOf(policyOf({ jwt: { audiences: [], header: 'authorization', keys } })),
      (error) => error instanceof WeirError && error.code === 'POLICY_INVALID',
    );
  });

  it('counts in the counters it is given, across bundles', async () => {
    const counters = newRuleCounters();
    const match = [{ cel: { expression: 'request.headers["x"] == "1"' } }];
    const bundle = {
      format: 1 as const,
      version: '1',
      policies: [policyOf({ rules: [ruleOf({ match })] })],
    };
    for (let i = 0; i < 2; i += 1) {
      const rules = await compileRules(bundle, { nowMs: () => 0, counters });
      evaluate(rules);
    }

    assert.equal(counters.celErrors, 2);
  });

  it('asks each of many rules that a request could match', async () => {
    const list = Array.from({ length: 70 }, (_, i) =>
      ruleOf({
        name: `r${String(i).padStart(2, '0')}`,
        match: [EXACT(`/${String(i)}`), EXACT('/all')],
      }),
    );
    const rules = await rulesOf(policyOf({ rules: list }));

    assert.equal(evaluate(rules, requestOf({ target: '/all' })).count, 70);
    for (const i of [0, 31, 32, 63, 64, 69]) {
      const [charge] = chargesOf(evaluate(rules, requestOf({ target: `/${String(i)}` })));
      assert.equal(charge?.rule.id, i);
    }
  });
});
