// Connections that were accepted while no worker was ready. They are paused, so nothing tells when a client has gone:
// each waits for a bounded time.
import type { Socket } from 'node:net';

export class WaitingSockets {
  readonly #most: number;
  readonly #withinMs: number;
  readonly #waiting = new Map<Socket, NodeJS.Timeout>();

  /** Holds at most `most` connections, each for at most `withinMs`; what is beyond is closed. */
  constructor(most: number, withinMs: number) {
    this.#most = most;
    this.#withinMs = withinMs;
  }

  add(socket: Socket): void {
    if (this.#waiting.size >= this.#most) {
      socket.destroy();
      return;
    }
    const giveUp = setTimeout(() => {
      this.#waiting.delete(socket);
      socket.destroy();
    }, this.#withinMs);
    this.#waiting.set(socket, giveUp);
  }

  /** In the order in which they came; they are the caller's from now on. */
  takeAll(): readonly Socket[] {
    const sockets = [...this.#waiting.keys()];
    for (const giveUp of this.#waiting.values()) clearTimeout(giveUp);
    this.#waiting.clear();
    return sockets;
  }
}
