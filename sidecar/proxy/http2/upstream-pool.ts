// HTTP/2 connections to the application: as few as its limit of concurrent streams allows.
import type { ProxyContext } from '../proxy-context.ts';
import { Http2UpstreamConnection, type UpstreamOwner } from './upstream-connection.ts';

export class Http2UpstreamPool implements UpstreamOwner {
  readonly readBuffer: Buffer;
  readonly #context: ProxyContext;
  readonly #connections: Http2UpstreamConnection[] = [];

  constructor(context: ProxyContext, readBuffer: Buffer) {
    this.#context = context;
    this.readBuffer = readBuffer;
  }

  /** A connection that takes another stream; new ones are still connecting (what is sent waits). */
  take(): Http2UpstreamConnection {
    for (const connection of this.#connections) if (connection.hasRoom) return connection;
    return this.open();
  }

  open(): Http2UpstreamConnection {
    this.#context.counters.upstreamConnectionsTotal += 1;
    const connection = new Http2UpstreamConnection(this.#context, this);
    this.#connections.push(connection);
    return connection;
  }

  forget(connection: Http2UpstreamConnection): void {
    const at = this.#connections.indexOf(connection);
    if (at >= 0) this.#connections.splice(at, 1);
  }

  sweep(): void {
    for (const connection of [...this.#connections]) connection.onSweep();
  }

  closeIdle(): void {
    for (const connection of [...this.#connections]) connection.closeIfIdle();
  }
}
