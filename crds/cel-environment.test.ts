import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CelClient, CelRequest, createCelCompiler } from './cel-environment.ts';
import { CEL_DEPTH_MAX, CEL_LOOP_DEPTH_MAX, CEL_NODES_MAX } from './cel-environment.ts';
import type { CelVariables } from './cel-environment.ts';

const cel = createCelCompiler();

function variables(claims: Record<string, unknown> = {}): CelVariables {
  const request = new CelRequest({
    method: 'GET',
    path: '/v1/x',
    rawPath: '/v1/%78',
    host: 'api.example.com',
    query: new Map([['v', '2']]),
    headers: new Map([['x-plan', 'premium']]),
    cookies: new Map([['sid', 's3']]),
  });
  return { request, client: new CelClient('198.51.100.7'), claims };
}

function valueOf(expression: string, claims?: Record<string, unknown>): unknown {
  const outcome = ['bool', 'string'] as const;
  for (const result of outcome) {
    const compiled = cel.compile(expression, result);
    if (compiled.kind === 'compiled') return compiled.evaluate(variables(claims));
  }
  return assert.fail(`does not compile: ${expression}`);
}

function faultOf(expression: string, result: 'bool' | 'string' = 'bool'): string {
  const outcome = cel.compile(expression, result);
  assert(outcome.kind === 'invalid', expression);
  return `${outcome.message}\n${outcome.excerpt}`;
}

describe('the variables of an expression', () => {
  const cases: [string, unknown][] = [
    ['request.method', 'GET'],
    ['request.path', '/v1/x'],
    ['request.rawPath', '/v1/%78'],
    ['request.host', 'api.example.com'],
    [`request.query['v']`, '2'],
    [`request.headers['x-plan'] == 'premium'`, true],
    [`'sid' in request.cookies`, true],
    [`has(request.headers.cookie)`, false],
    ['client.ip', '198.51.100.7'],
    [`size(claims) == 0`, true],
  ];

  for (const [expression, value] of cases) {
    it(`hold what they say: ${expression}`, () => {
      assert.deepEqual(valueOf(expression), value);
    });
  }

  it('are the claims of the token, of any type and depth', () => {
    const claims = {
      sub: 'u1',
      app: { plans: ['a', 'b'] },
      admin: true,
      'https://x.example/plan': 'p',
    };

    assert.equal(valueOf('claims.sub', claims), 'u1');
    assert.equal(valueOf('claims.app.plans[1]', claims), 'b');
    assert.equal(valueOf('claims.admin', claims), true);
    assert.equal(valueOf(`claims['https://x.example/plan'] == 'p'`, claims), true);
  });

  it('do not reach what every JavaScript object has', () => {
    for (const name of ['constructor', '__proto__', 'toString', 'hasOwnProperty']) {
      assert.throws(() => valueOf(`claims['${name}']`, { sub: 'u1' }), /No such key/, name);
      assert.throws(() => valueOf(`request.headers['${name}']`), /No such key/, name);
      assert.equal(valueOf(`has(claims.${name})`, { sub: 'u1' }), false, name);
    }
  });

  it('fail at run time where they are absent', () => {
    assert.throws(() => valueOf(`request.headers['x-none']`), /No such key/);
    assert.throws(() => valueOf('claims.sub'), /No such key/);
  });

  it('are asked for only where the expression uses them', () => {
    const asked: string[] = [];
    const source = new Proxy(
      {
        method: 'GET',
        path: '',
        rawPath: '',
        host: '',
        query: new Map(),
        headers: new Map(),
        cookies: new Map(),
      },
      {
        get: (target, name) => {
          asked.push(String(name));
          const value: unknown = Reflect.get(target, name);
          return value;
        },
      },
    );
    const compiled = cel.compile(`request.method == 'GET'`, 'bool');

    assert(compiled.kind === 'compiled');
    assert.equal(compiled.evaluate({ ...variables(), request: new CelRequest(source) }), true);
    assert.deepEqual([...new Set(asked)], ['method']);
  });
});

describe('a check of an expression', () => {
  it('points at what is wrong', () => {
    assert.equal(faultOf('request.nope'), 'No such key: nope\nrequest.nope\n        ^');
    assert.equal(faultOf('1 +\n  * 2'), 'Unexpected token: MULTIPLY\n  * 2\n  ^');
    assert.equal(faultOf('nobody'), 'Unknown variable: nobody\nnobody\n^');
  });

  it('wants the type of its place', () => {
    assert.match(faultOf('request.path'), /^gives string, not bool\n/);
    assert.match(faultOf('true', 'string'), /^gives bool, not string\n/);
    assert.match(faultOf('1', 'string'), /^gives int, not string\n/);
  });

  it('takes what is known only at run time', () => {
    assert.equal(cel.compile('claims.plan', 'string').kind, 'compiled');
    assert.equal(cel.compile('claims.plan', 'bool').kind, 'compiled');
  });

  it('refuses to compare what cannot be equal', () => {
    assert.match(faultOf('request.path == 1'), /^no such overload/);
  });

  it('answers with a fault for any text', () => {
    for (const text of [
      '',
      ' ',
      '\u0000',
      '"',
      `'`,
      '((',
      ')',
      'a.b.',
      '🌊',
      '[',
      '{',
      '??',
      'x'.repeat(1024),
    ]) {
      assert.equal(cel.compile(text, 'bool').kind, 'invalid', text);
    }
  });
});

