import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CompiledFieldMatch, CompiledMatch } from '../../contract/bundle.ts';
import {
  isCharged,
  requestOf,
  rulesOf,
  policyOf,
  ruleOf,
  evaluate,
} from '../../test/support/rule-bundle.ts';

type Case = readonly [
  match: CompiledMatch,
  request: ReturnType<typeof requestOf>,
  matches: boolean,
];

const field = (value: Partial<CompiledFieldMatch>): CompiledFieldMatch => ({
  name: 'x-plan',
  type: 'Exact',
  value: '',
  invert: false,
  ...value,
});

const path = (type: 'Exact' | 'Prefix' | 'Regex', value: string): CompiledMatch => ({
  path: { type, value },
});

const sent = (headers: Readonly<Record<string, string>>): ReturnType<typeof requestOf> =>
  requestOf({ headers });

const at = (target: string): ReturnType<typeof requestOf> => requestOf({ target });

function checkAll(cases: Readonly<Record<string, Case>>): void {
  for (const [claim, [match, request, matches]] of Object.entries(cases)) {
    it(claim, async () => {
      assert.equal(await isCharged({ match: [match] }, request), matches);
    });
  }
}

describe('a list of matches', () => {
  it('holds for every request when it is empty', async () => {
    assert.equal(await isCharged({ match: [] }, requestOf()), true);
  });

  it('holds when any of its matches does', async () => {
    const match = [{ methods: ['PUT'] }, path('Exact', '/a'), path('Exact', '/b')];

    assert.equal(await isCharged({ match }, at('/b')), true);
    assert.equal(await isCharged({ match }, at('/c')), false);
  });

  it('holds when one of its matches restricts nothing', async () => {
    assert.equal(await isCharged({ match: [{ methods: ['PUT'] }, {}] }, requestOf()), true);
  });

  it('holds for a match only when all of its fields do', async () => {
    const match = [
      { ...path('Exact', '/a'), methods: ['GET'], hosts: ['shop.example'] },
      { ...path('Exact', '/b'), methods: ['GET'] },
    ];

    assert.equal(await isCharged({ match }, at('/a')), true);
    assert.equal(await isCharged({ match }, requestOf({ target: '/a', host: 'b' })), false);
    assert.equal(await isCharged({ match }, requestOf({ target: '/a', method: 'PUT' })), false);
    assert.equal(await isCharged({ match }, at('/b')), true);
    assert.equal(await isCharged({ match }, requestOf({ target: '/b', method: 'PUT' })), false);
  });
});

describe('methods', () => {
  checkAll({
    'hold the one that is named': [{ methods: ['GET'] }, requestOf(), true],
    'hold any that is named': [{ methods: ['PUT', 'GET'] }, requestOf(), true],
    'hold no other': [{ methods: ['PUT', 'POST'] }, requestOf(), false],
    'are case-sensitive': [{ methods: ['GET'] }, requestOf({ method: 'get' }), false],
  });
});

describe('an exact path', () => {
  checkAll({
    'holds itself': [path('Exact', '/v1/a'), at('/v1/a?x'), true],
    'holds itself however it is written': [path('Exact', '/v1/a'), at('/x/..//v1/%61'), true],
    'does not hold what it begins': [path('Exact', '/v1'), at('/v1/a'), false],
    'tells a final slash': [path('Exact', '/v1'), at('/v1/'), false],
    'holds the root': [path('Exact', '/'), at('/'), true],
    'is case-sensitive': [path('Exact', '/v1'), at('/V1'), false],
    'beyond ASCII is compared as UTF-8': [path('Exact', '/café'), at('/caf%C3%A9'), true],
  });
});

