import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { describePolicy } from './describe.ts';
import { validatePolicy } from './validation.ts';

const BUCKETS = [{ capacity: 100, refill: { tokens: 100, every: '1m' } }];
const JWT = { issuer: 'i', jwks: { uri: 'https://a/j' } };

function words(spec: object = {}): string {
  const outcome = validatePolicy({
    apiVersion: 'weir.dev/v1alpha1',
    kind: 'RateLimitPolicy',
    metadata: { name: 'x' },
    spec: { selector: {}, rules: [{ name: 'all', buckets: BUCKETS }], ...spec },
  });
  return outcome.kind === 'valid'
    ? describePolicy(outcome.policy)
    : assert.fail(JSON.stringify(outcome.problems));
}

function ruleWords(rule: object, spec: object = {}): string {
  return words({ ...spec, rules: [{ name: 'all', buckets: BUCKETS, ...rule }] });
}

function assertSays(text: string, ...sentences: string[]): void {
  for (const sentence of sentences) {
    assert(
      text.split('\n').some((line) => line.trim() === sentence),
      `"${sentence}" is not in:\n${text}`,
    );
  }
}

describe('a policy in words', () => {
  it('reads from the whole to the bucket', () => {
    const tiers = [
      {
        name: 'premium',
        match: [{ headers: [{ name: 'X-Plan', value: 'premium' }] }],
        buckets: [{ capacity: 1000, refill: { tokens: 1000, every: '1h' } }],
      },
      {
        name: 'free',
        buckets: [
          { name: 'hourly', capacity: 100, refill: { tokens: 100, every: '1h' } },
          { name: 'burst', capacity: 10, refill: { tokens: 2, every: '1s' } },
        ],
      },
    ];
    const rules = [{ name: 'per-client', key: [{ header: { name: 'X-Api-Key' } }], tiers }];

    assert.equal(
      words({
        selector: { matchLabels: { app: 'api' } },
        except: [{ path: { type: 'Exact', value: '/health' } }],
        rules,
      }),
      `Policy default/x
  Applies to pods with app=api.
  Enforced: refuses with status 429.
  All pods share the buckets.
  While the store is away each pod limits to its share.
  No rule looks at requests where the path is /health.

  Rule per-client
    Limits every request.
    Each value of header X-Api-Key has its own allowance; a request without it counts for the address of its client.
    Tier premium, when the header X-Plan is "premium":
      Up to 1000 requests at once, then 1000 every 1h (16.7 a minute).
    Tier free, everybody else:
      Bucket hourly: up to 100 requests at once, then 100 every 1h (1.67 a minute).
      Bucket burst: up to 10 requests at once, then 2 every 1s (2 a second).`,
    );
  });

  it('says what its mode does', () => {
    assertSays(words({ mode: 'Disabled' }), 'Disabled: nothing is limited or counted.');
    assertSays(
      words({ mode: 'Shadow' }),
      'Shadow: counts what it would refuse, and refuses nothing.',
    );
    assertSays(words({ response: { status: 503 } }), 'Enforced: refuses with status 503.');
    assertSays(
      words({ enforcePercent: 5 }),
      'Enforced: refuses with status 429 for 5 % of the clients, and only counts for the others.',
    );
  });

  it('says what happens without the store', () => {
    assertSays(
      words({ failureMode: 'Open' }),
      'While the store is away every request is let through.',
    );
    assertSays(
      words({ failureMode: 'Closed' }),
      'While the store is away every request is answered with 503.',
    );
    assertSays(words({ scope: 'Pod' }), 'Each pod has buckets of its own.', 'No store is needed.');
    assertSays(words({ scope: 'Workload' }), 'The pods of one workload share the buckets.');
  });

  it('says which pods, ports and addresses it is about', () => {
    const matchExpressions = [
      { key: 'a', operator: 'In', values: ['b', 'c'] },
      { key: 'd', operator: 'NotIn', values: ['e'] },
      { key: 'f', operator: 'Exists' },
      { key: 'g', operator: 'DoesNotExist' },
    ];

    assertSays(
      words({ selector: { matchExpressions } }),
      'Applies to pods with a in (b, c), d not in (e), a label f, no label g.',
    );
    assertSays(
      words({ ports: [8080, 'http'] }),
      'Applies to every opted-in pod of the namespace, on port 8080 or http.',
    );
    assertSays(
      words({ clientIP: { trustedHops: 2 } }),
      'The client is address 2 from the right of X-Forwarded-For.',
    );
    assertSays(
      words({ clientIP: { trustedProxies: ['10.0.0.0/8', 'fd00::/8'] } }),
      'The client is the last address of X-Forwarded-For outside of 10.0.0.0/8, fd00::/8.',
    );
    assert(!words({ clientIP: { trustedHops: 0 } }).includes('The client is'));
  });
});

describe('a token in words', () => {
  it('is by whom, for whom and where', () => {
    assertSays(words({ jwt: JWT }), 'Claims are of tokens by i, in the header Authorization.');
    assertSays(
      words({ jwt: { ...JWT, audiences: ['api', 'web'], header: 'X-Token' } }),
      'Claims are of tokens by i for api or web, in the header X-Token.',
    );
  });
});

