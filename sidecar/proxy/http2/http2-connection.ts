// Hot path. One client connection that speaks HTTP/2: hands each request to an exchange and ends well.
import type { Socket } from 'node:net';
import { Endpoint, type EndpointOwner } from '../../http2/endpoint.ts';
import { ENHANCE_YOUR_CALM, NO_ERROR, REFUSED_STREAM } from '../../http2/error-code.ts';
import { Field } from '../../http2/field.ts';
import type { FieldBlock } from '../../http2/hpack-decoder.ts';
import { Http2Request } from '../../http2/request.ts';
import { DEFAULT_WINDOW } from '../../http2/settings.ts';
import type { Stream } from '../../http2/stream.ts';
import { hopFields } from '../forwarded-head.ts';
import type { ProxiedConnection } from '../proxied-connection.ts';
import type { ProxyContext } from '../proxy-context.ts';
import { maxPendingHeadBytes, sweepIntervalMs } from '../proxy-options.ts';
import type { SocketEvents } from '../socket-events.ts';
import { Http2Exchange } from './exchange.ts';
import { Http2HopFields } from './forwarded-fields.ts';
import { Http2Socket } from './http2-socket.ts';
import type { Http2UpstreamPool } from './upstream-pool.ts';

/** Requests under way on one connection: what Go's and nginx's servers take (250, 128), and more than a client opens. */
const MAX_STREAMS = 250;
/** Body bytes of all streams of a connection that may wait to be passed on. */
const CONNECTION_WINDOW = 1_048_576;
/**
 * From the first GOAWAY, which only asks, to the one after which new requests are not taken. More than a sweep counts of
 * the time that the process was frozen: what came meanwhile is read before the next one.
 */
const LEAVE_MS = 3 * sweepIntervalMs;

export interface Http2Owner {
  readonly upstreams: Http2UpstreamPool;
  readonly onGone: (connection: ProxiedConnection) => void;
}

export class Http2Connection implements SocketEvents, EndpointOwner, ProxiedConnection {
  readonly context: ProxyContext;
  readonly endpoint: Endpoint;
  readonly hop: Http2HopFields;
  readonly #owner: Http2Owner;
  readonly #wire: Http2Socket;
  readonly #exchanges = new Map<number, Http2Exchange>();
  readonly #peerAddress: string;
  #knownHost = '';
  readonly #beganMs: number;
  #idleSinceMs: number;
  /** Since when a sweep has found the client within the same head, which is numbered by those before it. */
  #headSinceMs: number;
  #headsRead = 0;
  /** This connection's share of `context.pendingHeadBytes`. */
  #pendingHeadBytes = 0;
  /** When the client was asked to leave; −1 = never. */
  #askedMs = -1;
  #isGone = false;

  constructor(socket: Socket, context: ProxyContext, owner: Http2Owner) {
    const { limits, forwardedProto, via } = context.settings;
    this.context = context;
    this.#owner = owner;
    this.#peerAddress = socket.remoteAddress ?? '';
    this.#beganMs = context.sweptMs;
    this.#idleSinceMs = context.sweptMs;
    this.#headSinceMs = context.sweptMs;
    this.hop = new Http2HopFields(hopFields(this.#peerAddress, forwardedProto, ''), via);
    this.endpoint = new Endpoint(
      {
        role: 'server',
        maxConcurrentStreams: MAX_STREAMS,
        maxHeaderListBytes: limits.maxHeadBytes,
        maxHeaderLines: limits.maxFieldLines,
        initialWindow: DEFAULT_WINDOW,
        connectionWindow: CONNECTION_WINDOW,
        creditsAtOnce: false,
      },
      this,
    );
    this.endpoint.sender.backlog = context.backlog;
    this.#wire = new Http2Socket(socket, this.endpoint, (bytes) => {
      context.counters.bytesToClients += bytes;
    });
    this.schedule();
  }

  get upstreams(): Http2UpstreamPool {
    return this.#owner.upstreams;
  }

  /** `date: …`, one object for all responses of a while. */
  get date(): Field {
    return dateField(this.context.dateLine);
  }

  schedule(): void {
    this.#wire.schedule();
  }

  onData(bytes: Buffer): void {
    this.context.counters.bytesFromClients += bytes.length;
    const { isBroken: wasBroken, streamsRefused } = this.endpoint;
    this.endpoint.receive(bytes);
    const refused = this.endpoint.streamsRefused - streamsRefused;
    if (refused > 0) this.context.counters.countRefusal('too-many-streams', refused);
    if (!wasBroken && this.endpoint.fault !== NO_ERROR) this.#countFault();
    this.#boundHeads();
    if (this.endpoint.isBroken) this.#wire.end();
    else this.schedule();
  }

  refuseConnection(): void {
    this.endpoint.close(ENHANCE_YOUR_CALM, 'too many connections');
    this.#leave();
  }

