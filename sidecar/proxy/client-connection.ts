// Hot path. One client connection: reads heads, asks the gate, answers what is not forwarded, and ends well.
// Requests are taken strictly one after the other: bytes that come early are held, and reading stops when these are
// enough, so that order, backpressure and memory need no further thought.
//
//   reading ──head──▶ deciding ──allowed──▶ exchanging ──response done──▶ reading
//      ▲                 │ otherwise             │ last response
//      └──────answered───┴───────close──────▶ lingering ──▶ gone
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { RefusalReason } from '../http1/refusal.ts';
import { RequestHead } from '../http1/request-head.ts';
import type { Framing } from '../http1/framing.ts';
import { Exchange } from './exchange.ts';
import { hopFields } from './forwarded-head.ts';
import type { HopFields } from './forwarded-head.ts';
import type { Answer, PendingAdmission, Verdict, Waiter } from './gate.ts';
import { answerText, ownAnswers, refusalAnswer } from './own-answers.ts';
import type { ProxiedConnection } from './proxied-connection.ts';
import type { ProxyContext } from './proxy-context.ts';
import {
  drainIdleMs,
  maxHeldBytes,
  maxLingerBytes,
  maxPendingHeadBytes,
  quietMs,
  sweepIntervalMs,
} from './proxy-options.ts';
import { readingInto } from './shared-reads.ts';
import { listenTo } from './socket-events.ts';
import type { SocketEvents } from './socket-events.ts';
import type { UpstreamPool } from './upstream-pool.ts';

type State = 'reading' | 'deciding' | 'exchanging' | 'lingering' | 'handed-over' | 'gone';

interface Owner {
  readonly pool: UpstreamPool;
  readonly onGone: (connection: ProxiedConnection) => void;
  /** The client speaks HTTP/2: gives who serves the socket from now on, in place of `connection`. */
  readonly onHttp2: (connection: ProxiedConnection, socket: Socket) => Http2Successor;
}

export interface Http2Successor extends SocketEvents {
  /** Ends the connection before anything was read: too many are open. */
  refuseConnection(): void;
}

export class ClientConnection implements Waiter, SocketEvents, ProxiedConnection {
  readonly socket: Socket;
  readonly head: RequestHead;
  /** Sweep time at which `onDeadline` is due. */
  deadlineMs = 0;
  /** The gate's own; see `Waiter`. */
  pending: PendingAdmission | undefined = undefined;
  readonly #context: ProxyContext;
  readonly #owner: Owner;
  readonly #hop: HopFields;
  readonly #exchange: Exchange;
  #state: State = 'reading';
  /** Bytes that may not be looked at yet. */
  #held: Buffer | undefined;
  #looping = false;
  #closes = false;
  /** Whether a request has been read: what comes then is no preface any more. */
  #hasServed = false;
  /** Who serves the socket after a preface of HTTP/2. */
  #successor: Http2Successor | undefined;
  /** This connection's share of `pendingHeadBytes`. */
  #pendingBytes = 0;
  /** When the request was admitted; kept only for the access log. −1 for a message that never was. */
  #beganMs = -1;
  #lingered = 0;

  constructor(accepted: Socket, context: ProxyContext, owner: Owner) {
    const { settings } = context;
    this.socket = readingInto(owner.pool.readBuffer, accepted, (length) => {
      this.#onRead(length);
    });
    this.#context = context;
    this.#owner = owner;
    this.head = new RequestHead(settings.limits);
    this.head.peerAddress = this.socket.remoteAddress ?? '';
    this.#hop = hopFields(this.head.peerAddress, settings.forwardedProto, context.viaLine);
    this.#exchange = new Exchange(this, context, owner.pool);
    this.arm(settings.timeouts.idleMs);
    listenTo(this.socket, this);
    this.socket.resume();
  }

  /** Moves the deadline to `ms` from now. */
  arm(ms: number): void {
    this.deadlineMs = this.#context.sweptMs + sweepIntervalMs + ms;
  }

  /** Whether nothing is under way: no byte of a request has come. */
  get isIdle(): boolean {
    return this.#state === 'reading' && !this.head.begun && this.#held === undefined;
  }