describe('the claims of an expression', () => {
  function claimsAt(expression: string): number | undefined {
    const compiled = cel.compile(expression, 'bool');
    return compiled.kind === 'compiled' ? compiled.claimsAt : assert.fail(compiled.message);
  }

  it('are known by where they are used first', () => {
    assert.equal(claimsAt('claims.a == claims.b'), 0);
    assert.equal(claimsAt('has(claims.sub)'), 4);
    assert.equal(claimsAt('[1].all(x, claims.n == x)'), 11);
    assert.equal(claimsAt(`{'a': claims.b}.a.matches('x')`), 6);
  });

  it('are not used by whoever only says the word', () => {
    assert.equal(claimsAt(`request.headers['claims'] == 'claims'`), undefined);
    assert.equal(claimsAt('request.headers.claims == client.ip'), undefined);
  });
});

describe('matches()', () => {
  it('is RE2, unanchored', () => {
    assert.equal(valueOf(`request.path.matches('^/v[0-9]/')`), true);
    assert.equal(valueOf(`request.path.matches('x')`), true);
    assert.equal(valueOf(`request.path.matches('^x')`), false);
    assert.equal(valueOf(`request.host.matches('(?i)EXAMPLE')`), true);
  });

  it('takes linear time for a pattern that backtracking makes exponential', () => {
    const long = `'${'a'.repeat(300)}!'.matches('^(a|a)*$')`;

    // JavaScript's own engine would need 2^300 steps.
    assert.equal(valueOf(long), false);
  });

  it('refuses at the check what RE2 does not have', () => {
    assert.match(
      faultOf(`request.path.matches('(?=a)')`),
      /^not a valid RE2 expression: .*\n.*\n {21}\^$/,
    );
    assert.match(faultOf(`request.path.matches('(a)\\\\1')`), /^not a valid RE2 expression/);
  });

  it('wants a literal, so that no client sends a pattern', () => {
    assert.match(
      faultOf(`request.path.matches(request.host)`),
      /^the pattern of matches\(\) must be a literal string/,
    );
    assert.match(
      faultOf(`request.path.matches(1)`),
      /^the pattern of matches\(\) must be a literal string/,
    );
  });

  it('wants a string to look at', () => {
    assert.match(faultOf(`1.matches('a')`), /./);
    assert.match(
      faultOf(`request.query.matches('a')`),
      /^matches\(\) wants a string, not map<string, string>/,
    );
    assert.equal(valueOf(`claims.plan.matches('^p')`, { plan: 'premium' }), true);
    assert.throws(
      () => valueOf(`claims.plan.matches('^p')`, { plan: 1 }),
      /matches\(\) wants a string/,
    );
  });

  it('is no function by itself', () => {
    assert.match(faultOf(`matches(request.path, 'a')`), /^found no matching overload/);
  });
});

describe('the bounds of an expression', () => {
  function loops(depth: number): string {
    return depth === 0 ? 'true' : `request.headers.all(h${String(depth)}, ${loops(depth - 1)})`;
  }

  it('is how deep loops are nested', () => {
    assert.equal(cel.compile(loops(CEL_LOOP_DEPTH_MAX), 'bool').kind, 'compiled');
    assert.match(
      faultOf(loops(CEL_LOOP_DEPTH_MAX + 1)),
      /^has a loop within a loop .*use one loop/,
    );
  });

  it('counts every kind of loop, wherever it stands', () => {
    const inner = `request.query.exists(q, request.headers.all(h, true))`;

    assert.match(
      faultOf(`[true, [1].filter(x, ${inner}) == [1]] == [true, true]`),
      /^has a loop within a loop/,
    );
    assert.match(faultOf(`[1].map(x, ${inner} ? 1 : 2) == [1]`), /^has a loop within a loop/);
    assert.match(faultOf(`[1].exists_one(x, {'a': ${inner}}['a'])`), /^has a loop within a loop/);
    const one = `request.headers.all(h, true)`;
    assert.equal(cel.compile(`${one} && ${one}`, 'bool').kind, 'compiled');
  });

  it('counts a text that is scanned again each time as a loop', () => {
    const words = `request.headers['x'].split(',')`;
    for (const body of [
      `request.headers['x'].split(',').size() > 3`,
      `s in request.headers['y'].split(',')`,
      `!(s != '' && request.path.matches('a+b'))`,
    ]) {
      assert.match(faultOf(`${words}.exists(s, ${body})`), /^has a loop within a loop/);
    }
  });

  it('lets loops follow each other, and scan what they go over', () => {
    for (const expression of [
      `request.headers['x'].split(',').filter(s, s != '').exists(s, s.matches('^a'))`,
      `request.headers['x'].split(',').exists(s, s.split('=')[0] == 'k')`,
      `request.headers.all(h, request.headers[h].matches('^[a-z]*$'))`,
      `request.path.matches('^/a') && request.query.exists(q, q.contains('z'))`,
    ]) {
      assert.equal(cel.compile(expression, 'bool').kind, 'compiled', expression);
    }
  });

  it('is how deep it is nested', () => {
    const nested = (depth: number): string => `${'('.repeat(depth)}true${')'.repeat(depth)}`;

    assert.equal(cel.compile(nested(CEL_DEPTH_MAX - 1), 'bool').kind, 'compiled');
    assert.match(faultOf(nested(CEL_DEPTH_MAX)), /^Exceeded maxDepth/);
  });

  it('is how many parts it has', () => {
    // n literals and n − 1 operators.
    const sum = (count: number): string =>
      `${Array.from({ length: count }, () => '1').join('+')}>0`;
    const most = Math.floor((CEL_NODES_MAX - 2) / 2);

    assert.equal(cel.compile(sum(most), 'bool').kind, 'compiled');
    assert.match(faultOf(sum(most + 2)), /^Exceeded maxAstNodes/);
  });
});
