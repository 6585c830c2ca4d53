import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import prometheus from 'prom-client';
import { pause } from '../../operator/clock.ts';
import { silentLog } from '../../operator/log.ts';
import { LeaderElection } from '../../operator/runtime/lease.ts';
import { LeaseApi, type Passage } from '../support/lease-api.ts';
import { SteppedClock } from '../support/stepped-clock.ts';

/** How one call fares: how long it takes to the server and back, and whether request or answer is lost. */
const fare = fc.record({
  toMs: fc.constantFrom(0, 0, 10, 1_000, 4_000, 20_000),
  backMs: fc.constantFrom(0, 0, 10, 1_000, 4_000, 20_000),
  lost: fc.constantFrom('no', 'no', 'no', 'request', 'answer'),
});
type Fare = typeof fare extends fc.Arbitrary<infer One> ? One : never;

/** When the fares are used up, calls are quick and safe. */
function network(clock: SteppedClock, fares: readonly Fare[]): Passage {
  const left = fares.values();
  let current: Fare | undefined;
  return async (where) => {
    if (where === 'before') current = left.next().value;
    const { toMs, backMs, lost } = current ?? { toMs: 0, backMs: 0, lost: 'no' };
    await pause(clock, where === 'before' ? toMs : backMs, new AbortController().signal);
    if (lost === (where === 'before' ? 'request' : 'answer')) throw new Error('lost');
  };
}

describe('two candidates', () => {
  it('never lead at the same time, whatever the network does', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fare, { maxLength: 25 }), { minLength: 2, maxLength: 2 }),
        fc.integer({ min: 0, max: 60_000 }),
        async (networks, stopMs) => {
          const api = new LeaseApi();
          const clock = new SteppedClock();
          const elections = networks.map(
            (fares, index) =>
              new LeaderElection({
                api: api.through(network(clock, fares)),
                lease: { namespace: 'weir', name: 'operator' },
                identity: `candidate-${index}`,
                onLeading: () => undefined,
                onLost: () => undefined,
                clock,
                random: () => 0.5,
                log: silentLog(),
                metrics: new prometheus.Registry(),
              }),
          );
          for (const election of elections) election.start();

          const stopped: Promise<void>[] = [];
          const startMs = clock.nowMs();
          while (clock.nowMs() - startMs < 90_000) {
            await clock.advance(Math.min(clock.nextInMs ?? 500, 500));
            const leaders = elections.filter(({ isLeading }) => isLeading);
            assert.ok(leaders.length <= 1, 'two lead');
            if (stopped.length === 0 && clock.nowMs() - startMs >= stopMs) {
              const [leader] = leaders;
              if (leader !== undefined) stopped.push(leader[Symbol.asyncDispose]());
            }
          }

          const ends = elections.map((election) => election[Symbol.asyncDispose]());
          await clock.advance(60_000);
          await Promise.all([...stopped, ...ends]);
        },
      ),
      { numRuns: 60 },
    );
  });
});
