import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  evaluate,
  isCharged,
  policyOf,
  requestOf,
  ruleOf,
  rulesOf,
} from '../../test/support/rule-bundle.ts';

const REQUEST = requestOf({
  method: 'POST',
  target: '/v1/%63af%C3%A9/?tenant=a%20b&tenant=c&caf%C3%A9=1',
  host: 'API.Shop.example:443',
  peerAddress: '::ffff:192.0.2.7',
  headers: [
    ['X-Plan', 'a'],
    ['x-plan', 'b'],
    ['X-Name', '\u00c3\u00a9'],
    ['Cookie', 'a=1; b=2'],
    ['Cookie', 'a=3; c=4'],
  ],
});

describe('an expression sees', () => {
  const expressions: Readonly<Record<string, string>> = {
    'the method': 'request.method == "POST"',
    'the normalised path as text': 'request.path == "/v1/café/"',
    'the path as it was sent': 'request.rawPath == "/v1/%63af%C3%A9/"',
    'the host, lower case and without port': 'request.host == "api.shop.example"',
    'headers by lower-case name, lines joined': 'request.headers["x-plan"] == "a, b"',
    'header values as text': 'request.headers["x-name"] == "é"',
    'which headers there are': '!("x-none" in request.headers)',
    'the first query pair of a name, decoded': 'request.query["tenant"] == "a b"',
    'query names as text': 'request.query["café"] == "1"',
    'the first cookie of a name': 'request.cookies["a"] == "1"',
    'cookies of every line': 'request.cookies["c"] == "4"',
    'the client address, an IPv4-mapped one as IPv4': 'client.ip == "192.0.2.7"',
    'no claims without a token': '!has(claims.sub)',
    'regular expressions in the RE2 dialect': 'request.path.matches("^/v[0-9]/")',
  };
  for (const [what, expression] of Object.entries(expressions)) {
    it(what, async () => {
      assert.equal(await isCharged({ match: [{ cel: { expression } }] }, REQUEST), true);
    });
  }

  it('each request anew', async () => {
    const match = [{ cel: { expression: '"x" in request.headers && "y" in request.query' } }];
    const rules = await rulesOf(policyOf({ rules: [ruleOf({ match })] }));

    const both = requestOf({ target: '/?y', headers: { X: '1' } });

    assert.equal(evaluate(rules, both).count, 1);
    assert.equal(evaluate(rules, requestOf({ headers: { X: '1' } })).count, 0);
  });

  it('the facts of a request as often as it asks', async () => {
    const expression = 'request.headers["x-plan"] + request.headers["x-name"] == "a, bé"';

    assert.equal(await isCharged({ match: [{ cel: { expression } }] }, REQUEST), true);
  });
});

describe('an expression that fails', () => {
  const failures: Readonly<Record<string, string>> = {
    'on a missing map key': 'request.headers["x-none"] == "1"',
    'by giving another type': 'claims.level',
    'on a division by zero': '1 / int(size(request.query) - size(request.query)) == 1',
  };
  for (const [how, expression] of Object.entries(failures)) {
    it(`${how} is no match, and counted`, async () => {
      const rules = await rulesOf(
        policyOf({ rules: [ruleOf({ match: [{ cel: { expression } }] })] }),
      );

      const out = evaluate(rules);

      assert.equal(out.count, 0);
      assert.equal(rules.counters.celErrors, 1);
    });
  }

  it('as a key is a missing key, and counted', async () => {
    const expression = 'request.cookies["sid"]';
    const rules = await rulesOf(
      policyOf({ rules: [ruleOf({ key: [{ kind: 'cel', expression }], onMissingKey: 'Skip' })] }),
    );

    assert.equal(evaluate(rules).count, 0);
    assert.equal(rules.counters.celErrors, 1);
  });

  it('for one rule leaves the others alone', async () => {
    const match = [{ cel: { expression: 'request.headers["x-none"] == "1"' } }];
    const rules = await rulesOf(
      policyOf({ rules: [ruleOf({ name: 'a', match }), ruleOf({ name: 'b' })] }),
    );

    assert.equal(evaluate(rules).count, 1);
  });
});
