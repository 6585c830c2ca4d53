// `weir wait`: returns when the sidecar's listener is up or the deadline has passed, always with success, because a
// failing postStart hook would kill the container it only wants to order.
import { setTimeout as pause } from 'node:timers/promises';
import { connect } from 'node:net';
import process from 'node:process';
import { parseDuration } from '../contract/setting.ts';
import { WeirError } from '../contract/errors.ts';
import { findAdmin } from './admin-address.ts';

/** A sidecar listens within 250 to 400 ms; asking 40 times a second delays the application by 25 ms at most. */
const ASK_EVERY_MS = 25;

export async function runWait(options: {
  readonly admin?: string;
  readonly deadline: string;
}): Promise<void> {
  const { host, port } = findAdmin(options.admin);
  const deadline = performance.now() + readDeadline(options.deadline);
  while (performance.now() < deadline) {
    if (await isListening(host, port)) return;
    await pause(ASK_EVERY_MS);
  }
  process.stderr.write(`weir: no sidecar listened on ${host}:${port} within ${options.deadline}\n`);
}

function readDeadline(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    if (!(error instanceof WeirError)) throw error;
    throw new WeirError('CONFIG_INVALID', { ...error.details, where: '--deadline' });
  }
}

/** The admin listener opens after the proxy's, so that a connection to it means both are there. */
function isListening(host: string, port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host, port });
  socket.once('connect', () => {
    resolve(true);
    socket.destroy();
  });
  socket.once('error', () => {
    resolve(false);
  });
  return promise;
}
