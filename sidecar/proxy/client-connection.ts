// Hot path. One client connection and the exchange it has under way: reads the request direction, asks the gate,
// forwards or answers. Requests are taken strictly one after the other: bytes that come early are held and reading
// stops, so that order, backpressure and memory need no further thought.
//
//   reading ──head──▶ deciding ──allowed──▶ exchanging ──response done──▶ reading
//                        │ otherwise            │ 101 ──▶ tunnelling
//                        ▼                      ▼ close
//                     reading or lingering ◀────┘
import type { Socket } from 'node:net';
import { MessageBody } from '../http1/message-body.ts';
import type { RefusalReason } from '../http1/refusal.ts';
import { RequestHead } from '../http1/request-head.ts';
import type { Framing } from '../http1/request-head.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import { relayTaken } from './body-relay.ts';
import {
  forwardedRequestHead,
  forwardedResponseHead,
  hopFields,
  viaLine,
} from './forwarded-head.ts';
import type { HopFields } from './forwarded-head.ts';
import type { AfterResponse, Answer, PendingAdmission, Quota, Verdict, Waiter } from './gate.ts';
import { answerText, ownAnswers, refusalAnswer, upstreamFailureAnswer } from './own-answers.ts';
import type { ProxyContext } from './proxy-context.ts';
import type { TimeoutKind, UpstreamErrorKind } from './proxy-counters.ts';
import { maxJoinedBytes, maxLingerBytes, sweepIntervalMs } from './proxy-options.ts';
import { chooseQuota, withoutQuota } from './quota-fields.ts';
import type { UpstreamConnection } from './upstream-connection.ts';
import type { UpstreamPool } from './upstream-pool.ts';

type State = 'reading' | 'deciding' | 'exchanging' | 'tunnelling' | 'lingering' | 'gone';

export class ClientConnection implements Waiter {
  readonly socket: Socket;
  readonly head: RequestHead;
  /** Sweep time at which `onDeadline` is due. */
  deadlineMs = 0;
  /** The gate's own; see `Waiter`. */
  pending: PendingAdmission | undefined = undefined;
  readonly #context: ProxyContext;
  readonly #pool: UpstreamPool;
  readonly #hop: HopFields;
  readonly #body: MessageBody;
  readonly #onGone: (connection: ClientConnection) => void;
  #state: State = 'reading';
  /** Bytes that may not be looked at yet; while there are any, the socket is paused. */
  #held: Buffer | undefined;
  #looping = false;
  #closes = false;
  #responseStarted = false;
  #bodySent = false;
  #retried = false;
  #waitsForUpstream = false;
  #lingered = 0;
  #upstream: UpstreamConnection | undefined;
  #forwarded = '';
  #fields = '';
  #quotaForm: Quota['form'] | undefined;
  #quotaRemaining = 0;
  #afterResponse: AfterResponse | undefined;

  constructor(
    socket: Socket,
    context: ProxyContext,
    owner: { readonly pool: UpstreamPool; readonly onGone: (connection: ClientConnection) => void },
  ) {
    const { settings } = context;
    this.socket = socket;
    this.#context = context;
    this.#pool = owner.pool;
    this.#onGone = owner.onGone;
    this.head = new RequestHead(settings.limits);
    this.head.peerAddress = socket.remoteAddress ?? '';
    this.#hop = hopFields(this.head.peerAddress, settings.forwardedProto, settings.via);
    this.#body = new MessageBody(settings.limits);
    this.#arm(settings.timeouts.idleMs);
    this.#listen();
  }

