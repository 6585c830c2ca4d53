// Hot path. An end of an HTTP/2 connection and its socket: what gathers during a turn of the event loop leaves in one write.
import type { Socket } from 'node:net';
import { INTERNAL_ERROR } from '../../http2/error-code.ts';
import type { Endpoint } from '../../http2/endpoint.ts';

/** Bytes that the kernel has not taken; beyond, data waits in its stream, where it holds up its source. */
const MAX_UNSENT_BYTES = 262_144;
/** A peer that makes us answer and does not read the answers is left. */
const MAX_UNREAD_BYTES = 4_194_304;

export class Http2Socket {
  readonly socket: Socket;
  readonly #endpoint: Endpoint;
  readonly #onWritten: (bytes: number) => void;
  #isScheduled = false;
  #isEnding = false;
  #hasDrained = false;

  constructor(socket: Socket, endpoint: Endpoint, onWritten: (bytes: number) => void) {
    this.socket = socket;
    this.#endpoint = endpoint;
    this.#onWritten = onWritten;
  }

  /** Writes what has gathered once all that came in this turn has been looked at. */
  schedule(): void {
    if (this.#isScheduled || this.#endpoint.sender.output.length === 0) return;
    this.#isScheduled = true;
    setImmediate(this.#flushScheduled);
  }

  readonly #flushScheduled = (): void => {
    this.#isScheduled = false;
    this.flush();
  };

  flush(): void {
    const { socket } = this;
    const { sender } = this.#endpoint;
    const { output } = sender;
    if (output.length === 0) return;
    if (this.#isEnding || socket.destroyed) {
      output.clear(true);
      return;
    }
    this.#onWritten(output.length);
    socket.write(output.written);
    // Taken whole by the kernel: nobody reads the bytes any more.
    output.clear(socket.writableLength === 0);
    if (socket.writableLength > MAX_UNREAD_BYTES) socket.destroy();
    // Only `onDrain` takes it back: whatever waits by then has nobody else who would send it.
    else if (socket.writableLength > MAX_UNSENT_BYTES) sender.isBlocked = true;
  }

  /** Whether the peer has taken what was written, now or at some time since the last call. */
  hasBeenRead(): boolean {
    const hasBeenRead = this.#hasDrained || this.socket.writableLength <= MAX_UNSENT_BYTES;
    this.#hasDrained = false;
    return hasBeenRead;
  }

  /** The socket has taken everything. */
  onDrain(): void {
    const { sender } = this.#endpoint;
    this.#hasDrained = true;
    if (!sender.isBlocked) return;
    sender.isBlocked = false;
    sender.pump();
    this.schedule();
  }

  /** Writes what has gathered, and no more after it. */
  end(): void {
    if (this.#isEnding) return;
    this.flush();
    this.#isEnding = true;
    this.socket.end();
  }

  /** The socket has gone. */
  gone(): void {
    this.#isEnding = true;
    this.#endpoint.abandon(INTERNAL_ERROR);
  }
}
