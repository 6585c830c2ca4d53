// Hot path. One HTTP/2 connection to the application, by prior knowledge (RFC 9113 §3.3). Streams of many clients share it.
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { Endpoint, type EndpointOwner } from '../../http2/endpoint.ts';
import type { Field } from '../../http2/field.ts';
import { DEFAULT_WINDOW } from '../../http2/settings.ts';
import type { Stream, StreamOwner } from '../../http2/stream.ts';
import type { ProxyContext } from '../proxy-context.ts';
import type { UpstreamErrorKind } from '../proxy-counters.ts';
import { sweepIntervalMs } from '../proxy-options.ts';
import { contain, listenTo } from '../socket-events.ts';
import type { SocketEvents } from '../socket-events.ts';
import { upstreamAddress } from '../upstream-address.ts';
import { Http2Socket } from './http2-socket.ts';

/** Data of all streams that may come before the connection is credited, which is at once. */
const CONNECTION_WINDOW = 1_048_576;
/** A connection that nobody uses for this long is closed. Losing a race with a close costs a retry, no answer. */
const IDLE_MS = 30_000;

export interface UpstreamOwner {
  /** What is read stands here until the next read of anybody. */
  readonly readBuffer: Buffer;
  forget(connection: Http2UpstreamConnection): void;
}

export class Http2UpstreamConnection implements SocketEvents, EndpointOwner {
  readonly endpoint: Endpoint;
  /** True until the TCP connection stands. */
  #connecting = true;
  /** Whether an exchange has ended on it: then its death may be old news. */
  reused = false;
  /** Its first SETTINGS said that it takes no streams at all. */
  takesNothing = false;
  /** How often bytes have come. */
  reads = 0;
  /** A stream has waited in vain and no byte came meanwhile: it takes no more of them. */
  #isSilent = false;
  readonly #context: ProxyContext;
  readonly #owner: UpstreamOwner;
  readonly #wire: Http2Socket;
  /** Sweep time at which it was opened, or had its last stream. */
  #sinceMs: number;
  #failure: UpstreamErrorKind | undefined;
  readonly #onTold: (() => void)[] = [];

  constructor(context: ProxyContext, owner: UpstreamOwner) {
    this.#context = context;
    this.#owner = owner;
    this.#sinceMs = context.sweptMs;
    const { limits, upstream } = context.settings;
    this.endpoint = new Endpoint(
      {
        role: 'client',
        maxConcurrentStreams: 0,
        maxHeaderListBytes: limits.maxHeadBytes,
        maxHeaderLines: limits.maxFieldLines,
        initialWindow: DEFAULT_WINDOW,
        connectionWindow: CONNECTION_WINDOW,
        // A client that reads slowly must not hold up the others.
        creditsAtOnce: true,
      },
      this,
    );
    const onread = {
      buffer: owner.readBuffer,
      callback: (length: number): boolean => {
        this.#onRead(length);
        return true;
      },
    };
    const socket = connect({ ...upstreamAddress(upstream), noDelay: true, onread });
    this.#wire = new Http2Socket(socket, this.endpoint, () => undefined);
    contain(socket, this, 'connect', () => {
      this.#connecting = false;
    });
    listenTo(socket, this);
    this.#wire.flush();
  }

  get socket(): Socket {
    return this.#wire.socket;
  }

  /** Why it has gone; undefined while it stands. */
  get failure(): UpstreamErrorKind | undefined {
    return this.#failure ?? (this.endpoint.isBroken ? 'bad-response' : undefined);
  }

  /** Whether a request may be sent on it now. */
  get hasRoom(): boolean {
    return this.failure === undefined && !this.#isSilent && this.endpoint.hasRoom;
  }

  request(fields: readonly Field[], endsStream: boolean, owner: StreamOwner): Stream {
    const stream = this.endpoint.request(fields, endsStream, owner);
    this.schedule();
    return stream;
  }

  /** Calls back once the application has said what it can do; at once when it has. */
  whenTold(callback: () => void): void {
    if (this.endpoint.peer.isTold || this.failure !== undefined) callback();
    else this.#onTold.push(callback);
  }

  schedule(): void {
    this.#wire.schedule();
  }

  #onRead(length: number): void {
    try {
      this.onData(this.#owner.readBuffer.subarray(0, length));
    } catch (error) {
      this.onFault(error);
    }
  }

  onData(bytes: Buffer): void {
    const wasTold = this.endpoint.peer.isTold;
    this.reads += 1;
    this.endpoint.receive(bytes);
    if (this.endpoint.isBroken) this.#fail('bad-response');
    else if (!wasTold && this.endpoint.peer.isTold) this.#onFirstSettings();
    this.schedule();
  }

  // Another connection would be told the same: whoever waits is answered, or would open connections without end.
  #onFirstSettings(): void {
    this.takesNothing = this.endpoint.peer.maxConcurrentStreams === 0;
    if (this.takesNothing) this.#fail('closed');
    else this.#tell();
  }

  #tell(): void {
    for (const callback of this.#onTold.splice(0)) callback();
  }

  onRequest(): void {
    throw new Error('a server opened a stream');
  }

  onGoAway(): void {
    this.#closeIfUnused();
  }

  onOver(): void {
    this.reused = true;
    this.#sinceMs = this.#context.sweptMs;
    this.#closeIfUnused();
  }

  /**
   * A stream has reached its deadline and is about to end; `reads` was `readsBefore` when it last moved. TCP takes minutes
   * to notice that a route is lost, and never notices that a process stands still.
   */
  onVainWait(readsBefore: number): void {
    // Before its SETTINGS it has a deadline of its own.
    if (this.endpoint.peer.isTold) this.#isSilent ||= this.reads === readsBefore;
  }

  /** Looks at the deadlines: an application has as long for its SETTINGS as for taking the connection. */
  onSweep(): void {
    const { settings, sweptMs } = this.#context;
    const passedMs = sweptMs - this.#sinceMs;
    this.endpoint.forgive();
    if (!this.endpoint.peer.isTold) {
      if (passedMs >= settings.timeouts.connectMs + sweepIntervalMs) this.#fail('timeout');
    } else if (passedMs >= IDLE_MS) this.closeIfIdle();
  }

  /** Ends it unless a request is under way, or waits for the application's SETTINGS. */
  closeIfIdle(): void {
    if (this.endpoint.peer.isTold && this.endpoint.openStreams === 0) this.#close();
  }

  #closeIfUnused(): void {
    const takesNoMore = this.#isSilent || this.endpoint.isGoingAway;
    if (takesNoMore && this.endpoint.openStreams === 0) this.#close();
  }

  #close(): void {
    this.#owner.forget(this);
    this.#failure ??= 'closed';
    this.endpoint.goAway();
    this.#wire.end();
    // Nobody waits for what an application may still say, or for its end. One that is silent would not take ours either.
    if (this.#isSilent) this.socket.destroy();
    else this.socket.destroySoon();
  }

  onDrain(): void {
    this.#wire.onDrain();
  }

  onEnd(): void {
    this.#fail('closed');
  }

  onGone(reason: 'reset' | 'closed'): void {
    this.#fail(this.#connecting ? 'connect' : reason);
  }

  onFault(error: unknown): void {
    this.#context.counters.faults += 1;
    this.#context.onFault(error);
    this.#fail('reset');
  }

  #fail(kind: UpstreamErrorKind): void {
    this.#owner.forget(this);
    this.#failure ??= kind;
    this.#wire.flush();
    this.#wire.gone();
    this.socket.destroySoon();
    this.#tell();
  }
}
