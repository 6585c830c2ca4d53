import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { AbsentStore } from '../store/absent-store.ts';
import { LimiterCounters } from '../store/limiter-counters.ts';
import type { Store } from '../store/store.ts';
import { StoreKeeper, type StoreKeeperOptions } from './store-keeper.ts';

/** A limiter that only remembers what it is told. */
class Told {
  readonly stores: Store[] = [];
  readonly deadlines: number[] = [];
  rearmed = 0;
  readonly counters = new LimiterCounters();
  readonly absent = new AbsentStore();
  readonly keeper: StoreKeeper;

  constructor() {
    const limiter: StoreKeeperOptions['limiter'] = {
      counters: this.counters,
      replaceStore: (store) => this.stores.push(store),
      setDeadline: (ms) => this.deadlines.push(ms),
      breakerStates: () => [],
    };
    this.keeper = new StoreKeeper({
      ...{ limiter, deadlineMs: 50, absent: this.absent, log: pino({ enabled: false }) },
      onReplaced: () => {
        this.rearmed += 1;
      },
    });
  }
}

/** Port 1: refused at once. */
const nowhere = { store: { url: 'redis://127.0.0.1:1' } };

describe('the store of the settings', () => {
  it('is reported as none until there is one', async () => {
    const told = new Told();
    await using keeper = told.keeper;

    await keeper.use({});

    assert.deepEqual(keeper.report(), { store: 'none' });
    assert.deepEqual([told.stores.length, told.rearmed], [0, 0]);
  });

  it('is used at first even if it does not answer yet, and not opened again for the same settings', async () => {
    const told = new Told();
    await using keeper = told.keeper;

    await keeper.use(nowhere);
    await keeper.use({ store: { ...nowhere.store } });

    assert.deepEqual([told.stores.length, told.rearmed], [1, 1]);
    assert.deepEqual(keeper.report(), {}, 'nothing was asked of it yet');
  });

  it('stays when the next one does not answer, and that is said', async () => {
    const told = new Told();
    await using keeper = told.keeper;
    await keeper.use(nowhere);

    await keeper.use({ store: { url: 'redis://127.0.0.1:2' } });
    const problem = keeper.report().storeProblem;
    await keeper.use(nowhere);

    assert.match(problem ?? '', /has not answered/);
    assert.equal(told.stores.length, 1);
    assert.equal(keeper.report().storeProblem, undefined, 'the settings are the old ones again');
  });

  it('stays when the next settings cannot be read, and no password is repeated', async () => {
    const told = new Told();
    await using keeper = told.keeper;
    await keeper.use(nowhere);

    await keeper.use({ store: { url: 'http://:secret@host' } });

    const { storeProblem = '' } = keeper.report();
    assert.match(storeProblem, /scheme/);
    assert.equal(storeProblem.includes('secret'), false);
    assert.equal(told.stores.length, 1);
  });

  it('is given up when the settings name none any more', async () => {
    const told = new Told();
    await using keeper = told.keeper;
    await keeper.use(nowhere);

    await keeper.use({});

    assert.equal(told.stores.at(-1), told.absent);
    assert.deepEqual(keeper.report(), { store: 'none' });
  });

  it('has the deadline of the settings, or else the one of the sidecar', async () => {
    const told = new Told();
    await using keeper = told.keeper;

    await keeper.use({ deadlineMs: 20 });
    await keeper.use({});

    assert.deepEqual(told.deadlines, [20, 50]);
  });
});
