// Keeps a stream to the operator, for as long as the sidecar lives: connects, says hello, hands pushes over and answers
// them, tells its state, and comes back after every end.
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { BUNDLE_FORMAT } from '../../contract/bundle.ts';
import { FEATURES } from '../../contract/features.ts';
import type { Decoded } from '../../contract/frame-codec.ts';
import {
  type AckFrame,
  type ByeFrame,
  type HelloFrame,
  MESSAGE_MAX,
  type NackFrame,
  type OperatorFrame,
  STREAM_PROTOCOL,
} from '../../contract/stream.ts';
import type { Log } from '../log.ts';
import type { ConfigKeeper } from './config-keeper.ts';
import { OperatorConnection } from './operator-connection.ts';
import { PushAssembly } from './push-assembly.ts';
import type { SidecarReport } from './pushed-config.ts';
import { firstFrameWithinMs, reconnectDelayMs, TOLD_LONGEST_MS } from './reconnect-delay.ts';

/** How often its state is told when nothing changes, give or take a tenth. */
const STATE_EVERY_MS = 30_000;
/** How often it is looked at for changes. */
const LOOK_EVERY_MS = 1_000;

export interface StreamSourceOptions {
  readonly url: string;
  /** PEM text or a file of it; undefined = the system's. What the operator pushed later beats it. */
  readonly ca: string | undefined;
  readonly tokenFile: string;
  readonly pod: HelloFrame['pod'];
  readonly version: string;
  readonly keeper: ConfigKeeper;
  readonly report: () => SidecarReport;
  /** A push was put into force, at least in part. */
  readonly onInForce: () => void;
  /** An attempt ended before anything was in force. */
  readonly onFailure: (reason: string) => void;
  readonly log: Log;
  /** In [0, 1). */
  readonly random: () => number;
}

export class StreamSource implements Disposable {
  readonly #options: StreamSourceOptions;
  #connection: OperatorConnection | undefined = undefined;
  /** Hello has gone out on this connection. */
  #isGreeted = false;
  /** A frame has come on this connection. */
  #isHeard = false;
  #assembly = new PushAssembly();
  #failures = 0;
  #lastReason = '';
  #waiting: NodeJS.Timeout | undefined;
  readonly #looking: NodeJS.Timeout;
  #toldState = '';
  #toldAtMs = 0;
  #isDisposed = false;

