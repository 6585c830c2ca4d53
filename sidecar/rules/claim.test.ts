import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { SignJWT, exportJWK, generateKeyPair } from 'jose';
import type { CryptoKey } from 'jose';
import type { CompiledJwt, CompiledMatch, CompiledRule } from '../../contract/bundle.ts';
import {
  TEST_NOW_MS,
  chargesOf,
  evaluate,
  policyOf,
  requestOf,
  ruleOf,
  rulesOf,
} from '../../test/support/rule-bundle.ts';
import { Evaluation } from './evaluation.ts';
import type { RequestSnapshot } from './request-snapshot.ts';
import type { RuleSet } from './rule-set.ts';
import { MAX_TOKEN_LENGTH } from './token-verifier.ts';

const CLAIMS = {
  sub: 'client-1',
  plan: 'premium',
  level: 3,
  admin: true,
  nothing: null,
  'https://example.com/org': 'acme',
  realm: { roles: ['reader', 'writer'], depth: { name: 'inner' } },
  odd: '\ud800',
  word: 'é',
};

let privateKey: CryptoKey;
let jwt: CompiledJwt;
let token: string;

before(async () => {
  const pair = await generateKeyPair('ES256', { extractable: true });
  privateKey = pair.privateKey;
  jwt = {
    audiences: [],
    header: 'authorization',
    keys: [{ ...(await exportJWK(pair.publicKey)) }],
  };
  token = await sign(CLAIMS);
});

describe('claims of a verified token', () => {
  const matches: Readonly<
    Record<string, readonly [path: readonly string[], value: string, invert: boolean, boolean]>
  > = {
    'hold a text': [['plan'], 'premium', false, true],
    'hold no other text': [['plan'], 'free', false, false],
    'hold a number as JSON writes it': [['level'], '3', false, true],
    'hold a boolean as JSON writes it': [['admin'], 'true', false, true],
    'hold a name with dots': [['https://example.com/org'], 'acme', false, true],
    'hold what is nested': [['realm', 'depth', 'name'], 'inner', false, true],
    'hold an item of a list': [['realm', 'roles'], 'writer', false, true],
    'hold no item that is not in a list': [['realm', 'roles'], 'owner', false, false],
    'hold nothing that is absent': [['none'], 'x', false, false],
    'hold nothing below a text': [['plan', 'length'], '7', false, false],
    'hold nothing below null': [['nothing', 'x'], 'x', false, false],
    'hold nothing inherited': [['constructor', 'name'], 'Object', false, false],
    'hold no object': [['realm'], '[object Object]', false, false],
    'hold another value when inverted': [['plan'], 'free', true, true],
    'do not hold the value when inverted': [['plan'], 'premium', true, false],
    'hold absence when inverted': [['none'], 'x', true, true],
  };
  for (const [claim, [path, value, invert, expected]] of Object.entries(matches)) {
    it(claim, async () => {
      const rules = await tokenRules({ match: [{ claims: [{ path, value, invert }] }] });
      const request = bearing(token);

      await rules.verifyClaims(request);

      assert.equal(evaluate(rules, request).count === 1, expected);
    });
  }

  it('are there for expressions', async () => {
    const expression = 'claims.plan == "premium" && claims.level == 3.0';
    const rules = await tokenRules({ match: [{ cel: { expression } }] });

    await rules.verifyClaims(bearing(token));

    assert.equal(evaluate(rules, bearing(token)).count, 1);
    assert.equal(rules.counters.celErrors, 0);
  });
});

describe('a claim as a key', () => {
  const keys: Readonly<
    Record<string, readonly [path: readonly string[], text: string | undefined]>
  > = {
    'is its text': [['sub'], 'k1j5:3:sub8:client-1'],
    'is its number': [['level'], 'k1j7:5:level1:3'],
    'tells the names of its path': [
      ['realm', 'depth', 'name'],
      'k1j20:5:realm5:depth4:name5:inner',
    ],
    'beyond ASCII is its bytes': [['word'], 'k1j6:4:word2:\u00c3\u00a9'],
    'is missing when absent': [['none'], undefined],
    'is missing when it is a list': [['realm', 'roles'], undefined],
    'is missing when it is not well-formed': [['odd'], undefined],
  };
  for (const [claim, [path, text]] of Object.entries(keys)) {
    it(claim, async () => {
      const rules = await tokenRules({ key: [{ kind: 'claim', path }], onMissingKey: 'Skip' });

      await rules.verifyClaims(bearing(token));

      assert.equal(chargesOf(evaluate(rules, bearing(token)))[0]?.keyText, text);
    });
  }
});

