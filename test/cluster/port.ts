import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the ports that outgoing connections get. A server that stops and starts again on its port would otherwise
 * find it taken by a client that tries to reach it: on loopback such a client may even connect to itself.
 */
const FIRST = 20_000;
const END = 30_000;
/** Ten thousand ports, some dozen in use: this many refusals in a row mean that something else is wrong. */
const ATTEMPTS = 50;

/** A loopback port nobody listens on, that no outgoing connection takes. */
export async function freeServerPort(): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const port = randomInt(FIRST, END);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port in ${FIRST}..${END - 1}`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
