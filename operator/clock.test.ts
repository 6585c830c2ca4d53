import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SteppedClock } from '../test/support/stepped-clock.ts';
import { afterReading } from './clock.ts';

describe('a time after which an answer counts no more', () => {
  it('lets what is due at the same moment go first', async () => {
    const clock = new SteppedClock();
    const order: string[] = [];
    using timer = afterReading(clock, 10, () => order.push('time is up'));
    assert.ok(timer);
    clock.after(10, () => order.push('answer'));

    await clock.advance(10);

    assert.deepEqual(order, ['answer', 'time is up']);
  });

  it('is called off before and within that turn', async () => {
    const clock = new SteppedClock();
    const order: string[] = [];
    const before = afterReading(clock, 10, () => order.push('before'));
    const within = afterReading(clock, 10, () => order.push('within'));
    clock.after(10, () => {
      within[Symbol.dispose]();
    });

    before[Symbol.dispose]();
    await clock.advance(10);

    assert.deepEqual(order, []);
    assert.equal(clock.timers, 0);
  });
});
