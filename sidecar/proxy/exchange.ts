// Hot path. One allowed request on its way through: request body to the upstream, response back, or a tunnel.
// One object per client connection, reused. The upstream connection reads the response and reports here; the client
// connection reports what its socket does.
import type { Socket } from 'node:net';
import { MessageBody } from '../http1/message-body.ts';
import type { Framing } from '../http1/framing.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import type { ClientConnection } from './client-connection.ts';
import { forwardedRequestHead } from './forwarded-head.ts';
import type { HopFields } from './forwarded-head.ts';
import type { Verdict } from './gate.ts';
import { ownAnswers, upstreamFailureAnswer } from './own-answers.ts';
import type { ProxyContext } from './proxy-context.ts';
import type { UpstreamErrorKind } from './proxy-counters.ts';
import { maxJoinedBytes } from './proxy-options.ts';
import { ResponseTerms } from './response-terms.ts';
import type { UpstreamConnection } from './upstream-connection.ts';
import type { UpstreamPool } from './upstream-pool.ts';
import { timeoutOf, type Wait } from './waits.ts';

export class Exchange {
  /** The request's body. */
  readonly body: MessageBody;
  /** Reading from the client waits until the upstream has drained. */
  waitsForUpstream = false;
  readonly #client: ClientConnection;
  readonly #context: ProxyContext;
  readonly #pool: UpstreamPool;
  readonly #terms: ResponseTerms;
  #upstream: UpstreamConnection | undefined;
  /** The request's head as it was sent, until the response starts: a retry sends it again. */
  #forwarded = '';
  #bodySent = false;
  #retried = false;
  #responseStarted = false;
  #tunnels = false;

  constructor(client: ClientConnection, context: ProxyContext, pool: UpstreamPool) {
    this.#client = client;
    this.#context = context;
    this.#pool = pool;
    this.#terms = new ResponseTerms(context);
    this.body = new MessageBody(context.settings.limits);
  }

  /** Whether the whole request has been read. */
  get requestDone(): boolean {
    return this.body.done;
  }

  get method(): string {
    return this.#client.head.method;
  }

  get clientMinorVersion(): number {
    return this.#client.head.minorVersion;
  }

  get asksForUpgrade(): boolean {
    return this.#client.head.upgrade !== '';
  }

  /** Sends the client's request, with what is already there of its body. */
  start(verdict: Extract<Verdict, { kind: 'allowed' }>, hop: HopFields): void {
    this.#terms.copy(verdict);
    this.#bodySent = false;
    this.#retried = false;
    this.#responseStarted = false;
    this.#forwarded = forwardedRequestHead(this.#client.head, hop);
    const early = this.body.done ? undefined : this.#client.takeHeld();
    if (early !== undefined && this.body.take(early) === 'refused') {
      this.#client.refuse(this.body.refusal);
      return;
    }
    this.#send(this.#pool.take(), early);
  }

  #send(upstream: UpstreamConnection, early: Buffer | undefined): void {
    this.#upstream = upstream;
    upstream.begin(this);
    this.#arm();
    const flows =
      early === undefined
        ? upstream.socket.write(this.#forwarded, 'latin1')
        : this.#sendWithBody(upstream.socket, early);
    if (!flows) this.#pauseForUpstream();
  }

