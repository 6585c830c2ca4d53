import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LATEST_MS, QUIET_MS, ReplicaCounts } from './replica-counts.ts';
import { paceOf, WRITE_INTERVAL_MS } from './status-pace.ts';

describe('the number of pods that share a bucket', () => {
  function told(): ReplicaCounts {
    const counts = new ReplicaCounts();
    counts.told('g', 3);
    return counts;
  }

  it('is told when it has been quiet, and not a moment earlier', () => {
    const counts = told();
    counts.observe('g', 4, 1_000);

    const early = counts.settle(1_000 + QUIET_MS - 1);
    const due = counts.nextDueAt();
    const late = counts.settle(1_000 + QUIET_MS);

    assert.deepEqual([early, due, late], [[], 1_000 + QUIET_MS, ['g']]);
    assert.deepEqual([counts.told('g', 4), counts.nextDueAt()], [4, undefined]);
  });

  it('stays what it was until then, whatever the world says', () => {
    const counts = told();

    counts.observe('g', 4, 0);

    assert.equal(counts.told('g', 4), 3);
  });

  it('is told at the latest when a change is old, in a rollout that never rests', () => {
    const counts = told();
    for (let ms = 0; ms < LATEST_MS; ms += QUIET_MS - 1) counts.observe('g', 4 + ms, ms);

    assert.deepEqual([counts.settle(LATEST_MS - 1), counts.settle(LATEST_MS)], [[], ['g']]);
  });

  it('has another revision whenever an answer may be another one, and only then', () => {
    const counts = told();
    const revisions = [counts.revision];

    counts.observe('g', 4, 0);
    revisions.push(counts.revision);
    counts.settle(QUIET_MS);
    revisions.push(counts.revision);
    counts.observe('g', 0, QUIET_MS);
    revisions.push(counts.revision);

    assert.deepEqual(revisions, [0, 0, 1, 2]);
  });

  it('is not told when it went back', () => {
    const counts = told();
    counts.observe('g', 4, 0);
    counts.observe('g', 3, 1);

    assert.deepEqual([counts.nextDueAt(), counts.settle(LATEST_MS)], [undefined, []]);
  });

  it('of a group nobody was told of, or that is empty, is forgotten', () => {
    const counts = told();
    counts.observe('new', 9, 0);
    counts.observe('g', 0, 0);

    assert.deepEqual([counts.nextDueAt(), counts.told('g', 7)], [undefined, 7]);
  });
});

describe('the pace of a status', () => {
  it('is at once for the first word about a generation, and for a process that has not written', () => {
    assert.deepEqual(paceOf('first', 999, 1_000), { kind: 'write' });
    assert.deepEqual(paceOf('update', undefined, 1_000), { kind: 'write' });
  });

  it('waits after a write, to the millisecond', () => {
    assert.deepEqual(paceOf('update', 0, WRITE_INTERVAL_MS - 1), { kind: 'wait', forMs: 1 });
    assert.deepEqual(paceOf('update', 0, WRITE_INTERVAL_MS), { kind: 'write' });
  });

  it('writes nothing when nothing changed', () => {
    assert.deepEqual(paceOf('none', undefined, 0), { kind: 'skip' });
  });
});
