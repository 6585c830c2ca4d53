// Hot path. One connection to the application: carries one exchange at a time and reads the response direction.
// It tells its client exactly one end: the response is complete, it failed before a head, or it was cut.
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { KEEP_ALIVE, TRANSFER_ENCODING } from '../http1/field-kind.ts';
import { MessageBody } from '../http1/message-body.ts';
import { ResponseHead } from '../http1/response-head.ts';
import { SETTINGS } from '../http2/frame.ts';
import type { Exchange } from './exchange.ts';
import { forwardedInterimHead, mayNotSpeakOfBody } from './forwarded-head.ts';
import type { ProxyContext } from './proxy-context.ts';
import type { UpstreamErrorKind } from './proxy-counters.ts';
import { maxInterimResponses, maxJoinedBytes } from './proxy-options.ts';
import { contain, listenTo } from './socket-events.ts';
import type { SocketEvents } from './socket-events.ts';
import { upstreamAddress } from './upstream-address.ts';
import type { UpstreamPool } from './upstream-pool.ts';

type State = 'idle' | 'head' | 'body' | 'tunnel' | 'gone';

export class UpstreamConnection implements SocketEvents {
  readonly socket: Socket;
  readonly head: ResponseHead;
  /** True until the TCP connection stands. */
  connecting = true;
  /** Whether it served an exchange before: then its death may be old news (a stale connection). */
  reused = false;
  /** Whether any byte of the response has come. */
  received = false;
  /** Sweep time from which it is too old to be reused. */
  idleUntilMs = 0;
  readonly #context: ProxyContext;
  readonly #pool: UpstreamPool;
  readonly #body: MessageBody;
  #exchange: Exchange | undefined;
  #state: State = 'idle';
  #interims = 0;
  /** A head announced a body that has no place: whether one follows is uncertain. */
  #doubtful = false;
  #sentAtMs = 0;

  constructor(context: ProxyContext, pool: UpstreamPool) {
    this.#context = context;
    this.#pool = pool;
    this.head = new ResponseHead(context.settings.limits);
    this.#body = new MessageBody(context.settings.limits);
    // One buffer for the reads of all upstream connections: 2 µs a request less than a new one for each read.
    const onread = { buffer: pool.readBuffer, callback: (length: number) => this.#onRead(length) };
    this.socket = connect({
      ...upstreamAddress(context.settings.upstream),
      ...{ noDelay: true, allowHalfOpen: true, onread },
    });
    contain(this.socket, this, 'connect', () => {
      this.connecting = false;
      this.#exchange?.onUpstreamConnect();
    });
    listenTo(this.socket, this);
  }

  /** Takes on an exchange. The caller writes the request next. */
  begin(exchange: Exchange): void {
    this.#exchange = exchange;
    this.#state = 'head';
    this.#interims = 0;
    this.#doubtful = false;
    this.received = false;
    this.#sentAtMs = this.#context.now();
  }

  /** Drops the connection without telling the client: the client is the one who gave up. */
  abandon(): void {
    this.#state = 'gone';
    this.#exchange = undefined;
    this.#pool.forget(this);
    this.socket.destroy();
  }

  /** Lets what was written reach the application, then closes. */
  abandonGently(): void {
    this.#state = 'gone';
    this.#exchange = undefined;
    this.socket.destroySoon();
  }

  /** Whether a request may be written now. */
  get usable(): boolean {
    return this.#state === 'idle' && this.socket.writable && !this.socket.readableEnded;
  }

  resume(): void {
    if (this.socket.isPaused()) this.socket.resume();
  }

  onFault(error: unknown): void {
    const exchange = this.#exchange;
    this.abandon();
    if (exchange !== undefined) {
      exchange.onFault(error);
      return;
    }
    this.#context.counters.faults += 1;
    this.#context.onFault(error);
  }

  /** Whether it began with SETTINGS, as servers of HTTP/2 do, instead of a response. */
  get saidHttp2(): boolean {
    const { text } = this.head;
    return text.startsWith('\0\0') && text.charCodeAt(3) === SETTINGS;
  }

  // The buffer is overwritten by the next read: what a tunnel keeps must be copied; a body is when it is written.
  #onRead(length: number): boolean {
    const bytes = this.#pool.readBuffer.subarray(0, length);
    try {
      this.onData(this.#state === 'tunnel' ? Buffer.from(bytes) : bytes);
    } catch (error) {
      this.onFault(error);
    }
    return true;
  }

  onData(bytes: Buffer): void {
    switch (this.#state) {
      case 'head':
        this.received = true;
        this.#readHead(bytes);
        return;
      case 'body':
        this.#relayBody(bytes);
        return;
      case 'tunnel':
        if (this.#exchange?.write(bytes) === false) this.socket.pause();
        return;
      case 'idle':
        // Bytes nobody asked for: they could be taken for the answer to the next request.
        this.abandon();
        return;
      case 'gone':
        return;
    }
  }

  #readHead(bytes: Buffer): void {
    const head = this.head;
    let rest = bytes;
    for (;;) {
      const outcome = head.feed(rest.toString('latin1'));
      if (outcome === 'more') return;
      if (outcome === 'refused') {
        this.#fail('bad-response');
        return;
      }
      if (mayNotSpeakOfBody(head) && announcesBody(head)) this.#doubtful = true;
      const following = head.text.length - head.end;
      rest = following === 0 ? noBytes : rest.subarray(rest.length - following);
      if (!head.isInterim) break;
      if (!this.#passInterim()) return;
      if (following === 0) return;
    }
    this.#onHead(rest);
  }

  #passInterim(): boolean {
    this.#interims += 1;
    if (this.#interims > maxInterimResponses) {
      this.#fail('bad-response');
      return false;
    }
    this.#exchange?.sendInterim(forwardedInterimHead(this.head));
    this.head.reset();
    return true;
  }

  #onHead(rest: Buffer): void {
    const exchange = this.#exchange;
    if (exchange === undefined) return;
    const head = this.head;
    if (head.status === 101) {
      this.#switchProtocols(exchange);
      return;
    }
    const body = this.#body;
    body.begin(head.framingFor(exchange.method), head.contentLength);
    // An HTTP/1.0 client cannot read chunks (RFC 9112 §6.1).
    const unreadable = body.framing === 'chunked' && exchange.clientMinorVersion === 0;
    if (unreadable || body.take(rest) === 'refused') {
      this.#fail('bad-response');
      return;
    }
    this.#context.counters.upstreamSeconds.observe((this.#context.now() - this.#sentAtMs) / 1000);
    this.#state = 'body';
    const text = exchange.startResponse(head, body);
    if (!this.#writeFirst(exchange, text, rest)) this.socket.pause();
    if (body.done) this.#finish(body.end === rest.length);
  }

  #writeFirst(exchange: Exchange, text: string, rest: Buffer): boolean {
    const { end, passesWhole } = this.#body;
    if (end === 0) return exchange.write(text);
    if (passesWhole && end <= maxJoinedBytes) {
      return exchange.write(text + this.head.text.slice(this.head.end, this.head.end + end));
    }
    return exchange.writeHeadAndBody(text, rest, this.#body);
  }

  #relayBody(bytes: Buffer): void {
    const body = this.#body;
    if (body.take(bytes) === 'refused') {
      this.#fail('bad-response');
      return;
    }
    if (this.#exchange?.writeBody(bytes, body) === false) this.socket.pause();
    if (body.done) this.#finish(body.end === bytes.length);
  }

  /** The response is complete; `nothingFollows` says that no byte came after it. */
  #finish(nothingFollows: boolean): void {
    const exchange = this.#exchange;
    const idleMs = this.#idleMs();
    this.#exchange = undefined;
    this.#state = 'idle';
    if (nothingFollows && idleMs > 0 && this.#requestHasLeft(exchange)) {
      this.head.reset();
      this.#pool.give(this, idleMs);
    } else {
      this.abandon();
    }
    exchange?.finish();
  }