  #sendWithBody(socket: Socket, early: Buffer): boolean {
    const body = this.body;
    this.#bodySent = true;
    if (body.end < early.length) this.#client.hold(early.subarray(body.end));
    if (body.passesWhole && body.end <= maxJoinedBytes) {
      return socket.write(this.#forwarded + early.toString('latin1', 0, body.end), 'latin1');
    }
    socket.cork();
    socket.write(this.#forwarded, 'latin1');
    const flows = this.#pool.relay.write(socket, early, body);
    socket.uncork();
    return flows;
  }

  /** `bytes` may be overwritten once this returns. */
  onClientData(bytes: Buffer): void {
    if (this.#tunnels) {
      this.#arm();
      if (this.#upstream?.socket.write(this.#client.owned(bytes)) === false) {
        this.#pauseForUpstream();
      }
    } else if (this.body.done) {
      this.#client.hold(bytes);
    } else {
      this.#relayBody(bytes);
    }
  }

  #relayBody(bytes: Buffer): void {
    const body = this.body;
    if (body.take(bytes) === 'refused') {
      this.abandon();
      if (this.#responseStarted) this.#client.cut('length');
      else this.#client.refuse(body.refusal);
      return;
    }
    this.#bodySent = true;
    if (body.end < bytes.length) this.#client.hold(bytes.subarray(body.end));
    const socket = this.#upstream?.socket;
    if (socket !== undefined && !this.#pool.relay.write(socket, bytes, body))
      this.#pauseForUpstream();
    this.#arm();
  }

  #pauseForUpstream(): void {
    this.waitsForUpstream = true;
    this.#client.socket.pause();
  }

  onUpstreamConnect(): void {
    this.#arm();
  }

  onUpstreamDrain(): void {
    this.waitsForUpstream = false;
    this.#arm();
    this.#client.resume();
  }

  sendInterim(text: string): void {
    if (this.#client.head.minorVersion > 0) this.write(text); // RFC 9110 §15.2
    this.#arm();
  }

  /** Gives the response's head for the client; the caller writes it. */
  startResponse(head: ResponseHead, body: MessageBody): string {
    this.#responseStarted = true;
    this.#forwarded = '';
    const overtakes = body.done && !this.body.done; // what is left of the upload is not read
    const closes = this.#client.decideClose(overtakes || body.framing === 'close');
    this.#client.noteResponse(head.status);
    this.#terms.show(head);
    return this.#terms.headText(head, closes);
  }

  /** Writes to the client; false when the client must drain before more is read from the upstream. */
  write(data: string | Buffer): boolean {
    const flows = this.#client.write(data);
    this.#arm();
    return flows;
  }

  /** As `write`, for the taken part of a body. */
  writeBody(bytes: Buffer, body: MessageBody): boolean {
    this.#context.counters.bytesToClients += body.end;
    const flows = this.#pool.relay.write(this.#client.socket, bytes, body);
    this.#arm();
    return flows;
  }

  /** A head with a body too large to be joined to it. */
  writeHeadAndBody(text: string, bytes: Buffer, body: MessageBody): boolean {
    const { socket } = this.#client;
    socket.cork();
    this.write(text);
    const flows = this.writeBody(bytes, body);
    socket.uncork();
    return flows;
  }

  /** The response is complete. */
  finish(): void {
    this.#upstream = undefined;
    this.waitsForUpstream = false;
    this.#client.onResponseDone(this.body.done);
  }

  /** The upstream has gone before a response's head. */
  onUpstreamFailed(kind: UpstreamErrorKind, upstream: UpstreamConnection): void {
    this.#upstream = undefined;
    this.waitsForUpstream = false;
    if (this.#mayRetry(upstream)) {
      this.#retried = true;
      this.#context.counters.upstreamRetries += 1;
      this.#send(this.#pool.open(), undefined);
      this.#client.resume();
    } else {
      const answer = upstreamFailureAnswer(kind);
      this.#client.close(upstream.saidHttp2 ? ownAnswers['upstream-http2-alone'] : answer);
    }
  }

  // RFC 9112 §9.3.1: only on a connection that may have been closed before the request came, only for a method that
  // does no harm twice, and only while nothing of the body has left, because it is not kept.
  #mayRetry(upstream: UpstreamConnection): boolean {
    const stale = upstream.reused && !upstream.received;
    return stale && !this.#retried && !this.#bodySent && this.#client.head.isIdempotent;
  }

  /** The response broke off after its head: the client must notice. */
  cut(framing: Framing): void {
    this.#upstream = undefined;
    this.#client.cut(framing);
  }

  /** False when the client must drain before more is read from the upstream. */
  startTunnel(head: ResponseHead): boolean {
    this.#tunnels = true;
    this.#responseStarted = true;
    this.#forwarded = '';
    this.#client.noteResponse(head.status);
    this.#terms.show(head);
    this.#context.counters.tunnelsOpen += 1;
    const flows = this.write(this.#terms.headText(head, false) + head.text.slice(head.end));
    const early = this.#client.takeHeld();
    if (early !== undefined && this.#upstream?.socket.write(early) === false) {
      this.#pauseForUpstream();
    }
    this.#client.resume();
    return flows;
  }

  /** The upstream has sent its last byte; the client may go on. */
  endTunnel(): void {
    this.#client.socket.end();
  }

  closeTunnel(): void {
    this.#upstream = undefined;
    this.#client.socket.destroySoon();
  }

  onClientDrain(): void {
    this.#upstream?.resume();
    this.#arm();
  }

  /** The client has sent its last byte: a half-close in a tunnel, otherwise it has given up. */
  onClientEnd(): void {
    if (this.#tunnels) this.#upstream?.socket.end();
    else this.#client.destroy();
  }

  /** The client has gone: the upstream is freed. */
  onClientGone(): void {
    const upstream = this.#upstream;
    this.#upstream = undefined;
    if (!this.#tunnels) {
      if (upstream === undefined) return;
      this.#context.counters.clientAborts += 1;
      upstream.abandon();
      return;
    }
    this.#tunnels = false;
    this.#context.counters.tunnelsOpen -= 1;
    upstream?.abandonGently();
  }

  /** Drops the upstream connection. */
  abandon(): void {
    this.#upstream?.abandon();
    this.#upstream = undefined;
    this.waitsForUpstream = false;
  }

  onFault(error: unknown): void {
    this.#upstream = undefined;
    this.#client.onFault(error);
  }

  #arm(): void {
    this.#client.arm(timeoutOf(this.#context.settings.timeouts, this.#waitsFor()));
  }

  #waitsFor(): Wait {
    if (this.#tunnels) return 'tunnel';
    if (this.#upstream?.connecting === true) return 'connect';
    if (this.#responseStarted) {
      return this.#client.socket.writableNeedDrain ? 'client-stall' : 'upstream-stall';
    }
    return this.body.done || this.waitsForUpstream ? 'response' : 'client-stall';
  }

  /** Nothing has moved for as long as is allowed: ends the exchange in the way that still can be. */
  onDeadline(): void {
    const wait = this.#waitsFor();
    this.#context.counters.timeouts[wait] += 1;
    if (wait !== 'tunnel') this.abandon();
    if (wait === 'tunnel') this.#client.destroy();
    else if (this.#responseStarted) this.#client.cut('close');
    else if (wait === 'client-stall') this.#client.close(ownAnswers['client-stall']);
    else this.#closeForTimeout();
  }

  #closeForTimeout(): void {
    this.#context.counters.upstreamErrors.timeout += 1;
    this.#client.close(upstreamFailureAnswer('timeout'));
  }
}
