import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settle, SteppedClock } from '../test/support/stepped-clock.ts';
import { Readiness } from './readiness.ts';

/** What it goes by, for a test to change. */
class Surroundings {
  readonly clock = new SteppedClock();
  cacheProblem: string | undefined;
  trustProblem: string | undefined;
  notAfterMs = this.clock.wallMs() + 3_600_000;
  /** An Error is a review that fails. */
  reviews: string | Error | undefined;
  asked = 0;

  open(): Readiness {
    const identity = { cert: '', key: '', trust: 'PEM' };
    const cacheProblem = (): string | undefined => this.cacheProblem;
    return new Readiness({
      config: { manageCaBundle: true },
      state: {
        watch: {
          get problem() {
            return cacheProblem();
          },
        },
      },
      certificates: { current: () => ({ ...identity, notAfterMs: this.notAfterMs }) },
      webhookWatch: { trustProblem: () => this.trustProblem },
      stream: {
        whyNotReady: () => {
          this.asked += 1;
          const { reviews } = this;
          return reviews instanceof Error ? Promise.reject(reviews) : Promise.resolve(reviews);
        },
      },
      clock: this.clock,
    });
  }
}

function problemsOf({ checks }: Readiness): Readonly<Record<string, string>> {
  const problems = checks.map(({ name, problem }) => [name, problem()] as const);
  return Object.fromEntries(problems.flatMap(([name, said]) => (said ? [[name, said]] : [])));
}

describe('a replica', () => {
  it('is ready when nothing is wrong, and not before it was told that it may review tokens', async () => {
    await using readiness = new Surroundings().open();
    const before = problemsOf(readiness);

    await settle();

    assert.deepEqual(before, { 'token-reviews': 'not asked yet whether tokens may be reviewed' });
    assert.deepEqual([readiness.isReady, problemsOf(readiness)], [true, {}]);
  });

  it('names each thing that is wrong', async () => {
    const around = new Surroundings();
    Object.assign(around, { cacheProblem: 'pods', trustProblem: 'no CA', reviews: 'no role' });
    around.notAfterMs = around.clock.wallMs();
    await using readiness = around.open();

    await settle();
    readiness.stop();

    assert.equal(readiness.isReady, false);
    assert.deepEqual(problemsOf(readiness), {
      serving: 'stopping',
      caches: 'pods',
      certificate: `expired ${new Date(around.notAfterMs).toISOString()}`,
      'ca-bundle': 'no CA',
      'token-reviews': 'no role',
    });
  });

  it('holds its certificate for good until the millisecond in which it ends', async () => {
    const around = new Surroundings();
    around.notAfterMs = around.clock.wallMs() + 1;
    await using readiness = around.open();
    const before = problemsOf(readiness)['certificate'];

    await around.clock.advance(1);

    assert.equal(before, undefined);
    assert.match(problemsOf(readiness)['certificate'] ?? '', /^expired 2026/);
  });

  it('stays trusted once it was, whoever deletes the configuration', async () => {
    const around = new Surroundings();
    await using readiness = around.open();
    await settle();
    const before = readiness.isReady;

    around.trustProblem = 'there is none';

    assert.deepEqual([before, readiness.isReady], [true, true]);
  });

  it('asks again until it may review tokens, and never after', async () => {
    const around = new Surroundings();
    around.reviews = new Error('no answer');
    await using readiness = around.open();
    await settle();
    const failed = problemsOf(readiness)['token-reviews'];
    around.reviews = 'no role';
    await around.clock.advance(2_000);
    const refused = problemsOf(readiness)['token-reviews'];
    around.reviews = undefined;
    await around.clock.advance(2_000);
    await around.clock.advance(60_000);

    assert.equal(failed, 'not known whether tokens may be reviewed: no answer');
    assert.deepEqual([refused, readiness.isReady, around.asked], ['no role', true, 3]);
  });
});
