// The admin listener's connections, bounded. A new one is worth more than an old one that says nothing: whoever opens
// connections and keeps silent must not keep out a probe, nor the drain of the pod's own preStop hook.
import { isLoopbackAddress } from './loopback.ts';

/** Connections from elsewhere, and as many again over loopback: a probe, a scraper and a person need three. */
export const MOST_CONNECTIONS = 64;

/** What is needed of a socket. */
export interface OpenConnection {
  readonly remoteAddress?: string | undefined;
  destroy(): unknown;
  once(event: 'close', listener: () => void): unknown;
}

export class OpenConnections {
  readonly #local = new Set<OpenConnection>();
  readonly #remote = new Set<OpenConnection>();
  /** Those whose answer is being made. */
  readonly #busy = new Set<OpenConnection>();

  /** Takes on a connection; at the bound the oldest that waits for nothing of ours makes room. */
  add(connection: OpenConnection): void {
    const own = isLoopbackAddress(connection.remoteAddress ?? '') ? this.#local : this.#remote;
    if (own.size >= MOST_CONNECTIONS) {
      const oldest = this.#oldestIdle(own) ?? connection;
      own.delete(oldest);
      oldest.destroy();
      if (oldest === connection) return;
    }
    own.add(connection);
    connection.once('close', () => {
      own.delete(connection);
      this.#busy.delete(connection);
    });
  }

  #oldestIdle(among: ReadonlySet<OpenConnection>): OpenConnection | undefined {
    for (const connection of among) if (!this.#busy.has(connection)) return connection;
    return undefined;
  }

  /** An answer is being made for the connection: it is not dropped meanwhile. */
  begin(connection: OpenConnection): void {
    this.#busy.add(connection);
  }

  /** The answer has been handed over; one who does not take it holds no place. */
  end(connection: OpenConnection): void {
    this.#busy.delete(connection);
  }
}
