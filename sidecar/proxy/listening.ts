// Binding the data path's address.
import type { Server } from 'node:net';
import { WeirError } from '../../contract/errors.ts';
import type { ListenOptions } from './proxy-options.ts';

/**
 * Listens, or throws `WeirError` LISTEN_FAILED with host and port. Only `::` may fall back to `0.0.0.0`: whoever names one
 * IPv6 address does not mean all of IPv4.
 */
export async function listenAt(server: Server, at: ListenOptions): Promise<void> {
  try {
    await listenOn(server, at.host, at.port);
  } catch (error) {
    const mayFallBack = at.ipv4Fallback === true && at.host === '::';
    if (!mayFallBack || !isMissingIpv6(error)) throw listenFailed(at, error);
    await listenOn(server, '0.0.0.0', at.port).catch((cause: unknown) => {
      throw listenFailed(at, cause);
    });
  }
}

function listenOn(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
}

function isMissingIpv6(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'EAFNOSUPPORT' || code === 'EADDRNOTAVAIL';
}

function adviceOn(cause: unknown): { readonly advice?: string } {
  return codeOf(cause) === 'EADDRINUSE' ? { advice: 'choose a free port, or 0' } : {};
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function listenFailed(at: ListenOptions, cause: unknown): WeirError {
  return new WeirError(
    'LISTEN_FAILED',
    { host: at.host, port: at.port, setting: '--listen', ...adviceOn(cause) },
    { cause },
  );
}
