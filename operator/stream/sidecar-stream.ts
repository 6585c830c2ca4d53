// One HTTP/2 stream of a sidecar that was let in: bytes to frames, lines to bytes, and the timer of its session. A
// reader that leaves more than a bound unread for too long is cut off, so that no sidecar holds the operator's memory.
import type { ServerHttp2Stream } from 'node:http2';
import { checkSidecarFrame, encodeFrame, FrameDecoder } from '../../contract/frame-codec.ts';
import type { ByeFrame, SidecarFrame } from '../../contract/stream.ts';
import { type SessionOptions, type SessionReport, StreamSession } from './session.ts';

/** Bytes that may wait to be sent; a push of the largest size passes through in bursts. */
const UNSENT_MAX = 1_048_576;
export const UNSENT_WITHIN_MS = 10_000;
/** After a bye the client closes; one that does not is cut off. */
const FAREWELL_MS = 5_000;

export interface SidecarStreamOptions {
  readonly session: Omit<SessionOptions, 'sink' | 'nowMs'>;
  /** Monotonic. */
  readonly nowMs: () => number;
  readonly onReport: (report: SessionReport) => void;
  /** Once, with the reason that this side gave, if it did. */
  readonly onEnd: (reason: ByeFrame['reason'] | undefined) => void;
}

export class SidecarStream {
  readonly #http: ServerHttp2Stream;
  readonly #options: SidecarStreamOptions;
  readonly #session: StreamSession;
  readonly #decoder = new FrameDecoder<SidecarFrame>(checkSidecarFrame);
  #timer: NodeJS.Timeout | undefined;
  #timerMs = Infinity;
  #farewell: NodeJS.Timeout | undefined;
  #bye: ByeFrame['reason'] | undefined;
  #isClosed = false;
  #unsentSinceMs: number | undefined;

  constructor(http: ServerHttp2Stream, options: SidecarStreamOptions) {
    this.#http = http;
    this.#options = options;
    this.#session = new StreamSession({
      ...options.session,
      nowMs: options.nowMs(),
      sink: {
        send: (lines) => {
          for (const line of lines) http.write(line);
        },
        close: (bye) => {
          this.#part(bye);
        },
        report: options.onReport,
      },
    });
    http.on('data', (bytes: Buffer) => {
      this.#receive(bytes);
    });
    http.once('close', () => {
      this.#onClose();
    });
    // The client has sent its last word: so have we.
    http.once('end', () => http.end());
    this.#arm();
  }

  onChange(): void {
    this.#session.onChange(this.#options.nowMs());
    this.#arm();
  }

  /** Says bye and closes. */
  end(reason: ByeFrame['reason'], retryAfterMs?: number): void {
    this.#session.end(reason, retryAfterMs);
    this.#arm();
  }

  /** Looks whether the client reads. */
  checkProgress(): void {
    const nowMs = this.#options.nowMs();
    if (this.#http.writableLength <= UNSENT_MAX) {
      this.#unsentSinceMs = undefined;
      return;
    }
    this.#unsentSinceMs ??= nowMs;
    if (nowMs < this.#unsentSinceMs + UNSENT_WITHIN_MS) return;
    // What it does not read it cannot be told.
    this.#bye = 'TooSlow';
    this.destroy();
  }

  destroy(): void {
    const { session } = this.#http;
    this.#http.destroy();
    session?.destroy();
  }

  #receive(bytes: Buffer): void {
    for (const decoded of this.#decoder.push(bytes)) {
      this.#session.receive(decoded, this.#options.nowMs());
    }
    this.#arm();
  }

  #part(bye: ByeFrame): void {
    if (this.#isClosed) return;
    this.#bye = bye.reason;
    this.#http.end(encodeFrame(bye));
    this.#farewell = setTimeout(() => {
      this.destroy();
    }, FAREWELL_MS).unref();
  }

  #onClose(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#farewell);
    this.#session.end('Shutdown');
    this.#options.onEnd(this.#bye);
  }

  /** Keeps one timer at the session's next date; most calls find it as it should be. */
  #arm(): void {
    const { dueMs } = this.#session;
    if (dueMs === this.#timerMs) return;
    clearTimeout(this.#timer);
    this.#timerMs = dueMs;
    if (dueMs === Infinity) return;
    const wait = Math.max(0, Math.ceil(dueMs - this.#options.nowMs()));
    this.#timer = setTimeout(() => {
      this.#timerMs = Infinity;
      this.#session.onTime(this.#options.nowMs());
      this.#arm();
    }, wait).unref();
  }
}
