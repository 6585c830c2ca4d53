import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { WaitingSockets } from './waiting-sockets.ts';

describe('connections that wait for a worker', () => {
  it('are as many as the bound, and the next is closed', () => {
    const waiting = new WaitingSockets(2, 1_000);
    const sockets = [new Socket(), new Socket(), new Socket()];

    for (const socket of sockets) waiting.add(socket);

    assert.deepEqual(
      sockets.map((socket) => socket.destroyed),
      [false, false, true],
    );
    assert.deepEqual(waiting.takeAll(), sockets.slice(0, 2));
  });

  it('are closed when they have waited for the bound, unless they were taken before', (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    const waiting = new WaitingSockets(2, 1_000);
    const [taken, left] = [new Socket(), new Socket()];
    waiting.add(taken);
    waiting.takeAll();
    waiting.add(left);

    context.mock.timers.tick(999);
    const before = left.destroyed;
    context.mock.timers.tick(1);

    assert.deepEqual([before, left.destroyed, taken.destroyed], [false, true, false]);
    assert.deepEqual(waiting.takeAll(), []);
  });
});
