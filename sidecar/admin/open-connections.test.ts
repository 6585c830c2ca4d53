import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MOST_CONNECTIONS, OpenConnections } from './open-connections.ts';
import type { OpenConnection } from './open-connections.ts';

class FakeConnection implements OpenConnection {
  readonly remoteAddress: string | undefined;
  destroyed = false;
  #onClose: (() => void) | undefined;

  constructor(remoteAddress: string | undefined) {
    this.remoteAddress = remoteAddress;
  }

  destroy(): void {
    this.destroyed = true;
  }

  once(_event: 'close', listener: () => void): void {
    this.#onClose = listener;
  }

  close(): void {
    this.#onClose?.();
  }
}

function add(
  connections: OpenConnections,
  address: string | undefined,
  count = 1,
): FakeConnection[] {
  return Array.from({ length: count }, () => {
    const connection = new FakeConnection(address);
    connections.add(connection);
    return connection;
  });
}

const dropped = (of: readonly FakeConnection[]): number => of.filter((c) => c.destroyed).length;

describe('the connections of the admin listener', () => {
  it('lose the oldest when one more comes than there is room for', () => {
    const connections = new OpenConnections();
    const first = add(connections, '192.0.2.1', MOST_CONNECTIONS);
    assert.equal(dropped(first), 0);

    const [more] = add(connections, '192.0.2.2');

    assert.deepEqual([first[0]?.destroyed, dropped(first), more?.destroyed], [true, 1, false]);
  });

  it('from elsewhere never take the place of one over loopback', () => {
    const connections = new OpenConnections();
    const local = ['127.0.0.1', '::1', '::ffff:127.0.0.9'].flatMap((a) => add(connections, a));

    const remote = add(connections, '192.0.2.1', 3 * MOST_CONNECTIONS);
    local.push(...add(connections, '127.0.0.1'));

    assert.deepEqual([dropped(local), dropped(remote)], [0, 2 * MOST_CONNECTIONS]);
  });

  it('are not dropped while their answer is being made, and are after it', () => {
    const connections = new OpenConnections();
    const first = add(connections, '192.0.2.1', MOST_CONNECTIONS);
    for (const connection of first) connections.begin(connection);

    const [refused] = add(connections, '192.0.2.2');
    assert.deepEqual([dropped(first), refused?.destroyed], [0, true]);
    for (const connection of first.slice(1)) connections.end(connection);
    const [taken] = add(connections, '192.0.2.2');

    assert.deepEqual(
      [first[0]?.destroyed, first[1]?.destroyed, taken?.destroyed],
      [false, true, false],
    );
  });

  it('give their place back when they close', () => {
    const connections = new OpenConnections();
    const first = add(connections, undefined, MOST_CONNECTIONS);
    first.at(-1)?.close();

    add(connections, undefined);

    assert.equal(dropped(first), 0);
  });
});
