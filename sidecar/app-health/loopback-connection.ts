// A connection to the app within the pod. It is not the proxy's: a check is neither limited nor counted as a request.
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** An app may listen on either alone. */
const HOSTS = ['127.0.0.1', '::1'] as const;

/** Rejects with the first address' error when none takes the connection, or when `signal` aborts. */
export async function connectLoopback(port: number, signal: AbortSignal): Promise<Socket> {
  const errors: unknown[] = [];
  for (const host of HOSTS) {
    try {
      return await connected(connect({ host, port, signal }), 'connect');
    } catch (error) {
      errors.push(error);
      if (signal.aborted) break;
    }
  }
  throw errors[0];
}

/** Certificates are not looked at: the kubelet does not either, and on loopback there is nobody else. */
export function secured(socket: Socket): Promise<Socket> {
  const options = { socket, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] };
  return connected(connectTls(options), 'secureConnect');
}

function connected(socket: Socket, event: 'connect' | 'secureConnect'): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  socket.once(event, () => {
    resolve(socket);
  });
  // Stays: an error after the check is over is nobody's, and must not end the process.
  socket.on('error', reject);
  socket.once('close', () => {
    reject(new Error('the app closed the connection'));
  });
  return promise;
}