  constructor(options: StreamSourceOptions) {
    this.#options = options;
    this.#looking = setInterval(() => {
      this.#tellState();
    }, LOOK_EVERY_MS);
    void this.#connect();
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    clearTimeout(this.#waiting);
    clearInterval(this.#looking);
    this.#connection?.[Symbol.dispose]();
  }

  async #connect(): Promise<void> {
    const { keeper } = this.#options;
    try {
      const [ca, token] = await Promise.all([this.#readCa(), this.#readToken()]);
      if (this.#isDisposed) return;
      this.#assembly = new PushAssembly();
      this.#isGreeted = false;
      this.#isHeard = false;
      const connection = new OperatorConnection({
        ...{ url: this.#options.url, ca, token },
        firstFrameWithinMs: firstFrameWithinMs(this.#failures, keeper.inForce !== undefined),
        onOpen: () => {
          connection.send(this.#hello());
          this.#isGreeted = true;
          this.#toldState = '';
          // At once: an operator that has just started would tell of a store and proxies as if all were well.
          this.#tellState();
        },
        onFrame: (decoded, bytes) => {
          this.#onFrame(connection, decoded, bytes);
        },
        onEnd: ({ reason, retryAfterMs }) => {
          this.#onFailure(reason, retryAfterMs);
        },
      });
      this.#connection = connection;
    } catch (error) {
      this.#onFailure(error instanceof Error ? error.message : String(error), undefined);
    }
  }

  /** What was pushed over a verified stream is newer than what the pod was started with. */
  async #readCa(): Promise<string | undefined> {
    const { keeper, ca } = this.#options;
    const pushed = keeper.inForce?.ca;
    if (pushed !== undefined && this.#isUsable(pushed)) return pushed;
    if (ca === undefined || ca.includes('-----BEGIN ')) return ca;
    return readFile(ca, 'utf8');
  }

  #isUsable(pem: string): boolean {
    try {
      createSecureContext({ ca: pem });
      return pem.includes('-----BEGIN CERTIFICATE-----');
    } catch {
      this.#options.log.error(
        { event: 'operator-ca' },
        'the CA that the operator pushed is no PEM',
      );
      return false;
    }
  }

  /** At each connection: the kubelet writes a new one well before the old one ends. */
  async #readToken(): Promise<string> {
    return (await readFile(this.#options.tokenFile, 'utf8')).trim();
  }

  #hello(): HelloFrame {
    const { pod, version, keeper } = this.#options;
    return {
      type: 'hello',
      protocol: STREAM_PROTOCOL,
      pod,
      sidecar: { version, formats: [BUNDLE_FORMAT], features: FEATURES },
      have: keeper.have,
    };
  }

  #onFrame(connection: OperatorConnection, decoded: Decoded<OperatorFrame>, bytes: number): void {
    switch (decoded.kind) {
      case 'frame':
        this.#onKnownFrame(connection, decoded.frame, bytes);
        return;
      case 'unknown-type':
        connection.send(this.#nack(0, 'UnknownFrame'));
        return;
      case 'invalid':
        this.#options.log.error(
          { event: 'frame-invalid', problem: decoded.message },
          'a frame of the operator is not in order',
        );
        connection.send(this.#nack(decoded.nonce ?? 0, 'BadFrame'));
        return;
      case 'too-long':
        this.#drop(connection, 'the operator sent a frame that is too long');
    }
  }

  #onKnownFrame(connection: OperatorConnection, frame: OperatorFrame, bytes: number): void {
    if (frame.type === 'bye') {
      this.#onBye(connection, frame);
      return;
    }
    if (!this.#isHeard) this.#onHeard();
    const assembled = this.#assembly.add(frame, bytes);
    switch (assembled.kind) {
      case 'push':
        void this.#options.keeper.accept(assembled.push).then((answer) => {
          this.#answer(connection, answer);
        });
        return;
      case 'broken':
        this.#options.log.error(
          { event: 'push-broken', problem: assembled.message },
          'a push of the operator is not in order',
        );
        connection.send(this.#nack(assembled.nonce, 'BadFrame'));
        return;
      case 'more':
      case 'stale':
    }
  }

  #answer(connection: OperatorConnection, answer: AckFrame | NackFrame): void {
    if (this.#options.keeper.inForce !== undefined) this.#options.onInForce();
    // On the stream it came on: after a reconnect hello has said what is in force.
    connection.send(answer);
    this.#toldState = '';
    this.#tellState();
  }

  #onHeard(): void {
    this.#isHeard = true;
    this.#failures = 0;
    this.#lastReason = '';
    this.#options.log.info({ event: 'operator-connected' }, 'the operator pushes rules');
  }

  #onBye(connection: OperatorConnection, { reason, retryAfterMs }: ByeFrame): void {
    connection[Symbol.dispose]();
    this.#options.log.info(
      { event: 'operator-bye', reason, retryAfterMs },
      'the operator ends the stream',
    );
    // A bye that follows another one is a failure as good as any.
    if (reason === 'Unauthorized' || reason === 'Protocol') this.#failures += 1;
    this.#options.onFailure(`bye: ${reason}`);
    this.#later(Math.max(retryAfterMs, this.#failures === 0 ? 0 : this.#delayMs()));
  }

  #drop(connection: OperatorConnection, reason: string): void {
    connection[Symbol.dispose]();
    this.#onFailure(reason, undefined);
  }

  #onFailure(reason: string, retryAfterMs: number | undefined): void {
    if (this.#isDisposed) return;
    this.#failures += 1;
    const shown = reason.slice(0, MESSAGE_MAX);
    const fields = { event: 'operator-away', reason: shown, failures: this.#failures };
    const sentence = 'no stream to the operator; what is in force stays in force';
    if (shown === this.#lastReason) this.#options.log.debug(fields, sentence);
    else this.#options.log.warn(fields, sentence);
    this.#lastReason = shown;
    this.#options.onFailure(shown);
    this.#later(Math.max(retryAfterMs ?? 0, this.#delayMs()));
  }

  #delayMs(): number {
    return reconnectDelayMs(Math.max(1, this.#failures), this.#options.random());
  }

  #later(ms: number): void {
    this.#connection = undefined;
    clearTimeout(this.#waiting);
    this.#waiting = setTimeout(
      () => {
        void this.#connect();
      },
      Math.min(ms, TOLD_LONGEST_MS),
    );
  }

  #tellState(): void {
    const connection = this.#connection;
    const { keeper, report, random } = this.#options;
    if (connection === undefined || !this.#isGreeted || keeper.inForce === undefined) return;
    const { version, origin } = keeper.have;
    const state = { type: 'state', version, origin, ...report() } as const;
    const text = JSON.stringify(state);
    const nowMs = performance.now();
    if (text === this.#toldState && nowMs < this.#toldAtMs) return;
    this.#toldState = text;
    this.#toldAtMs = nowMs + STATE_EVERY_MS * (0.9 + 0.2 * random());
    connection.send(state);
  }

  #nack(nonce: number, code: NackFrame['code']): NackFrame {
    const { version } = this.#options.keeper.have;
    return { type: 'nack', nonce, version, code, refusals: [] };
  }
}
