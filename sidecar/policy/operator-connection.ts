// One connection to the operator, from the TLS handshake to its end: who it trusts, the token it shows, frames in and
// out, and the silence after which it gives up. It tells its end once, with what is known about when to come back.
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import {
  checkOperatorFrame,
  type Decoded,
  encodeFrame,
  FrameDecoder,
} from '../../contract/frame-codec.ts';
import { type OperatorFrame, type SidecarFrame, STREAM_PATH } from '../../contract/stream.ts';

/** A handshake and one answer; the first frame has a bound of its own. */
const PING_EVERY_MS = 20_000;
const MISSES_MAX = 2;
/** A bundle of some MiB comes without waiting for window updates. */
const WINDOW_BYTES = 1_048_576;
const REASON_BYTES_MAX = 512;

export interface ConnectionOptions {
  /** `https://host:port`. */
  readonly url: string;
  /** PEM texts; undefined = the system's. */
  readonly ca: string | undefined;
  readonly token: string;
  readonly firstFrameWithinMs: number;
  /** `bytes`: what came since the frame before, about. */
  readonly onFrame: (decoded: Decoded<OperatorFrame>, bytes: number) => void;
  /** The operator let us in: hello may go. */
  readonly onOpen: () => void;
  /** Once. */
  readonly onEnd: (end: ConnectionEnd) => void;
}

export interface ConnectionEnd {
  /** In words, for the log. */
  readonly reason: string;
  /** From a refusal's `Retry-After`. */
  readonly retryAfterMs: number | undefined;
}

export class OperatorConnection implements Disposable {
  readonly #options: ConnectionOptions;
  readonly #session: ClientHttp2Session;
  readonly #stream: ClientHttp2Stream;
  readonly #decoder = new FrameDecoder<OperatorFrame>(checkOperatorFrame);
  readonly #impatience: NodeJS.Timeout;
  readonly #pinging: NodeJS.Timeout;
  #misses = 0;
  #isOver = false;
  #bytes = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const { url, ca, token, firstFrameWithinMs } = options;
    this.#session = connect(url, {
      ...(ca === undefined ? {} : { ca }),
      minVersion: 'TLSv1.2',
      settings: { enablePush: false, initialWindowSize: WINDOW_BYTES },
    });
    this.#session.on('error', (error) => {
      this.#end(error.message);
    });
    this.#session.on('close', () => {
      this.#end('the connection was closed');
    });
    this.#stream = this.#session.request({
      ':method': 'POST',
      ':path': STREAM_PATH,
      authorization: `Bearer ${token}`,
      'content-type': 'application/x-ndjson',
    });
    this.#listen();
    this.#impatience = setTimeout(() => {
      this.#end(`no frame came within ${firstFrameWithinMs} ms`);
    }, firstFrameWithinMs);
    this.#pinging = setInterval(() => {
      this.#ping();
    }, PING_EVERY_MS);
  }

  send(frame: SidecarFrame): void {
    if (!this.#isOver && this.#stream.writable) this.#stream.write(encodeFrame(frame));
  }

  /** Ends it without another word; `onEnd` is not told. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#release();
  }

  #listen(): void {
    const stream = this.#stream;
    stream.on('error', (error) => {
      this.#end(error.message);
    });
    stream.on('response', ({ ':status': status, 'retry-after': retryAfter }) => {
      if (status === 200) this.#open();
      else this.#onRefused(status ?? 0, retryAfter);
    });
    stream.on('close', () => {
      this.#end('the operator closed the stream');
    });
  }

  #open(): void {
    this.#stream.on('data', (bytes: Buffer) => {
      this.#receive(bytes);
    });
    this.#options.onOpen();
  }

  #receive(bytes: Buffer): void {
    this.#bytes += bytes.length;
    for (const decoded of this.#decoder.push(bytes)) {
      if (this.#isOver) return;
      clearTimeout(this.#impatience);
      const since = this.#bytes;
      this.#bytes = 0;
      this.#options.onFrame(decoded, since);
    }
  }

  /** The body is one sentence of ours, or whatever stands at the address. */
  #onRefused(status: number, retryAfter: string | undefined): void {
    const seconds = Number(retryAfter);
    const retryAfterMs = retryAfter !== undefined && seconds >= 0 ? seconds * 1_000 : undefined;
    let text = '';
    const tell = (): void => {
      this.#end(`the operator answered ${status}: ${text.trim()}`, retryAfterMs);
    };
    this.#stream.on('data', (bytes: Buffer) => {
      text = (text + bytes.toString('utf8')).slice(0, REASON_BYTES_MAX);
    });
    this.#stream.on('end', tell);
  }

  #ping(): void {
    if (this.#misses >= MISSES_MAX) {
      this.#end('the operator does not answer pings');
      return;
    }
    this.#misses += 1;
    this.#session.ping((error) => {
      if (error === null) this.#misses = 0;
    });
  }

  #end(reason: string, retryAfterMs?: number): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#release();
    this.#options.onEnd({ reason, retryAfterMs });
  }

  #release(): void {
    clearTimeout(this.#impatience);
    clearInterval(this.#pinging);
    this.#session.destroy();
  }
}
