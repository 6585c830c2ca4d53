import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { describe, it } from 'node:test';
import type { CompiledPolicy } from '../../contract/bundle.ts';
import { FakeStore, ManualClock, ManualScheduler } from '../../test/support/limiter-fixture.ts';
import { bundleOf, policyOf, requestOf, ruleOf, tierOf } from '../../test/support/rule-bundle.ts';
import type { PendingAdmission, Verdict, Waiter } from '../proxy/gate.ts';
import type { RequestView } from '../rules/request-view.ts';
import { newRuleCounters } from '../rules/rule-counters.ts';
import { compileRules } from '../rules/rule-set.ts';
import { HOT_REQUESTS } from '../store/leases.ts';
import { Limiter } from '../store/limiter.ts';
import { MemoryStore } from '../store/memory-store.ts';
import { ArmedBundle } from './armed-bundle.ts';
import { EnforcingGate } from './enforcing-gate.ts';
import { RuleTallies } from './rule-tally.ts';

const NOW_MS = Date.UTC(2026, 0, 1);

/** A limit of `capacity` tokens and one a second. */
function tierFor(capacity: number, name = 'main'): ReturnType<typeof tierOf> {
  const limit = { capacity, unitsPerToken: 1, unitsPerTick: 1, tickUs: 1_000_000 } as const;
  return tierOf({ buckets: [{ name, limit }] });
}

class Bench implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly scheduler = new ManualScheduler(this.clock);
  readonly store = new FakeStore(this.clock);
  readonly tallies = new RuleTallies();
  readonly forwarded: string[] = [];
  readonly gate: EnforcingGate;
  readonly #limiter: Limiter;

  constructor(kind: 'embedded' | 'remote' = 'embedded', debugPeer?: string) {
    this.#limiter = new Limiter({
      store: kind === 'embedded' ? new MemoryStore(this.clock) : this.store,
      clock: this.clock,
      scheduler: this.scheduler,
      random: () => 0,
      lease: true,
    });
    this.gate = new EnforcingGate({
      limiter: this.#limiter,
      nowUs: () => this.clock.nowUs(),
      mayDebug: debugPeer === undefined ? undefined : (peer) => peer === debugPeer,
      onForwarded: (policy, rule) => this.forwarded.push(`${policy}/${rule}`),
    });
  }

  async load(...policies: readonly CompiledPolicy[]): Promise<void> {
    const bundle = bundleOf(...policies);
    const counters = newRuleCounters();
    const rules = await compileRules(bundle, { nowMs: () => NOW_MS, counters });
    this.gate.swap(new ArmedBundle(bundle, rules, this.tallies));
  }

  ask(view: RequestView = requestOf()): Answered {
    const answered = new Answered();
    this.gate.admit(view, answered);
    return answered;
  }

  tally(rule = 'rule', mode: 'Enforce' | 'Shadow' = 'Enforce'): readonly number[] {
    const { allowed, denied, unknown } = this.tallies.of('default/policy', rule, mode);
    return [allowed, denied, unknown];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#limiter[Symbol.asyncDispose]();
  }
}

/** Keeps what the verdict said: the object itself is valid only during the call. */
class Answered implements Waiter {
  pending: PendingAdmission | undefined = undefined;
  kind: Verdict['kind'] | undefined = undefined;
  verdicts = 0;
  fields = '';
  status = 0;
  body = '';
  remaining: number | undefined = undefined;
  chargeResponse: ((headers: Readonly<Record<string, string>>) => void) | undefined = undefined;

  onVerdict(verdict: Verdict): void {
    this.verdicts += 1;
    this.kind = verdict.kind;
    if (verdict.kind === 'allowed') {
      this.fields = verdict.fields;
      this.remaining = verdict.quota?.remaining;
      const { afterResponse } = verdict;
      if (afterResponse !== undefined) {
        this.chargeResponse = (headers) => {
          afterResponse.onResponseHead((name) => headers[name]);
        };
      }
      return;
    }
    const { status, fields, body } = verdict.answer;
    Object.assign(this, { status, fields, body });
  }
}

