// Connections of clients on their way through the handshake of TLS. Served is who has finished it.
import { constants } from 'node:crypto';
import type { Socket } from 'node:net';
import { createServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls';
import type { ProxyCounters } from './proxy-counters.ts';
import type { UpstreamProtocol } from './proxy-options.ts';

export interface TlsAcceptanceOptions {
  readonly context: SecureContextOptions;
  readonly upstreamProtocol: UpstreamProtocol;
  /** For the whole handshake. */
  readonly timeoutMs: number;
  readonly counters: ProxyCounters;
  readonly onSecure: (socket: TLSSocket) => void;
}

export class TlsAcceptance {
  /** Never listens: it is handed what others accepted. */
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #pending = 0;

  constructor(options: TlsAcceptanceOptions) {
    const { context, timeoutMs, counters, onSecure } = options;
    const asksForCertificate = context.ca !== undefined;
    this.#server = createServer({
      ...withoutRenegotiation(context),
      ALPNProtocols: offered(options.upstreamProtocol),
      handshakeTimeout: timeoutMs,
      requestCert: asksForCertificate,
      rejectUnauthorized: asksForCertificate,
    });
    this.#server.on('secureConnection', (socket) => {
      this.#pending -= 1;
      // From here on it may wait for an answer.
      socket.allowHalfOpen = true;
      onSecure(socket);
    });
    // Also of a client that has gone, or took too long.
    this.#server.on('tlsClientError', (_error, socket) => {
      this.#pending -= 1;
      counters.tlsFailures += 1;
      socket.destroy();
    });
  }

  /** Handshakes under way. */
  get pending(): number {
    return this.#pending;
  }

  accept(socket: Socket): void {
    this.#pending += 1;
    // A client that has sent its last byte in the middle of a handshake has gone: its place is somebody else's.
    socket.allowHalfOpen = false;
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    this.#server.emit('connection', socket);
  }

  /** For handshakes from now on. */
  renew(context: SecureContextOptions): void {
    this.#server.setSecureContext(withoutRenegotiation(context));
  }

  /** Cuts every connection, those under handshake included. */
  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

// The application must speak what its client does. Of one that nobody told us about, HTTP/1.1 is the better guess for a
// client of both, as browsers and curl are; a client of gRPC offers HTTP/2 alone and gets it. The first of ours that the
// client has is chosen.
function offered(spoken: UpstreamProtocol): string[] {
  return spoken === 'auto' ? ['http/1.1', 'h2'] : [spoken];
}

// A client of TLS 1.2 could ask for one handshake after another, each of which costs us more than it. Node's own limit is
// an error that leaves the socket open.
function withoutRenegotiation(context: SecureContextOptions): SecureContextOptions {
  return { ...context, secureOptions: constants.SSL_OP_NO_RENEGOTIATION };
}