describe('a token that was never seen', () => {
  const premium: CompiledMatch = { claims: [{ path: ['plan'], value: 'premium', invert: false }] };

  it('has to be verified first', async () => {
    const rules = await tokenRules({ match: [premium] });
    const out = new Evaluation();

    assert.equal(rules.evaluate(bearing(token), out), 'needs-claims');
    await rules.verifyClaims(bearing(token));
    assert.equal(rules.evaluate(bearing(token), out), 'ready');
    assert.equal(out.count, 1);
    assert.equal(rules.counters.claimsVerified, 1);
  });

  it('is waited for once only: known tokens suffice then', async () => {
    const rules = await tokenRules({ match: [premium] });
    const out = new Evaluation();

    assert.equal(rules.evaluate(bearing(token), out, 'known'), 'ready');
    assert.equal(out.count, 0);
    assert.equal(out.exempt, 'no-match');
  });

  it('is not asked for by a request that no rule with claims looks at', async () => {
    const match = [{ ...premium, methods: ['PUT'] }];
    const rules = await tokenRules({ match });

    assert.equal(rules.evaluate(bearing(token), new Evaluation()), 'ready');
  });

  it('is not asked for by an expression that mentions no claims', async () => {
    const rules = await tokenRules({ match: [{ cel: { expression: 'request.method == "GET"' } }] });

    assert.equal(rules.evaluate(bearing(token), new Evaluation()), 'ready');
  });

  it('is asked for by an expression that mentions claims, which is not counted as failed', async () => {
    const rules = await tokenRules({
      match: [{ cel: { expression: 'claims.plan == "premium"' } }],
    });

    assert.equal(rules.evaluate(bearing(token), new Evaluation()), 'needs-claims');
    assert.equal(rules.counters.celErrors, 0);
  });

  it('lets errors of rules before it count once', async () => {
    const failing = ruleOf({
      name: 'a',
      match: [{ cel: { expression: '1 / size(request.query) == 1' } }],
    });
    const rules = await rulesOf(
      policyOf({ jwt, rules: [failing, ruleOf({ name: 'b', match: [premium] })] }),
    );
    const out = new Evaluation();

    rules.evaluate(bearing(token), out);
    await rules.verifyClaims(bearing(token));
    rules.evaluate(bearing(token), out);

    assert.equal(rules.counters.celErrors, 1);
  });

  it('is verified once for policies that trust the same issuer', async () => {
    const rules = await rulesOf(
      policyOf({ name: 'a', jwt, rules: [ruleOf({ match: [premium] })] }),
      policyOf({ name: 'b', jwt, rules: [ruleOf({ match: [premium] })] }),
    );

    await rules.verifyClaims(bearing(token));

    assert.equal(rules.counters.claimsVerified, 1);
    assert.equal(evaluate(rules, bearing(token)).count, 2);
  });

  it('is verified for each issuer that is trusted', async () => {
    const other = await generateKeyPair('ES256', { extractable: true });
    const theirs = { ...jwt, keys: [{ ...(await exportJWK(other.publicKey)) }] };
    const rules = await rulesOf(
      policyOf({ name: 'a', jwt, rules: [ruleOf({ match: [premium] })] }),
      policyOf({ name: 'b', jwt: theirs, rules: [ruleOf({ match: [premium] })] }),
    );

    await rules.verifyClaims(bearing(token));

    assert.deepEqual([rules.counters.claimsVerified, rules.counters.claimsRejected], [1, 1]);
    assert.equal(evaluate(rules, bearing(token)).count, 1);
  });

  it('is not verified again while it is known', async () => {
    const rules = await tokenRules({ match: [premium] });

    await rules.verifyClaims(bearing(token));
    await rules.verifyClaims(bearing(token));

    assert.equal(rules.counters.claimsVerified, 1);
  });
});

describe('a request has no claims', () => {
  const cases: Readonly<Record<string, () => RequestSnapshot>> = {
    'without the header': () => requestOf(),
    'with another scheme': () => requestOf({ headers: { Authorization: `Basic ${token}` } }),
    'with the token alone': () => requestOf({ headers: { Authorization: token } }),
    'with two such headers': () =>
      requestOf({
        headers: [
          ['Authorization', `Bearer ${token}`],
          ['Authorization', `Bearer ${token}`],
        ],
      }),
    'with a token that is too long': () => bearing('x'.repeat(MAX_TOKEN_LENGTH + 1)),
  };
  for (const [how, request] of Object.entries(cases)) {
    it(how, async () => {
      const rules = await tokenRules({
        key: [{ kind: 'claim', path: ['sub'] }],
        onMissingKey: 'Skip',
      });

      await rules.verifyClaims(request());

      assert.equal(evaluate(rules, request()).count, 0);
      assert.equal(rules.counters.claimsVerified, 0);
    });
  }

  it('when verification refuses the token', async () => {
    const expired = await sign({ ...CLAIMS, exp: 1 });
    const rules = await tokenRules({
      key: [{ kind: 'claim', path: ['sub'] }],
      onMissingKey: 'Skip',
    });

    await rules.verifyClaims(bearing(expired));

    assert.equal(evaluate(rules, bearing(expired)).count, 0);
    assert.equal(rules.counters.claimsRejected, 1);
  });

  it('but it has when the scheme is written in another case', async () => {
    const rules = await tokenRules({ key: [{ kind: 'claim', path: ['sub'] }] });
    const request = requestOf({ headers: { Authorization: `bearer  ${token}` } });

    await rules.verifyClaims(request);

    assert.equal(chargesOf(evaluate(rules, request))[0]?.keyText, 'k1j5:3:sub8:client-1');
  });
});

function tokenRules(rule: Partial<CompiledRule>): Promise<RuleSet> {
  return rulesOf(policyOf({ jwt, rules: [ruleOf(rule)] }));
}

function bearing(text: string): RequestSnapshot {
  return requestOf({ headers: { Authorization: `Bearer ${text}` } });
}

function sign(claims: Record<string, unknown>): Promise<string> {
  return new SignJWT({ exp: TEST_NOW_MS / 1_000 + 60, ...claims })
    .setProtectedHeader({ alg: 'ES256' })
    .sign(privateKey);
}