  #listen(): void {
    const on = (event: string, handle: (value: Buffer) => void): void => {
      this.socket.on(event, (value: Buffer) => {
        try {
          handle(value);
        } catch (error) {
          this.onFault(error);
        }
      });
    };
    on('data', (bytes) => {
      this.#onData(bytes);
    });
    on('drain', () => {
      this.#onDrain();
    });
    on('end', () => {
      this.#onEnd();
    });
    on('error', () => {
      this.#onClose();
    });
    on('close', () => {
      this.#onClose();
    });
  }

  #arm(ms: number): void {
    this.deadlineMs = this.#context.sweptMs + sweepIntervalMs + ms;
  }

  /** Whether nothing is under way: no byte of a request has come. */
  get isIdle(): boolean {
    return this.#state === 'reading' && !this.head.begun && this.#held === undefined;
  }

  /** Whether the whole request has been read. */
  get requestDone(): boolean {
    return this.#body.done;
  }

  // ---- request direction

  #onData(bytes: Buffer): void {
    this.#context.counters.bytesFromClients += bytes.length;
    switch (this.#state) {
      case 'reading':
        this.#held = this.#held === undefined ? bytes : Buffer.concat([this.#held, bytes]);
        this.#readHeld();
        return;
      case 'exchanging':
        if (this.#body.done) this.#hold(bytes);
        else this.#relayBody(bytes);
        return;
      case 'deciding':
        this.#hold(bytes);
        return;
      case 'tunnelling':
        this.#arm(this.#context.settings.timeouts.tunnelIdleMs);
        if (this.#upstream?.socket.write(bytes) === false) this.#pauseForUpstream();
        return;
      case 'lingering':
        this.#lingered += bytes.length;
        if (this.#lingered > maxLingerBytes) this.socket.destroy();
        return;
      case 'gone':
        return;
    }
  }

  #hold(bytes: Buffer): void {
    this.#held = this.#held === undefined ? bytes : Buffer.concat([this.#held, bytes]);
    this.socket.pause();
  }

  // A loop rather than recursion: one chunk may hold thousands of pipelined requests, all answered at once.
  #readHeld(): void {
    if (this.#looping) return;
    this.#looping = true;
    while (
      this.#state === 'reading' &&
      this.#held !== undefined &&
      !this.socket.writableNeedDrain
    ) {
      const bytes = this.#held;
      this.#held = undefined;
      this.#readHead(bytes);
    }
    this.#looping = false;
    if (this.#held !== undefined) this.socket.pause();
    else this.#resume();
  }

  #resume(): void {
    if (this.#held !== undefined || this.#waitsForUpstream) return;
    if (this.socket.isPaused()) this.socket.resume();
  }

  #readHead(bytes: Buffer): void {
    const head = this.head;
    if (!head.begun) this.#arm(this.#context.settings.timeouts.headMs);
    const outcome = head.feed(bytes.toString('latin1'));
    if (outcome === 'more') return;
    if (outcome === 'refused') {
      this.#refuse(head.refusal);
      return;
    }
    const following = head.text.length - head.end;
    if (following > 0) this.#held = bytes.subarray(bytes.length - following);
    this.#begin();
  }

  #begin(): void {
    const head = this.head;
    this.#context.counters.requestsTotal += 1;
    this.#state = 'deciding';
    this.deadlineMs = Infinity; // the gate has its own
    this.#closes = head.wantsClose;
    this.#responseStarted = false;
    this.#bodySent = false;
    this.#retried = false;
    this.#body.begin(head.framing, head.contentLength);
    this.#context.gate.admit(head, this);
  }

  onVerdict(verdict: Verdict): void {
    if (this.#state !== 'deciding') return;
    try {
      if (verdict.kind === 'allowed') this.#forward(verdict);
      else if (verdict.kind === 'unavailable') this.#close(verdict.answer);
      else this.#answerRequest(verdict.answer);
      this.#readHeld();
    } catch (error) {
      this.onFault(error);
    }
  }

  #forward(verdict: Extract<Verdict, { kind: 'allowed' }>): void {
    this.#state = 'exchanging';
    this.#fields = verdict.fields;
    this.#quotaForm = verdict.quota?.form;
    this.#quotaRemaining = verdict.quota?.remaining ?? 0;
    this.#afterResponse = verdict.afterResponse;
    this.#forwarded = forwardedRequestHead(this.head, this.#hop);
    const held = this.#body.done ? undefined : this.#held;
    if (held !== undefined && this.#body.take(held) === 'refused') this.#refuse(this.#body.refusal);
    else this.#send(this.#pool.take(), held);
  }

  #send(upstream: UpstreamConnection, held: Buffer | undefined): void {
    this.#upstream = upstream;
    upstream.begin(this);
    this.#armExchange();
    const flows =
      held === undefined
        ? upstream.socket.write(this.#forwarded, 'latin1')
        : this.#sendWithBody(upstream.socket, held);
    if (!flows) this.#pauseForUpstream();
  }

  #sendWithBody(socket: Socket, held: Buffer): boolean {
    const body = this.#body;
    this.#bodySent = true;
    this.#held = body.end < held.length ? held.subarray(body.end) : undefined;
    if (body.passesWhole && body.end <= maxJoinedBytes) {
      return socket.write(this.#forwarded + held.toString('latin1', 0, body.end), 'latin1');
    }
    socket.cork();
    socket.write(this.#forwarded, 'latin1');
    const flows = relayTaken(socket, held, body);
    socket.uncork();
    return flows;
  }

  #relayBody(bytes: Buffer): void {
    const body = this.#body;
    const upstream = this.#upstream;
    if (upstream === undefined) return;
    if (body.take(bytes) === 'refused') {
      upstream.abandon();
      this.#upstream = undefined;
      this.#refuse(body.refusal);
      return;
    }
    this.#bodySent = true;
    if (body.end < bytes.length) this.#hold(bytes.subarray(body.end));
    if (!relayTaken(upstream.socket, bytes, body)) this.#pauseForUpstream();
    this.#armExchange();
  }

  #pauseForUpstream(): void {
    this.#waitsForUpstream = true;
    this.socket.pause();
  }

  onUpstreamDrain(): void {
    this.#waitsForUpstream = false;
    this.#armExchange();
    this.#resume();
  }

  onUpstreamConnect(): void {
    this.#armExchange();
  }

  // ---- response direction, called by the upstream connection

  sendInterim(text: string): void {
    if (this.head.minorVersion > 0) this.write(text); // RFC 9110 §15.2
    this.#armExchange();
  }

  /** Says what to send as the response's head, and remembers that the response has started. */
  startResponse(head: ResponseHead, framing: Framing): string {
    this.#responseStarted = true;
    this.#forwarded = '';
    this.#closes = this.#closes || framing === 'close' || this.#context.draining;
    this.#context.counters.countResponse(head.status);
    const after = this.#afterResponse;
    if (after !== undefined) after.onResponseHead((name) => head.header(name));
    return this.#responseHead(head);
  }

  #responseHead(head: ResponseHead): string {
    const form = this.#quotaForm;
    const choice = form === undefined ? 'absent' : chooseQuota(head, form, this.#quotaRemaining);
    return forwardedResponseHead(head, {
      fields: choice === 'theirs' ? withoutQuota(this.#fields) : this.#fields,
      replacesQuota: choice === 'ours',
      dateLine: this.#context.dateLine,
      viaLine: viaLine(this.#context.settings.via),
      closes: this.#closes,
    });
  }

  /** Writes to the client; false when it must drain before more is read from the upstream. */
  write(data: string | Buffer): boolean {
    this.#context.counters.bytesToClients += data.length;
    this.#armExchange();
    return typeof data === 'string' ? this.socket.write(data, 'latin1') : this.socket.write(data);
  }

  writeBody(bytes: Buffer, body: MessageBody): boolean {
    this.#context.counters.bytesToClients += body.end;
    this.#armExchange();
    return relayTaken(this.socket, bytes, body);
  }

  finishResponse(): void {
    this.#upstream = undefined;
    this.#waitsForUpstream = false;
    if (this.#closes || !this.#body.done) this.#linger();
    else this.#nextRequest();
    this.#readHeld();
  }

  #nextRequest(): void {
    this.head.reset();
    this.#state = 'reading';
    this.#fields = '';
    this.#afterResponse = undefined;
    this.#arm(this.#context.settings.timeouts.idleMs);
    if (this.#context.stopping && this.#held === undefined) this.#linger();
  }

  /** Ends the connection, but goes on reading for a while: closing with unread bytes would send a reset that can
   * destroy the answer on its way (RFC 9112 §9.6). */
  #linger(text?: string): void {
    this.#state = 'lingering';
    this.#held = undefined;
    this.#waitsForUpstream = false;
    this.head.reset();
    this.#arm(this.#context.settings.timeouts.lingerMs);
    if (text === undefined) this.socket.end();
    else this.socket.end(text, 'latin1');
    this.#resume();
  }

  /** The response cannot be completed: the client must notice. Without a framing of its own only a reset tells. */
  cut(framing: Framing): void {
    this.#upstream = undefined;
    if (framing === 'close') this.socket.resetAndDestroy();
    else this.socket.destroy();
  }

  onUpstreamFailed(kind: UpstreamErrorKind, upstream: UpstreamConnection): void {
    this.#upstream = undefined;
    this.#waitsForUpstream = false;
    if (this.#mayRetry(upstream)) {
      this.#retried = true;
      this.#context.counters.upstreamRetries += 1;
      this.#send(this.#pool.open(), undefined);
      return;
    }
    this.#close(upstreamFailureAnswer(kind));
  }

  // RFC 9112 §9.3.1: only on a connection that may have been closed before the request, only for a method that does
  // no harm twice, and only while nothing of the body has left: it is not kept.
  #mayRetry(upstream: UpstreamConnection): boolean {
    const stale = upstream.reused && !upstream.received;
    return stale && !this.#retried && !this.#bodySent && this.head.isIdempotent;
  }

  // ---- own answers

  #refuse(reason: RefusalReason): void {
    this.#context.counters.countRefusal(reason);
    if (this.#responseStarted) this.cut('length');
    else this.#close(refusalAnswer(reason));
  }

  /** Answers without closing where the request has been read whole; otherwise its body is not worth reading. */
  #answerRequest(answer: Answer): void {
    this.#skipHeldBody();
    if (this.#closes || !this.#body.done || this.#context.draining) {
      this.#close(answer);
      return;
    }
    this.#countAndWrite(answer);
    this.#nextRequest();
  }

  #skipHeldBody(): void {
    const held = this.#held;
    if (this.#body.done || held === undefined) return;
    if (this.#body.take(held) === 'complete') {
      this.#held = this.#body.end < held.length ? held.subarray(this.#body.end) : undefined;
    }
  }

  #countAndWrite(answer: Answer): void {
    this.#context.counters.countResponse(answer.status);
    this.write(this.#answerText(answer, false));
  }

  #close(answer: Answer): void {
    this.#context.counters.countResponse(answer.status);
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

  /** Answers 503 before anything was read: too many connections are open. */
  refuseConnection(): void {
    this.#close(ownAnswers['too-many-connections']);
  }

  // ---- tunnel

  startTunnel(head: ResponseHead): boolean {
    this.#state = 'tunnelling';
    this.#responseStarted = true;
    this.#context.counters.countResponse(101);
    this.#context.counters.tunnelsOpen += 1;
    this.#arm(this.#context.settings.timeouts.tunnelIdleMs);
    this.#closes = false;
    const text = this.#responseHead(head) + head.text.slice(head.end);
    const early = this.#held;
    this.#held = undefined;
    if (early !== undefined && this.#upstream?.socket.write(early) === false) {
      this.#waitsForUpstream = true;
    }
    this.#resume();
    return this.write(text);
  }

  /** The upstream has sent its last byte; the client may still send. */
  endTunnel(): void {
    this.socket.end();
  }

  closeTunnel(): void {
    this.#upstream = undefined;
    this.socket.destroySoon();
  }

  // ---- ends

  #onDrain(): void {
    this.#upstream?.resume();
    this.#armExchange();
    if (this.#state === 'reading') this.#readHeld();
  }

  #onEnd(): void {
    switch (this.#state) {
      case 'tunnelling':
        this.#upstream?.socket.end();
        return;
      case 'reading':
        if (this.isIdle) this.#linger();
        else this.socket.destroy();
        return;
      case 'lingering':
      case 'gone':
        return;
      default:
        // A client that closes its side in mid-exchange has given up; what a half-close would mean here nobody says.
        this.socket.destroy();
        this.#onClose();
    }
  }

  #onClose(): void {
    const state = this.#state;
    if (state === 'gone') return;
    this.#state = 'gone';
    this.#held = undefined;
    const upstream = this.#upstream;
    this.#upstream = undefined;
    this.#onGone(this);
    if (state === 'deciding') this.#context.gate.cancel(this);
    if (state === 'tunnelling') {
      this.#context.counters.tunnelsOpen -= 1;
      upstream?.abandonGently();
    } else if (upstream !== undefined) {
      this.#context.counters.clientAborts += 1;
      upstream.abandon();
    }
  }

  onFault(error: unknown): void {
    this.#context.counters.faults += 1;
    this.#context.onFault(error);
    this.socket.destroy();
    this.#onClose();
  }

  /** Closes at once whatever is under way. */
  destroy(): void {
    this.socket.destroy();
    this.#onClose();
  }

  /** Closes now if nothing is under way; otherwise the connection closes after its response. */
  stop(): void {
    if (this.isIdle) this.#linger();
  }

  // ---- time

  #armExchange(): void {
    if (this.#state !== 'exchanging') return;
    this.#arm(this.#context.settings.timeouts[exchangeTimeouts[this.#waitingFor()]]);
  }

  #waitingFor(): 'client-stall' | 'connect' | 'response' | 'upstream-stall' {
    const upstream = this.#upstream;
    if (upstream?.connecting === true) return 'connect';
    if (this.#responseStarted)
      return this.socket.writableNeedDrain ? 'client-stall' : 'upstream-stall';
    return this.#body.done || this.#waitsForUpstream ? 'response' : 'client-stall';
  }

  /** The deadline has passed: ends what is stuck. */
  onDeadline(): void {
    switch (this.#state) {
      case 'reading':
        this.#onReadingDeadline();
        return;
      case 'exchanging':
        this.#onExchangeDeadline(this.#waitingFor());
        return;
      case 'tunnelling':
        this.#context.counters.timeouts.tunnel += 1;
        this.destroy();
        return;
      default:
        this.destroy();
    }
  }

  #onReadingDeadline(): void {
    const { timeouts } = this.#context.counters;
    if (this.socket.writableNeedDrain) {
      timeouts['client-stall'] += 1;
      this.destroy();
    } else if (this.head.begun) {
      timeouts.head += 1;
      this.#close(ownAnswers['head-timeout']);
    } else {
      timeouts.idle += 1;
      this.#linger();
    }
  }

  #onExchangeDeadline(kind: TimeoutKind): void {
    this.#context.counters.timeouts[kind] += 1;
    this.#upstream?.abandon();
    this.#upstream = undefined;
    if (this.#responseStarted) this.cut('close');
    else if (kind === 'client-stall') this.#close(ownAnswers['client-stall']);
    else this.#closeForTimeout();
  }

  #closeForTimeout(): void {
    this.#context.counters.upstreamErrors.timeout += 1;
    this.#close(upstreamFailureAnswer('timeout'));
  }
}

const exchangeTimeouts = {
  'client-stall': 'clientStallMs',
  connect: 'connectMs',
  response: 'responseMs',
  'upstream-stall': 'upstreamStallMs',
} as const;
