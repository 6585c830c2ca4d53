import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import prometheus from 'prom-client';
import { LeaseApi, type Passage } from '../../test/support/lease-api.ts';
import { SteppedClock } from '../../test/support/stepped-clock.ts';
import { silentLog } from '../log.ts';
import { LeaderElection } from './lease.ts';
import { planLease, releasedSpec, type Lease, type LeaseSpec } from './lease-plan.ts';

const me = { identity: 'me', durationMs: 15_000, wallTime: 'now' };
const lease = (spec: LeaseSpec): Lease => ({ metadata: { resourceVersion: '1' }, spec });
const other = { holderIdentity: 'other', leaseDurationSeconds: 15, leaseTransitions: 4 };

describe('the plan of a Lease', () => {
  it('takes one that is not there, is free, or has not changed for its duration', () => {
    const taken = {
      holderIdentity: 'me',
      leaseDurationSeconds: 15,
      renewTime: 'now',
      acquireTime: 'now',
    };

    assert.deepEqual(planLease({ changedAtMs: 0 }, 0, me), {
      act: 'create',
      spec: { ...taken, leaseTransitions: 0 },
    });
    assert.deepEqual(planLease({ lease: lease({}), changedAtMs: 0 }, 0, me), {
      act: 'replace',
      spec: { ...taken, leaseTransitions: 1 },
    });
    assert.deepEqual(planLease({ lease: lease(other), changedAtMs: 0 }, 14_999, me), {
      act: 'wait',
    });
    assert.deepEqual(planLease({ lease: lease(other), changedAtMs: 0 }, 15_000, me), {
      act: 'replace',
      spec: { ...taken, leaseTransitions: 5 },
    });
  });

  it('goes by the duration that the holder gave, and never by the times it wrote', () => {
    const longer = { ...other, leaseDurationSeconds: 60, renewTime: '1970-01-01T00:00:00.000000Z' };

    assert.equal(planLease({ lease: lease(longer), changedAtMs: 0 }, 59_999, me).act, 'wait');
    assert.equal(planLease({ lease: lease(longer), changedAtMs: 0 }, 60_000, me).act, 'replace');
  });

  it('renews our own without a transition, and gives it away free', () => {
    const own = { ...other, holderIdentity: 'me', acquireTime: 'then' };

    assert.deepEqual(planLease({ lease: lease(own), changedAtMs: 0 }, 1e9, me), {
      act: 'replace',
      spec: { ...own, renewTime: 'now' },
    });
    const released = lease(releasedSpec(own, me));
    assert.equal(planLease({ lease: released, changedAtMs: 0 }, 0, me).act, 'replace');
  });
});

interface Replica {
  readonly election: LeaderElection;
  readonly registry: prometheus.Registry;
  lost: number;
  led: AbortSignal | undefined;
}

function replica(
  identity: string,
  {
    api,
    clock,
    pass,
  }: { readonly api: LeaseApi; readonly clock: SteppedClock; readonly pass?: Passage },
): Replica {
  const registry = new prometheus.Registry();
  const one: Replica = {
    registry,
    lost: 0,
    led: undefined,
    election: new LeaderElection({
      api: api.through(pass),
      lease: { namespace: 'weir', name: 'operator' },
      identity,
      onLeading: (signal) => {
        one.led = signal;
      },
      onLost: () => {
        one.lost += 1;
      },
      clock,
      random: () => 0,
      log: silentLog(),
      metrics: registry,
    }),
  };
  one.election.start();
  return one;
}

describe('leader election', () => {
  it('lets one lead, who goes on for as long as it renews', async () => {
    const api = new LeaseApi();
    const clock = new SteppedClock();
    const one = replica('one', { api, clock });
    await clock.advance(0);
    const two = replica('two', { api, clock });

    await clock.advance(120_000);

    assert.deepEqual([one.election.isLeading, two.election.isLeading], [true, false]);
    assert.deepEqual([one.lost, one.led?.aborted, two.led], [0, false, undefined]);
    assert.equal(two.election.leader, 'one');
    assert.match(
      await one.registry.metrics(),
      /leader_election_master_status\{name="operator"\} 1/,
    );
    await one.election[Symbol.asyncDispose]();
    await two.election[Symbol.asyncDispose]();
  });

  it('is taken over at the next look after a release, and the one that stopped lost nothing', async () => {
    const api = new LeaseApi();
    const clock = new SteppedClock();
    const one = replica('one', { api, clock });
    await clock.advance(0);
    const two = replica('two', { api, clock });
    await clock.advance(10_000);

    await one.election[Symbol.asyncDispose]();
    await clock.advance(2_000);

    assert.deepEqual([one.election.isLeading, two.election.isLeading], [false, true]);
    assert.deepEqual([one.lost, one.led?.aborted], [0, true]);
    await two.election[Symbol.asyncDispose]();
  });

  it('passes to another 15 s after the holder was last heard, not sooner', async () => {
    const api = new LeaseApi();
    const clock = new SteppedClock();
    let isDead = false;
    const pass = async (): Promise<void> => {
      if (isDead) throw new Error('unplugged');
    };
    const one = replica('one', { api, clock, pass });
    await clock.advance(0);
    const two = replica('two', { api, clock });
    await clock.advance(10_000);
    isDead = true;

    await clock.advance(9_999);
    assert.deepEqual([one.election.isLeading, one.lost], [true, 0]);
    await clock.advance(1);
    assert.deepEqual([one.election.isLeading, one.lost], [false, 1]);
    assert.equal(two.election.isLeading, false);
    await clock.advance(7_000);

    assert.equal(two.election.isLeading, true);
    await one.election[Symbol.asyncDispose]();
    await two.election[Symbol.asyncDispose]();
  });

  it('leads although the answer of the write that took the Lease was lost', async () => {
    const api = new LeaseApi();
    const clock = new SteppedClock();
    let isLossy = true;
    const pass: Passage = async (where) => {
      if (isLossy && where === 'after' && api.writes > 0) throw new Error('lost');
    };
    const one = replica('one', { api, clock, pass });
    await clock.advance(2_000);
    assert.equal(one.election.isLeading, false);
    isLossy = false;

    await clock.advance(2_000);

    assert.equal(one.election.isLeading, true);
    await one.election[Symbol.asyncDispose]();
  });

  it('bounds a call that hangs to half of the renewal deadline', async () => {
    const api = new LeaseApi();
    const clock = new SteppedClock();
    let calls = 0;
    const pass: Passage = (where, signal) => {
      if (where === 'after') return Promise.resolve();
      calls += 1;
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          reject(new Error('aborted'));
        });
      });
    };
    const one = replica('one', { api, clock, pass });

    await clock.advance(5_000 + 2_000);

    assert.equal(calls, 2);
    await one.election[Symbol.asyncDispose]();
  });
});
