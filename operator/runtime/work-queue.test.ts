import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import prometheus from 'prom-client';
import { settle, SteppedClock } from '../../test/support/stepped-clock.ts';
import { silentLog } from '../log.ts';
import { openController } from './controller.ts';
import { openControllerMetrics } from './runtime-metrics.ts';
import { retryAfterMs, TerminalError, WorkQueue, type Again } from './work-queue.ts';

interface Job {
  readonly key: string;
  readonly signal: AbortSignal;
  readonly done: PromiseWithResolvers<Again>;
}

function open(concurrency?: number): {
  readonly queue: WorkQueue;
  readonly jobs: Job[];
  readonly clock: SteppedClock;
} {
  const clock = new SteppedClock();
  const jobs: Job[] = [];
  const queue = new WorkQueue({
    name: 'test',
    clock,
    metrics: openControllerMetrics(new prometheus.Registry()),
    ...(concurrency !== undefined && { concurrency }),
    work: (key, signal) => {
      const done = Promise.withResolvers<Again>();
      jobs.push({ key, signal, done });
      return done.promise;
    },
  });
  return { queue, jobs, clock };
}

const keys = (jobs: readonly Job[]): readonly string[] => jobs.map(({ key }) => key);

describe('a work queue', () => {
  it('works on a key once however often it was added, and on none before the start', () => {
    const { queue, jobs } = open();
    for (const key of ['a', 'b', 'a', 'a']) queue.add(key);
    assert.deepEqual([keys(jobs), queue.depth], [[], 2]);

    queue.start();

    assert.deepEqual(keys(jobs), ['a', 'b']);
  });

  it('never works on one key twice at once, and works on it again when it was added meanwhile', async () => {
    const { queue, jobs } = open();
    queue.start();
    queue.add('a');
    queue.add('a');
    queue.add('a');
    assert.equal(jobs.length, 1);

    jobs[0]?.done.resolve({});
    await settle();
    assert.deepEqual(keys(jobs), ['a', 'a']);
    jobs[1]?.done.resolve({});
    await settle();

    assert.equal(jobs.length, 2);
  });

  it('works on as many keys at once as it may, in the order they came', async () => {
    const { queue, jobs } = open(2);
    queue.start();
    for (const key of ['a', 'b', 'c', 'd']) queue.add(key);
    assert.deepEqual(keys(jobs), ['a', 'b']);

    jobs[1]?.done.resolve({});
    await settle();

    assert.deepEqual(keys(jobs), ['a', 'b', 'c']);
  });

  it('brings a failed key back after 5 ms, doubling, and forgets failures with a success', async () => {
    const { queue, jobs, clock } = open();
    queue.start();
    queue.add('a');

    for (const waitMs of [5, 10, 20]) {
      jobs.at(-1)?.done.reject(new Error('no'));
      await settle();
      assert.equal(clock.nextInMs, waitMs);
      await clock.advance(waitMs);
    }
    jobs.at(-1)?.done.resolve({});
    await settle();
    queue.add('a');
    jobs.at(-1)?.done.reject(new Error('no'));
    await settle();

    assert.equal(clock.nextInMs, 5);
    assert.deepEqual(
      [retryAfterMs(0), retryAfterMs(17), retryAfterMs(18), retryAfterMs(5000)],
      [5, 655_360, 1_000_000, 1_000_000],
    );
  });

  it('takes a key that waits for its retry at once when it is added', async () => {
    const { queue, jobs, clock } = open();
    queue.start();
    queue.add('a');
    jobs[0]?.done.reject(new Error('no'));
    await settle();

    queue.add('a');

    assert.deepEqual([jobs.length, clock.timers], [2, 0]);
  });

  it('does not bring back what failed for good', async () => {
    const { queue, jobs, clock } = open();
    queue.start();
    queue.add('a');

    jobs[0]?.done.reject(new TerminalError('never'));
    await settle();

    assert.equal(clock.timers, 0);
  });

  it('brings a key back when it asked for it, at the sooner of two times', async () => {
    const { queue, jobs, clock } = open();
    queue.start();
    queue.add('a');
    jobs[0]?.done.resolve({ requeueAfterMs: 100 });
    await settle();
    queue.addAfter('a', 200);
    assert.equal(clock.nextInMs, 100);
    queue.addAfter('a', 50);

    await clock.advance(49);
    assert.equal(jobs.length, 1);
    await clock.advance(1);

    assert.deepEqual([jobs.length, clock.timers], [2, 0]);
  });

  it('stops: aborts what is under way, waits for it, takes nothing more', async () => {
    const { queue, jobs, clock } = open(1);
    queue.start();
    queue.add('a');
    queue.add('b');
    queue.addAfter('c', 10);
    let hasStopped = false;

    const stopped = queue[Symbol.asyncDispose]().then(() => {
      hasStopped = true;
    });
    await settle();
    assert.deepEqual([jobs[0]?.signal.aborted, hasStopped], [true, false]);
    jobs[0]?.done.reject(new Error('aborted'));
    await stopped;
    queue.add('d');
    queue.addAfter('d', 1);

    assert.deepEqual([jobs.length, clock.timers, queue.depth], [1, 0, 0]);
  });
});

describe('a controller', () => {
  it("counts under controller-runtime's names", async () => {
    const registry = new prometheus.Registry();
    const clock = new SteppedClock();
    const metrics = openControllerMetrics(registry);
    await using queue = openController(
      { clock, log: silentLog(), metrics },
      {
        name: 'policies',
        reconcile: async (key) => {
          if (key === 'bad') throw new TerminalError('no');
          return key === 'later' ? { requeueAfterMs: 1000 } : undefined;
        },
      },
    );

    for (const key of ['good', 'bad', 'later']) queue.add(key);
    queue.start();
    await settle();

    const text = await registry.metrics();
    for (const line of [
      'controller_runtime_reconcile_total{controller="policies",result="success"} 1',
      'controller_runtime_reconcile_total{controller="policies",result="error"} 1',
      'controller_runtime_reconcile_total{controller="policies",result="requeue_after"} 1',
      'controller_runtime_reconcile_errors_total{controller="policies"} 1',
      'controller_runtime_reconcile_time_seconds_count{controller="policies"} 3',
      'controller_runtime_active_workers{controller="policies"} 0',
      'controller_runtime_max_concurrent_reconciles{controller="policies"} 4',
      'workqueue_adds_total{name="policies"} 3',
      'workqueue_depth{name="policies"} 0',
      'workqueue_queue_duration_seconds_count{name="policies"} 3',
      'workqueue_work_duration_seconds_count{name="policies"} 3',
    ]) {
      assert.ok(text.includes(line), line);
    }
  });
});
