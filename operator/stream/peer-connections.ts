// The HTTP/2 connections of a server: pinged so that a peer that vanished is noticed, and closed when nobody was let in
// over them in time.
import type { Http2Session } from 'node:http2';

const PING_EVERY_MS = 20_000;
/** Pings in a row without an answer after which a peer is gone. */
const MISSES_MAX = 2;
/** From a connection to a stream that was let in; in a storm reviews wait in line. */
const ADMISSION_WITHIN_MS = 30_000;
/** What was written last leaves within this; a peer that does not close is cut off. */
const CLOSING_MS = 1_000;

export class PeerConnections {
  readonly #open = new Map<Http2Session, NodeJS.Timeout>();

  add(session: Http2Session): void {
    const admission = setTimeout(() => {
      session.destroy();
    }, ADMISSION_WITHIN_MS).unref();
    this.#open.set(session, admission);
    const pinging = startPinging(session);
    session.once('close', () => {
      clearTimeout(this.#open.get(session));
      clearInterval(pinging);
      this.#open.delete(session);
    });
    // A connection that broke says so by its end.
    session.on('error', () => undefined);
  }

  /** Somebody was let in over it: it may stay. */
  admit(session: Http2Session | undefined): void {
    if (session !== undefined) clearTimeout(this.#open.get(session));
  }

  /** Resolves when `closed` does; cuts off who has not closed by then. */
  async closeAll(closed: Promise<unknown>): Promise<void> {
    const cut = setTimeout(() => {
      for (const session of this.#open.keys()) session.destroy();
    }, CLOSING_MS);
    for (const session of this.#open.keys()) session.close();
    await closed;
    clearTimeout(cut);
  }
}

function startPinging(session: Http2Session): NodeJS.Timeout {
  let misses = 0;
  return setInterval(() => {
    if (misses >= MISSES_MAX || session.destroyed) {
      session.destroy();
      return;
    }
    misses += 1;
    session.ping((error) => {
      if (error === null) misses = 0;
    });
  }, PING_EVERY_MS).unref();
}
