import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SteppedClock } from '../../test/support/stepped-clock.ts';
import { HANDSHAKES_AT_ONCE, HandshakeLine, PLACE_FOR_MS } from './handshake-line.ts';

function openLine(connections: number): {
  readonly clock: SteppedClock;
  readonly line: HandshakeLine;
  readonly all: readonly string[];
  readonly begun: string[];
} {
  const clock = new SteppedClock();
  const line = new HandshakeLine(clock);
  const all = Array.from({ length: connections }, (_, i) => String(i));
  const begun: string[] = [];
  for (const one of all) line.add(one, () => begun.push(one));
  return { clock, line, all, begun };
}

describe('a line of handshakes', () => {
  it('begins as many at once as there are places, and no more', () => {
    const { line, all, begun } = openLine(HANDSHAKES_AT_ONCE + 1);

    assert.deepEqual(begun, all.slice(0, HANDSHAKES_AT_ONCE));
    assert.equal(line.waiting, 1);
  });

  it('begins the next one when one is done, in the order of their coming', () => {
    const { line, all, begun } = openLine(HANDSHAKES_AT_ONCE + 2);

    line.leave(all[3] ?? '');

    assert.equal(begun.at(-1), all[HANDSHAKES_AT_ONCE]);
    assert.equal(line.waiting, 1);
  });

  it('never begins one that has gone while it waited', () => {
    const { line, all, begun } = openLine(HANDSHAKES_AT_ONCE + 2);

    line.leave(all[HANDSHAKES_AT_ONCE] ?? '');
    line.leave(all[0] ?? '');

    assert.equal(begun.at(-1), all[HANDSHAKES_AT_ONCE + 1]);
    assert.equal(begun.length, HANDSHAKES_AT_ONCE + 1);
  });

  it('gives the place of one that does not answer to the next one', async () => {
    const { clock, line, begun } = openLine(HANDSHAKES_AT_ONCE + 1);

    await clock.advance(PLACE_FOR_MS - 1);
    const before = begun.length;
    await clock.advance(1);

    assert.equal(before, HANDSHAKES_AT_ONCE);
    assert.equal(begun.length, HANDSHAKES_AT_ONCE + 1);
    assert.equal(line.waiting, 0);
  });

  it('leaves no timer when all are done', () => {
    const { clock, line, all } = openLine(3);

    for (const one of all) line.leave(one);

    assert.equal(clock.timers, 0);
  });
});
