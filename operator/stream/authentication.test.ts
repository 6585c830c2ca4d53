import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { StreamWorld, type TokenClaims, TokenReviews } from '../../test/support/stream-world.ts';
import { Authenticator, REMEMBERED_MS, REMEMBERED_WITHOUT_API_MS } from './authentication.ts';

class Fixture {
  nowMs = 0;
  wallClockMs = 1_000_000;
  readonly world = new StreamWorld();
  readonly api = new TokenReviews();
  readonly results: string[] = [];
  readonly authenticator = new Authenticator({
    api: this.api,
    pods: this.world,
    nowMs: () => this.nowMs,
    wallClockMs: () => this.wallClockMs,
    onReview: (result) => this.results.push(result),
  });

  constructor() {
    this.world.addPod('pod-1');
  }

  pass(ms: number): void {
    this.nowMs += ms;
    this.wallClockMs += ms;
  }

  async kind(token: string): Promise<string> {
    return (await this.authenticator.authenticate(`Bearer ${token}`)).kind;
  }
}

describe('a token', () => {
  it('of a pod in the cache lets it in', async () => {
    const fixture = new Fixture();
    const token = fixture.api.issue({ podUid: 'pod-1' });

    const outcome = await fixture.authenticator.authenticate(`Bearer ${token}`);

    assert.equal(outcome.kind, 'pod');
    assert.equal(outcome.podUid, 'pod-1');
  });

  const strangers: Readonly<Record<string, TokenClaims>> = {
    'of another audience': { podUid: 'pod-1', audiences: ['https://kubernetes.default.svc'] },
    'that is not authenticated': { podUid: 'pod-1', authenticated: false },
    'that is bound to no pod': {},
    'of a user': { podUid: 'pod-1', username: 'system:serviceaccount' },
  };
  for (const [which, claims] of Object.entries(strangers)) {
    it(`${which} is refused`, async () => {
      const fixture = new Fixture();

      assert.equal(await fixture.kind(fixture.api.issue(claims)), 'unauthenticated');
    });
  }

  it('that an authenticator blind to audiences accepted is refused', async () => {
    const fixture = new Fixture();
    fixture.api.readsAudiences = false;

    assert.equal(await fixture.kind(fixture.api.issue({ podUid: 'pod-1' })), 'unauthenticated');
  });

  it('of a pod that is unknown, has ended, or is of another namespace or account is forbidden', async () => {
    const { world, api, ...fixture } = new Fixture();
    const { authenticator } = fixture;
    world.addPod('ended', { isTerminal: true });
    const claims: readonly TokenClaims[] = [
      { podUid: 'nobody' },
      { podUid: 'ended' },
      { podUid: 'pod-1', namespace: 'other' },
      { podUid: 'pod-1', serviceAccount: 'other' },
    ];

    const outcomes = await Promise.all(
      claims.map((one) => authenticator.authenticate(`Bearer ${api.issue(one)}`)),
    );

    assert.deepEqual(
      outcomes.map(({ kind }) => kind),
      ['forbidden', 'forbidden', 'forbidden', 'forbidden'],
    );
  });

  it('that is missing, misspelt or too long never reaches the API server', async () => {
    const fixture = new Fixture();

    for (const header of [
      undefined,
      '',
      'Basic abc',
      'Bearer a b',
      `Bearer ${'a'.repeat(16_385)}`,
    ]) {
      assert.equal((await fixture.authenticator.authenticate(header)).kind, 'unauthenticated');
    }

    assert.equal(fixture.api.reviews, 0);
  });
});

describe('reviews', () => {
  it('are asked once for a token that many show at once', async () => {
    const fixture = new Fixture();
    const token = fixture.api.issue({ podUid: 'pod-1' });

    await Promise.all(Array.from({ length: 50 }, () => fixture.kind(token)));

    assert.equal(fixture.api.reviews, 1);
  });

  it('run 20 at once, and the others wait', async () => {
    const fixture = new Fixture();
    const gate = Promise.withResolvers<undefined>();
    fixture.api.gate = gate.promise;
    const tokens = Array.from({ length: 21 }, () => fixture.api.issue({ podUid: 'pod-1' }));

    const asked = tokens.map((token) => fixture.kind(token));
    await new Promise(setImmediate);
    const running = fixture.api.reviews;
    gate.resolve(undefined);
    const kinds = await Promise.all(asked);

    assert.equal(running, 20);
    assert.equal(fixture.api.mostRunning, 20);
    assert(kinds.every((kind) => kind === 'pod'));
  });

  it('are remembered for a minute', async () => {
    const fixture = new Fixture();
    const token = fixture.api.issue({ podUid: 'pod-1' });
    await fixture.kind(token);
    fixture.api.revoke(token);

    fixture.pass(REMEMBERED_MS - 1);
    const within = await fixture.kind(token);
    fixture.pass(1);
    const after = await fixture.kind(token);

    assert.deepEqual([within, after], ['pod', 'unauthenticated']);
  });

  it('are not remembered beyond the token itself', async () => {
    const fixture = new Fixture();
    const token = fixture.api.issue({
      podUid: 'pod-1',
      exp: (fixture.wallClockMs + 2_000) / 1_000,
    });
    await fixture.kind(token);
    fixture.api.isAway = true;

    fixture.pass(1_999);
    const within = await fixture.kind(token);
    fixture.pass(1);
    const after = await fixture.kind(token);

    assert.deepEqual([within, after], ['pod', 'unavailable']);
  });

  it('that are remembered do not let in a pod that has gone', async () => {
    const fixture = new Fixture();
    const token = fixture.api.issue({ podUid: 'pod-1' });
    await fixture.kind(token);

    fixture.world.removePod('pod-1');

    assert.equal(await fixture.kind(token), 'forbidden');
  });

  it('may stand for ten minutes without the API server, for a token that was good', async () => {
    const fixture = new Fixture();
    const token = fixture.api.issue({ podUid: 'pod-1' });
    await fixture.kind(token);
    fixture.api.isAway = true;

    fixture.pass(REMEMBERED_WITHOUT_API_MS - 1);
    const within = await fixture.kind(token);
    const another = await fixture.kind(fixture.api.issue({ podUid: 'pod-1' }));
    fixture.pass(1);
    const after = await fixture.kind(token);

    assert.deepEqual([within, another, after], ['pod', 'unavailable', 'unavailable']);
  });

  it('that turned a token down are not undone by the API server going away', async () => {
    const fixture = new Fixture();
    const token = fixture.api.issue({ podUid: 'pod-1' });
    await fixture.kind(token);
    fixture.api.revoke(token);
    fixture.pass(REMEMBERED_MS);
    await fixture.kind(token);

    fixture.api.isAway = true;

    assert.equal(await fixture.kind(token), 'unavailable');
  });

  it('that are not allowed are said so, for readiness', async () => {
    const fixture = new Fixture();
    const signal = AbortSignal.timeout(1_000);
    const before = await fixture.authenticator.whyNotAllowed(signal);

    fixture.api.mayReview = false;

    assert.equal(before, undefined);
    assert.match((await fixture.authenticator.whyNotAllowed(signal)) ?? '', /tokenreviews/);
  });
});