describe('the enforcing gate', () => {
  it('answers 503 before there is any configuration', async () => {
    await using bench = new Bench();

    const answered = bench.ask();

    assert.deepEqual([answered.kind, answered.status], ['unavailable', 503]);
    assert.match(answered.fields, /Retry-After: 1\r\n/);
    assert.equal(bench.gate.counters.unavailable, 1);
  });

  it('admits what the bucket holds and refuses the next, with the wait to the next token', async () => {
    await using bench = new Bench();
    await bench.load(policyOf({ rules: [ruleOf({ tiers: [tierFor(2)] })] }));

    const seen = [bench.ask(), bench.ask(), bench.ask()];

    assert.deepEqual(
      seen.map((one) => one.kind),
      ['allowed', 'allowed', 'denied'],
    );
    assert.equal(
      seen[0]?.fields,
      'RateLimit-Policy: "policy/rule/main";q=2;w=2\r\nRateLimit: "policy/rule/main";r=1;t=1\r\n',
    );
    assert.equal(seen[1]?.remaining, 0);
    assert.match(
      seen[2]?.fields ?? '',
      /Retry-After: 1\r\nRateLimit-Policy: .*\r\nRateLimit: .*;r=0;t=1\r\n$/,
    );
    assert.match(seen[2]?.body ?? '', /"violated-policies":\["policy\/rule\/main"\]/);
    assert.deepEqual(bench.tally(), [2, 1, 0]);
    assert.deepEqual(bench.gate.counters, {
      allowed: 2,
      denied: 1,
      unavailable: 0,
      exempt: 0,
      error: 0,
    });
  });

  it('charges several rules as one decision, and blames the one that refused', async () => {
    await using bench = new Bench();
    const narrow = ruleOf({ name: 'narrow', tiers: [tierFor(1)] });
    const wide = ruleOf({ name: 'wide', tiers: [tierFor(5)] });
    await bench.load(policyOf({ rules: [wide, narrow] }));

    const seen = [bench.ask(), bench.ask(), bench.ask()];

    assert.deepEqual(
      seen.map((one) => one.kind),
      ['allowed', 'denied', 'denied'],
    );
    assert.match(seen[0]?.fields ?? '', /"policy\/narrow\/main";r=0/);
    assert.deepEqual(bench.tally('narrow'), [1, 2, 0]);
    assert.deepEqual(bench.tally('wide'), [1, 0, 0]);
  });

  it('lets requests pass that no rule looks at', async () => {
    await using bench = new Bench();
    const match = [{ methods: ['POST'] }];
    await bench.load(policyOf({ rules: [ruleOf({ match })] }));

    const answered = bench.ask();

    assert.deepEqual([answered.kind, answered.fields], ['allowed', '']);
    assert.equal(bench.gate.counters.exempt, 1);
  });

  it('answers 400 to a target that cannot be interpreted', async () => {
    await using bench = new Bench();
    await bench.load(policyOf());

    const answered = bench.ask(requestOf({ target: '/%zz' }));

    assert.deepEqual([answered.kind, answered.status], ['bad-request', 400]);
    assert.equal(bench.gate.counters.error, 1);
  });

  it('refuses a missing key without a wait, where the rule says Deny', async () => {
    await using bench = new Bench();
    const key = [{ kind: 'header', name: 'x-api-key' }] as const;
    const response = {
      status: 403,
      quotaHeaders: 'RateLimit',
      headers: [{ name: 'X-Why', value: 'no key' }],
    } as const;
    await bench.load(policyOf({ response, rules: [ruleOf({ key, onMissingKey: 'Deny' })] }));

    const answered = bench.ask();

    assert.deepEqual([answered.kind, answered.status], ['denied', 403]);
    assert.match(answered.fields, /X-Why: no key\r\n/);
    assert.doesNotMatch(answered.fields, /Retry-After|RateLimit/);
    assert.deepEqual(bench.tally(), [0, 1, 0]);
  });

  it('gives no Retry-After for a cost above the capacity', async () => {
    await using bench = new Bench();
    const cost = { tokens: 1, header: { name: 'x-cost', max: 100 } };
    await bench.load(policyOf({ rules: [ruleOf({ cost, tiers: [tierFor(5)] })] }));

    const answered = bench.ask(requestOf({ headers: { 'X-Cost': '6' } }));

    assert.equal(answered.kind, 'denied');
    assert.doesNotMatch(answered.fields, /Retry-After/);
  });

  it('counts shadow rules after the verdict and never lets them change it', async () => {
    await using bench = new Bench();
    const shadow = ruleOf({ name: 'shadow', mode: 'Shadow', tiers: [tierFor(1)] });
    const enforced = ruleOf({ name: 'enforced', tiers: [tierFor(2)] });
    await bench.load(policyOf({ rules: [shadow, enforced] }));

    const kinds = [bench.ask(), bench.ask(), bench.ask()].map((one) => one.kind);

    assert.deepEqual(kinds, ['allowed', 'allowed', 'denied']);
    // The third was not admitted, so the shadow rule never saw it.
    assert.deepEqual(bench.tally('shadow', 'Shadow'), [1, 1, 0]);
  });

  it('counts a request with only shadow rules as allowed, without waiting for the store', async () => {
    await using bench = new Bench('remote');
    await bench.load(policyOf({ rules: [ruleOf({ mode: 'Shadow' })] }));

    const answered = bench.ask();

    assert.equal(answered.kind, 'allowed');
    assert.equal(bench.gate.counters.allowed, 1);
    bench.scheduler.endTurn();
    bench.store.answer();
    assert.deepEqual(bench.tally('rule', 'Shadow'), [1, 0, 0]);
  });

  it('counts a missing key of a shadow rule without refusing', async () => {
    await using bench = new Bench();
    const key = [{ kind: 'header', name: 'x-api-key' }] as const;
    await bench.load(policyOf({ rules: [ruleOf({ mode: 'Shadow', key, onMissingKey: 'Deny' })] }));

    const answered = bench.ask();

    assert.equal(answered.kind, 'allowed');
    assert.deepEqual(bench.tally('rule', 'Shadow'), [0, 1, 0]);
  });

  it('charges what the response says it cost, for enforced and shadow rules', async () => {
    await using bench = new Bench();
    const cost = { tokens: 1, response: { name: 'x-cost', max: 3 } };
    const enforced = ruleOf({ name: 'enforced', cost, tiers: [tierFor(10)] });
    const shadow = ruleOf({ name: 'shadow', mode: 'Shadow', cost, tiers: [tierFor(2)] });
    await bench.load(
      policyOf({ rules: [enforced, shadow, ruleOf({ name: 'free', tiers: [tierFor(99)] })] }),
    );
    const first = bench.ask();

    first.chargeResponse?.({ 'x-cost': '7' });
    const second = bench.ask();
    second.chargeResponse?.({ 'x-cost': 'unreadable' });
    const third = bench.ask();

    assert.match(first.fields, /r=9/);
    assert.match(second.fields, /r=5/);
    assert.match(third.fields, /r=4/);
    assert.deepEqual(bench.tally('shadow', 'Shadow'), [1, 2, 0]);
  });

  it('speaks the X-RateLimit trio, or not at all, as the policy says', async () => {
    const speak = async (quotaHeaders: 'XRateLimit' | 'None'): Promise<readonly string[]> => {
      await using bench = new Bench();
      const response = { status: 429, quotaHeaders, headers: [] };
      await bench.load(policyOf({ response, rules: [ruleOf({ tiers: [tierFor(1)] })] }));
      return [bench.ask(), bench.ask()].map((one) => one.fields);
    };

    const [allowed, denied] = await speak('XRateLimit');
    const [silent, refused] = await speak('None');

    assert.equal(
      allowed,
      'X-RateLimit-Limit: 1\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1\r\n',
    );
    assert.match(denied ?? '', /Retry-After: 1\r\nX-RateLimit-Limit: 1\r\n/);
    assert.equal(silent, '');
    assert.match(refused ?? '', /Retry-After: 1\r\n$/);
  });

  it('answers by the failure mode when the store fails, without numbers it does not know', async () => {
    await using bench = new Bench('remote');
    const closed = policyOf({ failureMode: 'Closed' });
    await bench.load(closed);
    const unavailable = bench.ask();
    bench.scheduler.endTurn();
    bench.store.fail('oom');
    await bench.load(policyOf({ failureMode: 'Open' }));
    const open = bench.ask();
    bench.scheduler.endTurn();
    bench.store.fail('oom');

    assert.deepEqual([unavailable.kind, unavailable.status], ['unavailable', 503]);
    assert.deepEqual([open.kind, open.fields, open.remaining], ['allowed', '', undefined]);
    assert.deepEqual(bench.tally(), [1, 0, 1]);
  });

  it('gives no verdict to a client that has gone, and uses the admission again', async () => {
    await using bench = new Bench('remote');
    await bench.load(policyOf());
    const gone = bench.ask();
    bench.gate.cancel(gone);
    bench.gate.cancel(gone);
    const next = bench.ask();

    bench.scheduler.endTurn();
    bench.store.answer();

    assert.deepEqual([gone.verdicts, gone.pending], [0, undefined]);
    assert.deepEqual([next.verdicts, next.pending], [1, undefined]);
  });

  it('counts a request whose client has gone as the store answers it, or as an error when it was not asked', async () => {
    await using bench = new Bench('remote');
    await bench.load(policyOf({ rules: [ruleOf({ tiers: [tierFor(1)] })] }));
    const asked = [bench.ask(), bench.ask()];
    bench.scheduler.endTurn();
    for (const gone of asked) bench.gate.cancel(gone);
    const unasked = bench.ask();
    bench.gate.cancel(unasked);

    bench.store.answer();

    const { counters } = bench.gate;
    assert.deepEqual([counters.allowed, counters.denied, counters.error], [1, 1, 1]);
    assert.deepEqual(
      [...asked, unasked].map(({ verdicts }) => verdicts),
      [0, 0, 0],
    );
  });

  it('counts a request over several lanes that it began to charge, without its client too', async () => {
    await using bench = new Bench('remote');
    const pod = policyOf({ name: 'pod', uid: 'pod', scope: 'Pod' });
    await bench.load(policyOf(), pod);
    const gone = bench.ask();
    bench.gate.cancel(gone);

    bench.scheduler.endTurn();
    bench.store.answer();

    assert.equal(gone.verdicts, 0);
    assert.equal(bench.gate.counters.allowed, 1);
  });

  it('ends requests in flight under the bundle they began with', async () => {
    await using bench = new Bench('remote');
    await bench.load(policyOf({ name: 'before' }));
    const before = bench.ask();
    bench.scheduler.endTurn();
    await bench.load(policyOf({ name: 'after' }));

    bench.store.answer();
    const after = bench.ask();
    bench.scheduler.endTurn();
    bench.store.answer();

    assert.match(before.fields, /"before\/rule\/main"/);
    assert.match(after.fields, /"after\/rule\/main"/);
  });

  it('gives back what a hot key took ahead under the bundle before', async () => {
    await using bench = new Bench('remote');
    const limit = { capacity: 1_000, unitsPerToken: 1_000, unitsPerTick: 1, tickUs: 1 } as const;
    const policy = policyOf({
      rules: [ruleOf({ tiers: [tierOf({ buckets: [{ name: 'main', limit }] })] })],
    });
    await bench.load(policy);
    for (let i = 0; i < HOT_REQUESTS; i += 1) bench.ask();
    bench.scheduler.endTurn();
    const key = bench.store.calls[0]?.keys[0] ?? assert.fail();
    bench.store.answer();
    // A hundredth of the capacity.
    assert.equal(bench.store.levelOf(key), (1_000 - HOT_REQUESTS - 10) * 1_000);

    await bench.load(policy);
    bench.scheduler.endTurn();
    bench.store.answer();

    assert.equal(bench.store.levelOf(key), (1_000 - HOT_REQUESTS) * 1_000);
  });

  it('says once per rule that a key is the address of what is probably a proxy', async () => {
    await using bench = new Bench();
    const key = [{ kind: 'clientIP' }] as const;
    const trusting = { trustedHops: 0, trustedProxies: ['192.0.2.0/24'], ipv6PrefixLength: 64 };
    const header = [{ kind: 'header', name: 'x-api-key' }] as const;
    await bench.load(
      policyOf({
        rules: [
          ruleOf({ name: 'naive', key }),
          ruleOf({ name: 'fallen-back', key: header }),
          ruleOf({ name: 'keyless' }),
        ],
      }),
      policyOf({ name: 'wise', clientIP: trusting, rules: [ruleOf({ name: 'wise', key })] }),
    );
    const proxied = requestOf({ headers: { 'X-Forwarded-For': '198.51.100.7' } });

    bench.ask(proxied);
    bench.ask(proxied);

    assert.deepEqual(bench.forwarded.toSorted(), [
      'default/policy/fallen-back',
      'default/policy/naive',
    ]);
  });

  it('describes what met a request to who may ask', async () => {
    await using bench = new Bench('embedded', '192.0.2.1');
    const shadow = ruleOf({ name: 'shadow', mode: 'Shadow', tiers: [tierFor(7)] });
    await bench.load(policyOf({ rules: [ruleOf({ tiers: [tierFor(2)] }), shadow] }));
    const asking = requestOf({ headers: { 'Weir-Debug': '1' } });

    const allowed = bench.ask(asking);
    bench.ask(asking);
    const denied = bench.ask(asking);
    const stranger = bench.ask(
      requestOf({ peerAddress: '192.0.2.9', headers: { 'Weir-Debug': '1' } }),
    );
    await bench.load();
    const unmatched = bench.ask(asking);

    assert.match(
      allowed.fields,
      /Weir-Debug: "policy\/rule\/main";tier="-";key="[\w-]{22}";tokens=1, "policy\/shadow\/main";tier="-";key="[\w-]{22}";shadow\r\n$/,
    );
    assert.match(
      denied.fields,
      /Weir-Debug: "policy\/rule\/main";tier="-";key="[\w-]{22}";tokens=0, /,
    );
    assert.doesNotMatch(stranger.fields, /Weir-Debug/);
    assert.equal(unmatched.fields, 'Weir-Debug: "no-rule"\r\n');
  });
});

