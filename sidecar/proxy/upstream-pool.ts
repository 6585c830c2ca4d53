// Idle connections to the application, last used first: the youngest is the least likely to be stale, and the
// rest can grow old and be closed before the application closes them.
import { BodyRelay } from './body-relay.ts';
import type { ProxyContext } from './proxy-context.ts';
import { UpstreamConnection } from './upstream-connection.ts';

/** What one read brings at most; as much as libuv offers a socket. */
const readBytes = 65_536;

export class UpstreamPool {
  /** What any of the connections has just read; valid until the next read of any. */
  readonly readBuffer: Buffer = Buffer.allocUnsafeSlow(readBytes);
  readonly relay: BodyRelay = new BodyRelay(this.readBuffer);
  readonly #context: ProxyContext;
  readonly #idle: UpstreamConnection[] = [];

  constructor(context: ProxyContext) {
    this.#context = context;
  }

  /** An idle connection, or a new one that is still connecting (writes to it wait). */
  take(): UpstreamConnection {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined) return this.open();
      if (connection.usable) {
        connection.reused = true;
        return connection;
      }
      connection.abandon();
    }
  }

  open(): UpstreamConnection {
    this.#context.counters.upstreamConnectionsTotal += 1;
    return new UpstreamConnection(this.#context, this);
  }

  /** Keeps a connection for reuse until `idleMs` have passed; closes it when there are enough. */
  give(connection: UpstreamConnection, idleMs: number): void {
    if (this.#idle.length >= this.#context.settings.maxIdleUpstream || this.#context.stopping) {
      connection.abandon();
      return;
    }
    connection.idleUntilMs = this.#context.sweptMs + idleMs;
    connection.resume();
    this.#idle.push(connection);
  }

  /** A connection has gone; it must not be handed out. */
  forget(connection: UpstreamConnection): void {
    const at = this.#idle.lastIndexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  /** Closes the connections that have been idle for too long. */
  sweep(): void {
    for (const connection of this.#idle.filter((c) => c.idleUntilMs <= this.#context.sweptMs)) {
      connection.abandon();
    }
  }

  closeIdle(): void {
    for (const connection of this.#idle.slice()) connection.abandon();
  }
}