describe('a path prefix', () => {
  checkAll({
    'holds itself': [path('Prefix', '/v1'), at('/v1'), true],
    'holds whole segments below it': [path('Prefix', '/v1'), at('/v1/x'), true],
    'does not hold a longer segment': [path('Prefix', '/v1'), at('/v10'), false],
    'with a final slash holds itself without': [path('Prefix', '/v1/'), at('/v1'), true],
    'with a final slash holds what is below': [path('Prefix', '/v1/'), at('/v1/x'), true],
    'with a final slash does not hold a longer segment': [
      path('Prefix', '/v1/'),
      at('/v10'),
      false,
    ],
    'cannot be dodged by escaped dots': [path('Prefix', '/admin'), at('/v1/%2e%2e/admin'), true],
    'cannot be dodged by an escaped slash': [path('Prefix', '/v1/admin'), at('/v1%2Fadmin'), true],
    'that is the root holds every path': [path('Prefix', '/'), at('/anything'), true],
    'that is the root does not hold the asterisk': [path('Prefix', '/'), at('*'), false],
  });
});

describe('a path expression', () => {
  checkAll({
    'is not anchored': [path('Regex', 'v[0-9]'), at('/api/v1/x'), true],
    'can be anchored': [path('Regex', '^/v[0-9]$'), at('/api/v1'), false],
    'sees the normalised path': [path('Regex', '^/v1$'), at('/%76%31'), true],
    'sees characters, not bytes': [path('Regex', '^/caf.$'), at('/caf%C3%A9'), true],
    'sees what is not UTF-8 as one replacement': [path('Regex', '^/.$'), at('/%ff'), true],
  });
});

describe('hosts', () => {
  checkAll({
    'hold the one that is named': [{ hosts: ['shop.example'] }, requestOf(), true],
    'are compared without case and port': [
      { hosts: ['shop.example'] },
      requestOf({ host: 'SHOP.example:80' }),
      true,
    ],
    'are compared without a final dot': [
      { hosts: ['shop.example'] },
      requestOf({ host: 'shop.example.' }),
      true,
    ],
    'hold no other': [{ hosts: ['shop.example'] }, requestOf({ host: 'a.shop.example' }), false],
    'hold every name below a wildcard': [
      { hosts: ['*.shop.example'] },
      requestOf({ host: 'a.b.shop.example' }),
      true,
    ],
    'do not hold the name of the wildcard itself': [
      { hosts: ['*.shop.example'] },
      requestOf(),
      false,
    ],
    'do not hold an empty label below a wildcard': [
      { hosts: ['*.shop.example'] },
      requestOf({ host: '.shop.example' }),
      false,
    ],
    'do not hold a longer last label': [
      { hosts: ['*.shop.example'] },
      requestOf({ host: 'myshop.example' }),
      false,
    ],
    'hold an address': [{ hosts: ['[::1]'] }, requestOf({ host: '[::1]:8080' }), true],
  });
});

describe('headers', () => {
  const prefix = field({ type: 'Prefix', value: 'pre' });
  const regex = field({ type: 'Regex', value: '^(a|b)$' });
  const present = field({ type: 'Present' });
  checkAll({
    'hold an exact value': [{ headers: [field({ value: 'a' })] }, sent({ 'X-Plan': 'a' }), true],
    'are case-sensitive in values': [
      { headers: [field({ value: 'a' })] },
      sent({ 'X-Plan': 'A' }),
      false,
    ],
    'beyond ASCII are compared as UTF-8': [
      { headers: [field({ value: 'é' })] },
      sent({ 'X-Plan': '\u00c3\u00a9' }),
      true,
    ],
    'hold a prefix': [{ headers: [prefix] }, sent({ 'X-Plan': 'premium' }), true],
    'hold no value without the prefix': [{ headers: [prefix] }, sent({ 'X-Plan': 'pro' }), false],
    'hold what an expression finds': [{ headers: [regex] }, sent({ 'X-Plan': 'b' }), true],
    'hold nothing that an expression does not find': [
      { headers: [regex] },
      sent({ 'X-Plan': 'c' }),
      false,
    ],
    'hold presence, even of an empty value': [{ headers: [present] }, sent({ 'X-Plan': '' }), true],
    'hold no absent field': [{ headers: [present] }, requestOf(), false],
    'hold the joined lines of a name': [
      { headers: [field({ value: 'a, b' })] },
      requestOf({
        headers: [
          ['X-Plan', 'a'],
          ['x-plan', 'b'],
        ],
      }),
      true,
    ],
    'must all hold': [
      { headers: [field({ value: 'a' }), field({ name: 'x-b', value: 'b' })] },
      sent({ 'X-Plan': 'a', 'X-B': 'c' }),
      false,
    ],
    'hold together': [
      { headers: [field({ value: 'a' }), present, field({ name: 'x-b', value: 'b' })] },
      sent({ 'X-Plan': 'a', 'X-B': 'b' }),
      true,
    ],
  });
});