  // A response can overtake its request; what is left of that would be read as the next one.
  #requestHasLeft(exchange: Exchange | undefined): boolean {
    return exchange?.requestDone === true && this.socket.writableLength === 0;
  }

  /** How long the connection may be kept for reuse; 0 when not at all. */
  #idleMs(): number {
    const head = this.head;
    if (head.wantsClose || this.#doubtful || this.#body.framing === 'close') return 0;
    const configured = this.#context.settings.timeouts.upstreamIdleMs;
    if (!head.has(KEEP_ALIVE)) return configured;
    const hint = /timeout=(\d{1,6})/i.exec(head.value(head.lineOf(KEEP_ALIVE, 0)))?.[1];
    return hint === undefined ? configured : Math.min(configured, (Number(hint) - 1) * 1000);
  }

  #switchProtocols(exchange: Exchange): void {
    if (!exchange.asksForUpgrade) {
      this.#fail('bad-response');
      return;
    }
    this.#state = 'tunnel';
    if (!exchange.startTunnel(this.head)) this.socket.pause();
  }

  onDrain(): void {
    this.#exchange?.onUpstreamDrain();
  }

  onGone(reason: 'reset' | 'closed'): void {
    this.#fail(this.connecting ? 'connect' : reason);
  }

  onEnd(): void {
    if (this.#state === 'tunnel') this.#exchange?.endTunnel();
    else if (this.#state === 'body' && this.#body.framing === 'close') this.#finish(true);
    else this.#fail('closed');
  }

  #fail(kind: UpstreamErrorKind): void {
    const state = this.#state;
    const exchange = this.#exchange;
    if (state === 'gone') return;
    this.abandon();
    if (exchange === undefined) return;
    if (state === 'tunnel') {
      exchange.closeTunnel();
      return;
    }
    this.#context.counters.upstreamErrors[kind] += 1;
    if (state === 'head') exchange.onUpstreamFailed(kind, this);
    else exchange.cut(this.#body.framing);
  }
}

// HEAD and 304 speak of the body that GET would have, so a length there is usual; in a 1xx or a 204 it is a mistake.
function announcesBody(head: ResponseHead): boolean {
  return head.has(TRANSFER_ENCODING) || head.contentLength > 0;
}

const noBytes = Buffer.alloc(0);