describe('a rule over claims', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = { ...publicKey.export({ format: 'jwk' }), alg: 'ES256', kid: 'k' };
  const jwt = { audiences: [], header: 'authorization', keys: [jwk] };
  const key = [{ kind: 'claim', path: ['sub'] }] as const;

  function bearer(claims: Readonly<Record<string, unknown>>): string {
    const encode = (part: unknown): string =>
      Buffer.from(JSON.stringify(part)).toString('base64url');
    const head = `${encode({ alg: 'ES256', kid: 'k' })}.${encode(claims)}`;
    const signature = sign('sha256', Buffer.from(head), {
      key: privateKey,
      dsaEncoding: 'ieee-p1363',
    });
    return `Bearer ${head}.${signature.toString('base64url')}`;
  }

  function asking(claims: Readonly<Record<string, unknown>>, target = '/'): RequestView {
    return requestOf({ target, headers: { Authorization: bearer(claims) } });
  }

  const claims = { sub: 'alice', exp: NOW_MS / 1_000 + 60 };

  /** Verification runs in the thread pool: its end is some turns of the event loop away, not a time. */
  async function verdictOf(answered: Answered): Promise<Answered> {
    while (answered.verdicts === 0) await new Promise((resolve) => setImmediate(resolve));
    return answered;
  }

  it('waits for the first verification of a token, then knows it', async () => {
    await using bench = new Bench();
    await bench.load(policyOf({ jwt, rules: [ruleOf({ key, onMissingKey: 'Deny' })] }));

    const first = bench.ask(asking(claims));
    assert.equal(first.verdicts, 0);
    await verdictOf(first);
    const second = bench.ask(requestOf({ headers: { Authorization: bearer(claims) } }));
    const forged = await verdictOf(
      bench.ask(requestOf({ headers: { Authorization: 'Bearer a.b.c' } })),
    );

    assert.equal(first.kind, 'allowed');
    // ECDSA signatures differ each time, so the second token is verified too.
    await verdictOf(second);
    assert.match(second.fields, /r=8/);
    assert.deepEqual([forged.kind, forged.status], ['denied', 429]);
  });

  it('forgets a client that goes while its token is verified', async () => {
    await using bench = new Bench();
    await bench.load(policyOf({ jwt, rules: [ruleOf({ key })] }));
    const view = asking(claims);
    const gone = bench.ask(view);

    bench.gate.cancel(gone);
    const next = bench.ask(view);
    await verdictOf(next);

    assert.equal(gone.verdicts, 0);
    assert.match(next.fields, /r=9/);
  });
});