describe('an inverted field', () => {
  const inverted = field({ value: 'a', invert: true });
  checkAll({
    'holds another value': [{ headers: [inverted] }, sent({ 'X-Plan': 'b' }), true],
    'does not hold the value': [{ headers: [inverted] }, sent({ 'X-Plan': 'a' }), false],
    'holds absence': [{ headers: [inverted] }, requestOf(), true],
    'of presence holds absence': [
      { headers: [field({ type: 'Present', invert: true })] },
      requestOf(),
      true,
    ],
    'of presence does not hold an empty value': [
      { headers: [field({ type: 'Present', invert: true })] },
      sent({ 'X-Plan': '' }),
      false,
    ],
    'of a query holds absence': [{ query: [inverted] }, at('/?x-plam=a'), true],
  });
});

describe('query pairs', () => {
  checkAll({
    'hold an exact value': [{ query: [field({ value: 'a b' })] }, at('/?x-plan=a+b'), true],
    'hold the first pair of a name': [
      { query: [field({ value: 'a' })] },
      at('/?x-plan=a&x-plan=b'),
      true,
    ],
    'do not hold the second pair of a name': [
      { query: [field({ value: 'b' })] },
      at('/?x-plan=a&x-plan=b'),
      false,
    ],
    'find a name that is escaped': [{ query: [field({ value: 'a' })] }, at('/?x%2Dplan=a'), true],
    'are case-sensitive in names': [{ query: [field({ value: 'a' })] }, at('/?X-Plan=a'), false],
    'hold a name beyond ASCII': [
      { query: [field({ name: 'café', value: '1' })] },
      at('/?caf%C3%A9=1'),
      true,
    ],
    'hold presence without a value': [
      { query: [field({ type: 'Present' })] },
      at('/?x-plan'),
      true,
    ],
  });

  it('are forgotten with their request', async () => {
    const match = [{ query: [field({ value: 'a' })] }];
    const rules = await rulesOf(policyOf({ rules: [ruleOf({ match })] }));

    assert.equal(evaluate(rules, at('/?x-plan=a')).count, 1);
    assert.equal(evaluate(rules, at('/')).count, 0);
  });
});

describe('client networks', () => {
  const match = { clientCIDRs: ['198.51.100.0/24', '2001:db8::/32'] };
  const from = (peerAddress: string): ReturnType<typeof requestOf> => requestOf({ peerAddress });
  checkAll({
    'hold an address inside': [match, from('198.51.100.9'), true],
    'hold an IPv4-mapped address inside': [match, from('::ffff:198.51.100.9'), true],
    'hold an IPv6 address inside, whatever the prefix of keys': [match, from('2001:db8::9'), true],
    'hold no address outside': [match, from('198.51.101.9'), false],
    'hold no unreadable address': [match, from(''), false],
  });

  it('look at the client behind trusted hops', async () => {
    const clientIP = { trustedHops: 1, trustedProxies: [], ipv6PrefixLength: 64 };
    const request = sent({ 'X-Forwarded-For': '198.51.100.9' });

    assert.equal(await isCharged({ match: [match] }, request, { clientIP }), true);
    assert.equal(await isCharged({ match: [match] }, request), false);
  });
});

describe('claims without an issuer', () => {
  checkAll({
    'never hold': [{ claims: [{ path: ['a'], value: 'b', invert: false }] }, requestOf(), false],
    'hold when inverted': [
      { claims: [{ path: ['a'], value: 'b', invert: true }] },
      requestOf(),
      true,
    ],
  });
});