  // The next read of anybody overwrites the buffer: what is kept of it must be copied.
  #onRead(length: number): void {
    const bytes = this.#owner.pool.readBuffer.subarray(0, length);
    try {
      if (this.#successor !== undefined) this.#successor.onData(bytes);
      else this.onData(bytes);
    } catch (error) {
      this.onFault(error);
    }
  }

  onData(bytes: Buffer): void {
    if (this.#successor === undefined) this.#context.counters.bytesFromClients += bytes.length;
    switch (this.#state) {
      case 'reading':
        this.#readOn(bytes);
        return;
      case 'exchanging':
        this.#exchange.onClientData(bytes);
        return;
      case 'deciding':
        this.hold(bytes);
        return;
      case 'lingering':
        this.#lingered += bytes.length;
        if (this.#lingered > maxLingerBytes) this.socket.destroy();
        return;
      case 'handed-over':
        this.#successor?.onData(bytes);
        return;
      case 'gone':
        return;
    }
  }

  // What is read before this returns need not be copied.
  #readOn(bytes: Buffer): void {
    if (this.#held === undefined && this.#readsHeads) this.#held = bytes;
    else this.#append(bytes);
    this.#readHeld();
  }

  /** Keeps bytes for later. */
  hold(bytes: Buffer): void {
    this.#append(bytes);
    if (this.#holdsEnough) this.socket.pause();
  }

  // Reading goes on until then: a socket that does not read does not hear that the client has gone either, and its
  // request would still be decided, forwarded and waited for.
  get #holdsEnough(): boolean {
    return this.#held !== undefined && this.#held.length >= maxHeldBytes;
  }

  #append(bytes: Buffer): void {
    this.#held = this.#held === undefined ? this.owned(bytes) : Buffer.concat([this.#held, bytes]);
  }

  takeHeld(): Buffer | undefined {
    const held = this.#held;
    this.#held = undefined;
    return held;
  }

  /** Reads on, unless something still forbids it. */
  resume(): void {
    if (this.#holdsEnough || this.#exchange.waitsForUpstream) return;
    if (this.socket.isPaused()) this.socket.resume();
  }

  // A loop rather than recursion: one chunk may hold thousands of pipelined requests, all answered at once. It waits
  // for the client to take the answers, so that one who only sends cannot fill our memory.
  #readHeld(): void {
    if (this.#looping) return;
    this.#looping = true;
    while (this.#readsHeads) {
      const bytes = this.takeHeld();
      if (bytes === undefined) break;
      this.#readHead(bytes);
    }
    this.#looping = false;
    if (this.#holdsEnough) this.socket.pause();
    else this.resume();
  }

  get #readsHeads(): boolean {
    return this.#state === 'reading' && !this.socket.writableNeedDrain;
  }

  #readHead(bytes: Buffer): void {
    const head = this.head;
    if (!head.begun) this.arm(this.#context.settings.timeouts.headMs);
    const outcome = head.feed(bytes.toString('latin1'));
    if (outcome === 'more') {
      this.#keepPending(bytes.length);
      return;
    }
    this.#dropPending();
    if (outcome === 'refused') {
      if (head.refusal === 'http2-preface') this.#onHttp2Preface();
      else this.#refuseHead(head.refusal);
      return;
    }
    const following = head.text.length - head.end;
    if (following > 0) this.#held = this.owned(bytes.subarray(bytes.length - following));
    this.#admit(head);
  }

  /** Bytes that outlast the read. */
  owned(bytes: Buffer): Buffer {
    return bytes.buffer === this.#owner.pool.readBuffer.buffer ? Buffer.from(bytes) : bytes;
  }

  #keepPending(bytes: number): void {
    this.#pendingBytes += bytes;
    this.#context.pendingHeadBytes += bytes;
    if (this.#context.pendingHeadBytes <= maxPendingHeadBytes) return;
    this.#context.counters.headsShed += 1;
    this.close(ownAnswers['too-many-heads']);
  }

  #dropPending(): void {
    this.#context.pendingHeadBytes -= this.#pendingBytes;
    this.#pendingBytes = 0;
  }

  // HTTP/2 by prior knowledge (RFC 9113 §3.3), only as the first thing a client says. `head.text` holds all that came.
  #onHttp2Preface(): void {
    if (this.#hasServed || this.head.start > 0) {
      this.#refuseHead('http2-preface');
      return;
    }
    const bytes = Buffer.from(this.head.text, 'latin1');
    this.#context.counters.bytesFromClients -= bytes.length; // counted by whoever reads them
    this.#handOver().onData(bytes);
  }