describe('a rule in words', () => {
  it('says whether it only counts or does nothing', () => {
    assertSays(ruleWords({ mode: 'Shadow' }), 'Rule all (shadow: only counts)');
    assertSays(ruleWords({ mode: 'Disabled' }), 'Rule all (disabled)');
  });

  it('says which requests it is about', () => {
    const match = [
      { methods: ['GET', 'HEAD'], path: { type: 'Prefix', value: '/v1/' } },
      { hosts: ['a.example', '*.b.example'], clientCIDRs: ['10.0.0.0/8'] },
      { path: { type: 'Regex', value: '^/x' }, cel: { expression: 'true' } },
    ];

    assertSays(
      ruleWords({ match, except: [{ methods: ['OPTIONS'] }] }),
      'Limits requests where the method is GET or HEAD and the path begins with /v1/, or the host is a.example or *.b.example and the client is in 10.0.0.0/8, or the path matches `^/x` and `true` holds.',
      'Not requests where the method is OPTIONS.',
    );
  });

  it('says each comparison and its inversion', () => {
    const headers = [
      { name: 'A', value: 'x' },
      { name: 'B', type: 'Prefix', value: 'x', invert: true },
      { name: 'C', type: 'Regex', value: 'x', invert: false },
      { name: 'D', type: 'Present', invert: true },
    ];
    const query = [
      { name: 'e', type: 'Present' },
      { name: 'f', value: 'x', invert: true },
    ];
    const claims = [
      { path: ['a', 'b'], value: 'x' },
      { path: ['c'], value: 'y', invert: true },
    ];

    assertSays(
      ruleWords({ match: [{ headers, query, claims }] }, { jwt: JWT }),
      'Limits requests where the header A is "x" and the header B does not begin with "x" and the header C matches `x` and the header D is absent and the query parameter e is there and the query parameter f is not "x" and the claim a › b is "x" and the claim c is not "y".',
    );
  });

  it('says who has an allowance, and what happens to who has no key', () => {
    const key = [{ header: { name: 'X' } }];

    assertSays(ruleWords({}), 'All of them share one allowance.');
    assertSays(
      ruleWords({ key, onMissingKey: 'Skip' }),
      'Each value of header X has its own allowance; a request without it is not limited.',
    );
    assertSays(
      ruleWords({ key, onMissingKey: 'Deny' }),
      'Each value of header X has its own allowance; a request without it is refused with 429.',
    );
    assertSays(
      ruleWords({ key, onMissingKey: 'Deny' }, { response: { status: 401 } }),
      'Each value of header X has its own allowance; a request without it is refused with 401.',
    );
    assertSays(
      ruleWords({ key, onMissingKey: 'Shared' }),
      'Each value of header X has its own allowance; requests without it share one.',
    );
  });

  it('says each kind of key, and nothing of missing ones where none can be', () => {
    const always = [{ clientIP: {} }, { path: {} }, { method: {} }, { constant: { value: 'k' } }];
    const others = [
      { cookie: { name: 's' } },
      { query: { name: 'q' } },
      { claim: { path: ['a', 'b'] } },
      { pathSegment: { index: 2 } },
      { host: {} },
      { cel: { expression: 'client.ip' } },
    ];

    assertSays(
      ruleWords({ key: always }),
      'Each client address and path and method and constant "k" has its own allowance.',
    );
    assertSays(
      ruleWords({ key: others, onMissingKey: 'Skip' }, { jwt: JWT }),
      'Each value of cookie s and value of query parameter q and value of claim a › b and segment 2 of the path and host and value of `client.ip` has its own allowance; a request without it is not limited.',
    );
  });

  it('says what a request costs', () => {
    const header = { name: 'X-Cost', default: 2, max: 50 };

    assertSays(
      ruleWords({ cost: { tokens: 1 } }),
      'A request takes 1 token.',
      'Up to 100 tokens at once, then 100 every 1m (1.67 a second).',
    );
    assertSays(
      ruleWords({ cost: { tokens: 5, response: { header: { name: 'X-Took', max: 9 } } } }),
      'A request takes 5 tokens.',
      'The header X-Took of the response takes further tokens, at most 9.',
    );
    assertSays(
      ruleWords({ cost: { header } }),
      'A request takes as many tokens as its header X-Cost says, 2 without it, at most 50.',
    );
  });

  it('says the rate in the smallest unit with a whole token, or by the day', () => {
    const rate = (tokens: number, every: string): string =>
      ruleWords({ buckets: [{ capacity: 1, refill: { tokens, every } }] });

    assertSays(rate(1, '1s'), 'Up to 1 request at once, then 1 every 1s (1 a second).');
    assertSays(rate(1, '90s'), 'Up to 1 request at once, then 1 every 90s (40 an hour).');
    assertSays(rate(5, '100ms'), 'Up to 1 request at once, then 5 every 100ms (50 a second).');
    assertSays(rate(1, '12h'), 'Up to 1 request at once, then 1 every 12h (2 a day).');
    assertSays(rate(1, '30d'), 'Up to 1 request at once, then 1 every 30d (0.0333 a day).');
  });

  it('says what happens without a tier', () => {
    const tiers = [{ name: 'a', match: [{ methods: ['GET'] }], buckets: BUCKETS }];

    assertSays(
      words({ rules: [{ name: 'r', tiers, onNoTier: 'Skip' }] }),
      'Tier a, when the method is GET:',
      'Without a tier: not limited.',
    );
    assertSays(
      words({ rules: [{ name: 'r', tiers, onNoTier: 'Deny' }] }),
      'Without a tier: refused.',
    );
  });
});
