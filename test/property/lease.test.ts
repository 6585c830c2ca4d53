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
/** A time in which nothing gets through: as long as it takes another to come to power, or longer. */
const outage = fc.record({
  fromMs: fc.integer({ min: 0, max: 60_000 }),
  forMs: fc.integer({ min: 5_000, max: 40_000 }),
});
const link = fc.record({
  fares: fc.array(fare, { maxLength: 12 }),
  outages: fc.array(outage, { maxLength: 2 }),
});
type Link = typeof link extends fc.Arbitrary<infer One> ? One : never;

/** When the fares are used up, calls outside of outages are quick and safe. */
function network(clock: SteppedClock, { fares, outages }: Link): Passage {
  const startMs = clock.nowMs();
  const left = fares.values();
  let current: Link['fares'][number] | undefined;
  return async (where) => {
    if (where === 'before') current = left.next().value;
    const { toMs, backMs, lost } = current ?? { toMs: 0, backMs: 0, lost: 'no' };
    await pause(clock, where === 'before' ? toMs : backMs, new AbortController().signal);
    const atMs = clock.nowMs() - startMs;
    const isOut = outages.some(({ fromMs, forMs }) => atMs >= fromMs && atMs < fromMs + forMs);
    if (isOut || lost === (where === 'before' ? 'request' : 'answer')) throw new Error('lost');
  };
}

describe('two candidates', () => {
  it('never lead at the same time, whatever the network does', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(link, { minLength: 2, maxLength: 2 }),
        fc.integer({ min: 0, max: 60_000 }),
        async (networks, stopMs) => {
          const api = new LeaseApi();
          const clock = new SteppedClock();
          const elections = networks.map(
            (its, index) =>
              new LeaderElection({
                api: api.through(network(clock, its)),
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
      { numRuns: 100 },
    );
  });
});