  #handOver(): Http2Successor {
    this.#state = 'handed-over';
    this.#held = undefined;
    this.head.reset();
    this.#successor = this.#owner.onHttp2(this, this.socket);
    return this.#successor;
  }

  #admit(head: RequestHead): void {
    this.#context.counters.requestsTotal += 1;
    if (this.#context.accessLog !== undefined) this.#beganMs = this.#context.now();
    this.#state = 'deciding';
    this.#hasServed = true;
    this.deadlineMs = Infinity; // the gate has its own
    this.#closes = head.wantsClose;
    this.#exchange.body.begin(head.framing, head.contentLength);
    this.#context.gate.admit(head, this);
  }

  onVerdict(verdict: Verdict): void {
    if (this.#state !== 'deciding') return;
    try {
      this.#apply(verdict);
      this.#readHeld();
    } catch (error) {
      this.onFault(error);
    }
  }

  #apply(verdict: Verdict): void {
    switch (verdict.kind) {
      case 'allowed':
        this.#state = 'exchanging';
        this.#exchange.start(verdict, this.#hop);
        return;
      case 'unavailable':
        this.close(verdict.answer);
        return;
      case 'denied':
      case 'bad-request':
        this.#answer(verdict.answer);
    }
  }

  /** Answers, and goes on only where the request has been read whole: its body is not worth reading. */
  #answer(answer: Answer): void {
    this.#skipHeldBody();
    if (this.#closes || !this.#exchange.requestDone || this.#context.draining) {
      this.close(answer);
      return;
    }
    this.noteResponse(answer.status);
    this.write(this.#answerText(answer, false));
    this.#nextRequest();
  }

  #skipHeldBody(): void {
    const body = this.#exchange.body;
    const held = body.done ? undefined : this.takeHeld();
    if (held === undefined) return;
    body.take(held);
    if (body.done && body.end < held.length) this.#held = held.subarray(body.end);
  }

  #refuseHead(reason: RefusalReason): void {
    this.#context.counters.headsRefused += 1;
    this.refuse(reason);
  }

  /** Answers a request that the engine refused. */
  refuse(reason: RefusalReason): void {
    this.#context.counters.countRefusal(reason);
    this.close(refusalAnswer(reason));
  }

  /** Gives a last answer. */
  close(answer: Answer): void {
    this.noteResponse(answer.status);
    const text = this.#answerText(answer, true);
    this.#context.counters.bytesToClients += text.length;
    this.#linger(text);
  }

  #answerText(answer: Answer, closes: boolean): string {
    return answerText(answer, {
      dateLine: this.#context.dateLine,
      closes,
      omitsBody: this.head.method === 'HEAD',
    });
  }

  /** Answers 503 before anything was read, or what says the same in HTTP/2: too many connections are open. */
  refuseConnection(): void {
    if (this.#state === 'gone') return;
    if (speaksHttp2(this.socket)) this.#handOver().refuseConnection();
    else this.close(ownAnswers['too-many-connections']);
  }

  /** The head of a final response goes out. */
  noteResponse(status: number): void {
    const { counters, accessLog } = this.#context;
    counters.countResponse(status);
    if (accessLog === undefined) return;
    accessLog.record(
      this.head,
      status,
      this.#beganMs < 0 ? 0 : this.#context.now() - this.#beganMs,
    );
  }

  /** Whether the response about to start is the connection's last. */
  decideClose(endsByClosing: boolean): boolean {
    this.#closes = this.#closes || endsByClosing || this.#context.draining;
    return this.#closes;
  }

  /** False when the client must drain before more is produced for it. */
  write(data: string | Buffer): boolean {
    this.#context.counters.bytesToClients += data.length;
    return typeof data === 'string' ? this.socket.write(data, 'latin1') : this.socket.write(data);
  }

  onResponseDone(requestDone: boolean): void {
    if (this.#closes || !requestDone) this.#linger('');
    else this.#nextRequest();
    this.#readHeld();
  }

  #nextRequest(): void {
    this.head.reset();
    this.#beganMs = -1;
    this.#state = 'reading';
    this.arm(this.#context.settings.timeouts.idleMs);
    if (this.#context.stopping && this.#held === undefined) this.#linger('');
  }

  // Ends our side, but goes on reading for a while: closing with unread bytes would send a reset that can destroy the
  // answer on its way (RFC 9112 §9.6).
  #linger(lastText: string): void {
    this.#state = 'lingering';
    this.#held = undefined;
    this.#dropPending();
    this.head.reset();
    this.arm(this.#context.settings.timeouts.lingerMs);
    if (lastText === '') this.socket.end();
    else this.socket.end(lastText, 'latin1');
    this.resume();
  }

  /** Breaks off a response. One that ends with the connection looks complete unless it ends with a reset. */
  cut(framing: Framing): void {
    if (framing === 'close') this.socket.resetAndDestroy();
    else this.socket.destroy();
    this.onGone();
  }

  onDrain(): void {
    if (this.#successor !== undefined) this.#successor.onDrain();
    else if (this.#state === 'exchanging') this.#exchange.onClientDrain();
    else if (this.#state === 'reading') this.#readHeld();
  }

  onEnd(): void {
    switch (this.#state) {
      case 'exchanging':
        this.#exchange.onClientEnd();
        return;
      case 'reading':
        if (this.isIdle) this.#linger('');
        else this.destroy();
        return;
      case 'deciding':
        this.destroy();
        return;
      case 'handed-over':
        this.#successor?.onEnd();
        return;
      case 'lingering':
      case 'gone':
        return;
    }
  }

  onGone(reason: 'reset' | 'closed' = 'closed'): void {
    const state = this.#state;
    if (state === 'handed-over') this.#successor?.onGone(reason);
    if (state === 'gone' || state === 'handed-over') return;
    this.#state = 'gone';
    this.#held = undefined;
    this.#dropPending();
    this.#owner.onGone(this);
    if (state === 'exchanging') this.#exchange.onClientGone();
    if (state !== 'deciding') return;
    this.#context.counters.clientAborts += 1;
    this.#context.gate.cancel(this);
  }

  onFault(error: unknown): void {
    if (this.#successor !== undefined) {
      this.#successor.onFault(error);
      return;
    }
    this.#context.counters.faults += 1;
    this.#context.onFault(error);
    this.destroy();
  }

  /** Ends whatever is under way at once. */
  destroy(): void {
    this.socket.destroy();
    this.onGone();
  }

  /** Closes now if nothing is under way, and nothing seems to be on its way; otherwise after its response, or soon. */
  stop(): void {
    if (this.#idleForMs >= quietMs) this.socket.destroySoon();
  }

  startDraining(): void {
    // Each response says it from now on.
  }

  // Whoever uses a connection while we drain is told to close it. One that nobody uses would be used when the app has gone.
  onSweep(): void {
    const { draining, stopping } = this.#context;
    if (stopping) this.stop();
    else if (draining && this.#idleForMs >= drainIdleMs) this.#linger('');
  }

  /** Since when nothing has been under way; −1 while something is. */
  get #idleForMs(): number {
    if (!this.isIdle) return -1;
    const { settings, sweptMs } = this.#context;
    return sweptMs - (this.deadlineMs - sweepIntervalMs - settings.timeouts.idleMs);
  }

  /** The deadline has passed: ends what is stuck. */
  onDeadline(): void {
    if (this.#state === 'exchanging') this.#exchange.onDeadline();
    else if (this.#state === 'reading') this.#onReadingDeadline();
    else this.destroy();
  }

  #onReadingDeadline(): void {
    const { timeouts } = this.#context.counters;
    if (this.socket.writableNeedDrain) {
      timeouts['client-stall'] += 1;
      this.destroy();
    } else if (this.head.begun) {
      timeouts.head += 1;
      this.close(ownAnswers['head-timeout']);
    } else {
      timeouts.idle += 1;
      this.#linger('');
    }
  }
}

/** Whether ALPN chose it. By prior knowledge nobody knows before the client has said something. */
function speaksHttp2(socket: Socket): boolean {
  return socket instanceof TLSSocket && socket.alpnProtocol === 'h2';
}