  #countFault(): void {
    const isFlood = this.endpoint.fault === ENHANCE_YOUR_CALM;
    this.context.counters.countRefusal(isFlood ? 'http2-flood' : 'http2-fault');
  }

  // Each one may be 128 KiB as it comes: of thousands of connections together that is more than there is.
  #boundHeads(): void {
    const { context, endpoint } = this;
    const more = endpoint.pendingHeadBytes - this.#pendingHeadBytes;
    this.#pendingHeadBytes += more;
    context.pendingHeadBytes += more;
    if (more <= 0 || context.pendingHeadBytes <= maxPendingHeadBytes) return;
    context.counters.headsShed += 1;
    endpoint.close(ENHANCE_YOUR_CALM, 'too many heads that do not end');
    this.#boundHeads();
  }

  onRequest(stream: Stream, block: FieldBlock): void {
    const { counters, settings } = this.context;
    if (counters.streamsOpen >= settings.maxConnections) {
      counters.countRefusal('max-connections');
      this.endpoint.blame();
      this.endpoint.reset(stream, REFUSED_STREAM);
      return;
    }
    const request = new Http2Request(block, {
      peerAddress: this.#peerAddress,
      maxTargetBytes: settings.limits.maxTargetBytes,
      knownHost: this.#knownHost,
      isWhole: stream.remoteEnded,
    });
    stream.bytesDue = request.contentLength;
    const exchange = new Http2Exchange(this, stream, request);
    this.#exchanges.set(stream.id, exchange);
    counters.streamsOpen += 1;
    if (request.refusal !== undefined) {
      if (request.refusal === 'malformed') this.endpoint.blame();
      exchange.refuse();
      return;
    }
    this.#knownHost = request.host;
    exchange.begin();
  }

  onOver(stream: Stream): void {
    const exchange = this.#exchanges.get(stream.id);
    if (exchange === undefined) return;
    this.#exchanges.delete(stream.id);
    this.context.counters.streamsOpen -= 1;
    exchange.onOver();
    this.#askIfDraining();
    if (this.#exchanges.size > 0) return;
    this.#idleSinceMs = this.context.sweptMs;
    if (this.endpoint.isGoingAway) this.#leave();
  }

  onGoAway(): void {
    if (this.#exchanges.size === 0) this.#leave();
  }

  onDrain(): void {
    this.#wire.onDrain();
  }

  onEnd(): void {
    this.destroy();
  }

  onGone(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#wire.gone();
    this.#boundHeads();
    this.#owner.onGone(this);
  }

  onFault(error: unknown): void {
    this.context.counters.faults += 1;
    this.context.onFault(error);
    this.destroy();
  }

  destroy(): void {
    this.#wire.socket.destroy();
    this.onGone();
  }

  /** Sweep time at which `onDeadline` is due: of the request that has waited longest, or of the connection. */
  get deadlineMs(): number {
    if (this.#exchanges.size === 0) return this.#idleDeadlineMs;
    let earliest = Infinity;
    for (const { deadlineMs } of this.#exchanges.values()) {
      if (deadlineMs < earliest) earliest = deadlineMs;
    }
    return earliest;
  }

  get #idleDeadlineMs(): number {
    const { idleMs, lingerMs } = this.context.settings.timeouts;
    const { isGoingAway, isWithinHead } = this.endpoint;
    // Of a head, see `#watchHead`.
    if (isWithinHead && !isGoingAway) return Infinity;
    return this.#idleSinceMs + sweepIntervalMs + (isGoingAway ? lingerMs : idleMs);
  }

  onDeadline(): void {
    const { sweptMs, counters } = this.context;
    if (this.#exchanges.size > 0) {
      for (const exchange of [...this.#exchanges.values()]) {
        if (exchange.deadlineMs <= sweptMs) exchange.onDeadline();
      }
      this.onSweep();
    } else if (this.endpoint.isGoingAway) {
      this.destroy();
    } else {
      counters.timeouts.idle += 1;
      this.#leave();
    }
  }

  // After what has been written for the last stream. What the client opens from now on is not served: nobody would be
  // there to send it an answer, and to hold up the application while it does not leave.
  #leave(): void {
    this.#idleSinceMs = this.context.sweptMs;
    this.endpoint.goAway();
    this.#wire.end();
  }

  /** Told at each sweep. */
  onSweep(): void {
    // A client that does not read the answers to its frames is given no more of them.
    if (this.#wire.hasBeenRead()) this.endpoint.forgive();
    this.#watchHead();
    if (this.context.sweptMs - this.#beganMs >= LEAVE_MS) this.#askIfDraining();
    if (this.#askedMs < 0 || this.context.sweptMs - this.#askedMs < LEAVE_MS) return;
    this.#askedMs = Infinity;
    this.endpoint.goAway();
    if (this.#exchanges.size === 0) this.#leave();
    else this.schedule();
  }

  // Whatever else is under way on the connection: what has come of a head is kept until it ends.
  #watchHead(): void {
    const { counters, settings, sweptMs } = this.context;
    const { headsRead, isWithinHead } = this.endpoint;
    if (!isWithinHead || headsRead !== this.#headsRead) {
      this.#headsRead = headsRead;
      this.#headSinceMs = sweptMs;
      return;
    }
    if (sweptMs - this.#headSinceMs < settings.timeouts.headMs + sweepIntervalMs) return;
    counters.timeouts.head += 1;
    this.endpoint.close(ENHANCE_YOUR_CALM, 'a head that does not end');
    this.#boundHeads();
    this.#leave();
  }

  // A client that comes while the sidecar drains is asked when its first request is over: clients that hear GOAWAY
  // before they have sent one give it up.
  #askIfDraining(): void {
    if (this.context.draining) this.startDraining();
  }

  /** Asks the client to send its next requests over another connection. */
  startDraining(): void {
    if (this.#askedMs >= 0) return;
    this.#askedMs = this.context.sweptMs;
    this.endpoint.askToLeave();
    this.schedule();
  }

  // The client was asked to leave when the draining began; what it sent before it heard of that may still be on its way.
  stop(): void {
    this.#askIfDraining();
  }
}

let lastDateLine = '';
let lastDate = new Field('date', '', 'indexed');

/** The field of `Date: …\r\n`. */
function dateField(line: string): Field {
  if (line !== lastDateLine) {
    lastDateLine = line;
    lastDate = new Field('date', line.slice(6, -2), 'plain');
  }
  return lastDate;
}
