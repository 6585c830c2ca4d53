import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { listenTo } from './socket-events.ts';
import type { SocketEvents } from './socket-events.ts';

function broken(): SocketEvents & { readonly faults: string[] } {
  const fail = (event: string) => (): never => {
    throw new Error(event);
  };
  const faults: string[] = [];
  return {
    faults,
    onData: fail('data'),
    onDrain: fail('drain'),
    onEnd: fail('end'),
    onGone: fail('gone'),
    onFault: (error) => faults.push(error instanceof Error ? error.message : ''),
  };
}

describe('the events of a socket', () => {
  it('bring their exceptions to the owner and nowhere else', () => {
    const socket = new Socket();
    const owner = broken();
    listenTo(socket, owner);

    for (const event of ['data', 'drain', 'end', 'error', 'close'])
      socket.emit(event, Buffer.from('x'));

    assert.deepEqual(owner.faults, ['data', 'drain', 'end', 'gone', 'gone']);
  });
});
