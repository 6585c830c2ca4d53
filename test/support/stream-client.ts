// A client of the stream that does only what a test tells it: for the server's side of what clients may do.
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { checkOperatorFrame, encodeFrame, FrameDecoder } from '../../contract/frame-codec.ts';
import { type OperatorFrame, type SidecarFrame, STREAM_PATH } from '../../contract/stream.ts';
import type { OperatorStream } from './operator-stream.ts';
import { eventually } from './redis.ts';

export interface ClientOptions {
  readonly token?: string;
  readonly path?: string;
  readonly method?: string;
}

/** Where a stream is answered, and whom to trust for it. */
export interface StreamTarget {
  readonly url: string;
  readonly certificates: { readonly ca: string };
}

export class StreamClient implements Disposable {
  readonly frames: OperatorFrame[] = [];
  status = 0;
  retryAfter: string | undefined;
  body = '';
  isClosed = false;
  readonly http: ClientHttp2Stream;
  readonly #session: ClientHttp2Session;

  constructor(operator: StreamTarget, options: ClientOptions = {}) {
    const { token, path = STREAM_PATH, method = 'POST' } = options;
    this.#session = connect(operator.url, { ca: operator.certificates.ca });
    this.#session.on('error', () => undefined);
    this.http = this.#session.request({
      ...{ ':method': method, ':path': path },
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    });
    const decoder = new FrameDecoder<OperatorFrame>(checkOperatorFrame);
    this.http.on('error', () => undefined);
    this.http.on('close', () => {
      this.isClosed = true;
    });
    this.http.on('response', (headers) => {
      this.status = headers[':status'] ?? 0;
      this.retryAfter = headers['retry-after'];
    });
    this.http.on('data', (bytes: Buffer) => {
      if (this.status !== 200) this.body += bytes.toString();
      else
        for (const one of decoder.push(bytes))
          if (one.kind === 'frame') this.frames.push(one.frame);
    });
  }

  /** A pod of the world, let in and greeted. */
  static async greeted(operator: OperatorStream, podUid: string): Promise<StreamClient> {
    operator.world.addPod(podUid);
    const client = new StreamClient(operator, { token: operator.api.issue({ podUid }) });
    client.hello(podUid);
    await eventually(`${podUid} has its rules`, () => client.frames.length > 0);
    return client;
  }

  send(frame: SidecarFrame): void {
    this.http.write(encodeFrame(frame));
  }

  hello(podUid: string): void {
    this.send({
      type: 'hello',
      protocol: 1,
      pod: { namespace: 'shop', name: podUid, uid: podUid },
      sidecar: { version: '1', formats: [1] },
      have: { version: '', sources: [], origin: 'none' },
    });
  }

  async answered(): Promise<number> {
    await eventually('an answer', () => this.status !== 0);
    return this.status;
  }

  /** The reason of the bye that ended it. */
  async bye(): Promise<string> {
    await eventually('a bye', () => this.frames.at(-1)?.type === 'bye');
    const last = this.frames.at(-1);
    return last?.type === 'bye' ? last.reason : '';
  }

  [Symbol.dispose](): void {
    this.#session.destroy();
  }
}
