// Where the application listens, as a socket is told.
import type { NetConnectOpts } from 'node:net';

/** Options of `connect` for host and port. */
export function upstreamAddress({
  host,
  port,
}: {
  readonly host: string;
  readonly port: number;
}): NetConnectOpts & { port: number } {
  return { ...(host === 'localhost' ? LOCALHOST : { host }), port };
}

/**
 * `localhost` is this machine and no question for a resolver, which may be slow or wrong: IPv4 first, then IPv6, for an
 * application that listens on one of them only.
 */
const LOCALHOST = {
  host: 'localhost',
  autoSelectFamily: true,
  lookup: (
    _host: string,
    _options: unknown,
    found: (error: null, addresses: { address: string; family: number }[]) => void,
  ): void => {
    found(null, [
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ]);
  },
};
