// Servers of tests: on loopback, on a port that is free.
import { once } from 'node:events';
import type { Server } from 'node:net';

/** Listens; gives the port. Rejects when that fails. */
export async function listenOnLoopback(server: Server): Promise<number> {
  server.listen({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  return portOf(server);
}

/** Of a server that listens. */
export function portOf(server: Server): number {
  const address = server.address();
  if (typeof address === 'object' && address !== null) return address.port;
  throw new Error('this server listens on no port');
}

/** Resolves when the last connection is gone as well, which is its owner's to end. */
export async function closed(server: Server): Promise<void> {
  const gone = once(server, 'close');
  server.close();
  await gone;
}
