// Lets an accepted connection read into a buffer that all connections share. node:net offers that (`onread`) only to
// connections it opens; for each read of an accepted one it makes a buffer of 64 KiB and cuts it: a twentieth of what a
// request costs, and garbage that shows in memory and in the tail.
import { Socket } from 'node:net';

/** What a connection does with a read: `length` bytes stand in the shared buffer until the next read of anybody. */
export type OnRead = (length: number) => void;

/**
 * A socket over the connection of `accepted`, which must not be used any more. Where Node keeps the connection
 * somewhere else than today, or it has gone already, `accepted` itself, which goes on emitting `data`.
 */
export function readingInto(buffer: Buffer, accepted: Socket, onRead: OnRead): Socket {
  // Of a TLS socket the connection is only half: what it reads has to be deciphered.
  if ('encrypted' in accepted) return accepted;
  const handle = takeHandle(accepted);
  if (handle === undefined) return accepted;
  const onread = {
    buffer,
    callback: (length: number): boolean => {
      onRead(length);
      return true;
    },
  };
  const options: object = { handle, allowHalfOpen: accepted.allowHalfOpen, onread };
  // The handle of a connection is an option of Node's own callers, unknown to its types.
  const socket = new Socket(options);
  // Whoever handed the connection over (a process of several workers) may count it by this event. Where nobody does,
  // `accepted` is not kept: it would be a third of what an idle connection takes.
  if (accepted.listenerCount('close') > 0) {
    socket.once('close', (failed: boolean) => accepted.emit('close', failed));
  }
  return socket;
}

function takeHandle(accepted: Socket): object | undefined {
  if (!('_handle' in accepted)) return undefined;
  const handle = accepted._handle;
  if (typeof handle !== 'object' || handle === null || !('useUserBuffer' in handle))
    return undefined;
  accepted._handle = null;
  return handle;
}
