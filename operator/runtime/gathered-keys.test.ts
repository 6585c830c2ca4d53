import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SteppedClock } from '../../test/support/stepped-clock.ts';
import { GatheredKeys } from './gathered-keys.ts';

function gather(): {
  readonly clock: SteppedClock;
  readonly keys: GatheredKeys;
  readonly told: (readonly string[])[];
} {
  const clock = new SteppedClock();
  const told: (readonly string[])[] = [];
  const onKeys = (keys: readonly string[]): void => {
    told.push(keys);
  };
  return { clock, keys: new GatheredKeys({ forMs: 200, apartMs: 1_000, clock, onKeys }), told };
}

describe('gathered keys', () => {
  it('are told once each, however often they came', async () => {
    const { clock, keys, told } = gather();

    keys.add(['a', 'b']);
    await clock.advance(100);
    keys.add(['b', 'c', 'a']);
    await clock.advance(100);

    assert.deepEqual(told, [['a', 'b', 'c']]);
  });

  it('wait from the first of them on, and no longer when more keep coming', async () => {
    const { clock, keys, told } = gather();

    keys.add(['a']);
    await clock.advance(199);
    keys.add(['b']);
    const before = told.length;
    await clock.advance(1);

    assert.equal(before, 0);
    assert.deepEqual(told, [['a', 'b']]);
  });

  it('that keep coming are told at a distance', async () => {
    const { clock, keys, told } = gather();

    keys.add(['a']);
    await clock.advance(200);
    keys.add(['b']);
    await clock.advance(999);
    const before = told.length;
    await clock.advance(1);

    assert.equal(before, 1);
    assert.deepEqual(told, [['a'], ['b']]);
  });

  it('that come after a rest wait no longer than the first did', async () => {
    const { clock, keys, told } = gather();

    keys.add(['a']);
    await clock.advance(1_200);
    keys.add(['a']);
    await clock.advance(200);

    assert.deepEqual(told, [['a'], ['a']]);
  });

  it('set no timer when there are none, and leave none when disposed', () => {
    const { clock, keys } = gather();

    keys.add([]);
    const idle = clock.timers;
    keys.add(['a']);
    keys[Symbol.dispose]();

    assert.equal(idle, 0);
    assert.equal(clock.timers, 0);
  });
});
