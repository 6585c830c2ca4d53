// Ties a socket to the object that owns it. An exception in a handler strikes that owner and nobody else: this is
// where a fault of one connection is contained.
import type { Socket } from 'node:net';

export interface SocketEvents {
  onData(bytes: Buffer): void;
  onDrain(): void;
  /** The other side has sent its last byte. */
  onEnd(): void;
  /** The socket has gone, with or without an error. May come twice. */
  onGone(reason: 'reset' | 'closed'): void;
  onFault(error: unknown): void;
}

export function listenTo(socket: Socket, owner: SocketEvents): void {
  socket.on('data', (bytes: Buffer) => {
    try {
      owner.onData(bytes);
    } catch (error) {
      owner.onFault(error);
    }
  });
  contain(socket, owner, 'drain', () => {
    owner.onDrain();
  });
  contain(socket, owner, 'end', () => {
    owner.onEnd();
  });
  contain(socket, owner, 'error', () => {
    owner.onGone('reset');
    // Of TLS, a record that cannot be read is an error that leaves the socket open.
    socket.destroy();
  });
  contain(socket, owner, 'close', () => {
    owner.onGone('closed');
  });
}

/** Runs `handle` on an event; an exception goes to the owner's `onFault`. */
export function contain(
  socket: Socket,
  owner: SocketEvents,
  event: string,
  handle: () => void,
): void {
  socket.on(event, () => {
    try {
      handle();
    } catch (error) {
      owner.onFault(error);
    }
  });
}
