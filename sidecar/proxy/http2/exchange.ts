// Hot path. One request of HTTP/2 on its way through: decided, forwarded as a stream of its own, answered.
// Data is credited to its sender when it has left on the other side: backpressure goes from end to end, stream by stream.
//
//   deciding ──allowed──▶ forwarded ──response──▶ responding ──both sides ended──▶ done
//       └───otherwise──▶ answered here ──────────────────────────────────────────▶ done
import {
  CANCEL,
  ENHANCE_YOUR_CALM,
  type ErrorCode,
  INTERNAL_ERROR,
  NO_ERROR,
  PROTOCOL_ERROR,
  REFUSED_STREAM,
} from '../../http2/error-code.ts';
import { GRPC_RESOURCE_EXHAUSTED } from '../../http2/grpc.ts';
import type { Field } from '../../http2/field.ts';
import type { FieldBlock } from '../../http2/hpack-decoder.ts';
import { type Http2Request, valueOf } from '../../http2/request.ts';
import { areTrailers, bodyDue, readResponse } from '../../http2/response.ts';
import type { Stream, StreamOwner } from '../../http2/stream.ts';
import type { Answer, PendingAdmission, Verdict, Waiter } from '../gate.ts';
import { ownAnswers, refusalAnswer } from '../own-answers.ts';
import type { ProxyContext } from '../proxy-context.ts';
import type { UpstreamErrorKind } from '../proxy-counters.ts';
import { maxInterimResponses, sweepIntervalMs } from '../proxy-options.ts';
import type { ResponseFields } from '../quota-fields.ts';
import { ResponseTerms } from '../response-terms.ts';
import { timeoutOf, type Wait } from '../waits.ts';
import { failureAnswer, grpcAnswerFields, sendAnswer, sendToGrpc } from './answer-fields.ts';
import { EarlyBody } from './early-body.ts';
import { FieldLines } from './forwarded-fields.ts';
import type { Http2Connection } from './http2-connection.ts';
import { requestWait, responseWait } from './stream-waits.ts';
import type { Http2UpstreamConnection } from './upstream-connection.ts';

type State = 'deciding' | 'forwarded' | 'responding' | 'done';

const lines = new FieldLines();
const NONE: readonly Field[] = [];

export class Http2Exchange implements StreamOwner, Waiter, ResponseFields {
  /** The gate's own; see `Waiter`. */
  pending: PendingAdmission | undefined = undefined;
  /** Sweep time at which `onDeadline` is due. */
  deadlineMs = 0;
  readonly #connection: Http2Connection;
  readonly #context: ProxyContext;
  readonly #stream: Stream;
  readonly #request: Http2Request;
  readonly #terms: ResponseTerms;
  readonly #isGrpc: boolean;
  readonly #isHead: boolean;
  #state: State = 'deciding';
  #upstream: Http2UpstreamConnection | undefined;
  #upstreamStream: Stream | undefined;
  /** What came of the body before it could be forwarded. */
  readonly #early: EarlyBody;
  #trailers: readonly Field[] | undefined;
  #responseFields: readonly Field[] = NONE;
  /** The client is to stop its upload, but what it is owed has to go first. */
  #resetsWhenSent = false;
  #bodySent = false;
  #retried = false;
  #interims = 0;
  #beganMs = 0;
  #sentAtMs = 0;
  /** `reads` of the application's connection when something last moved. */
  #readsBefore = 0;

  constructor(connection: Http2Connection, stream: Stream, request: Http2Request) {
    this.#connection = connection;
    this.#context = connection.context;
    this.#stream = stream;
    this.#request = request;
    this.#terms = new ResponseTerms(connection.context);
    this.#isGrpc = request.isGrpc;
    this.#isHead = request.method === 'HEAD';
    this.#early = new EarlyBody(connection.context.backlog);
    stream.owner = this;
    this.deadlineMs = Infinity;
  }

  /** Asks the gate. */
  begin(): void {
    const { accessLog, counters, gate, now } = this.#context;
    counters.requestsTotal += 1;
    if (accessLog !== undefined) this.#beganMs = now();
    try {
      gate.admit(this.#request, this);
    } catch (error) {
      this.#onFault(error);
    }
  }

  onVerdict(verdict: Verdict): void {
    if (this.#state !== 'deciding') return;
    try {
      this.#apply(verdict);
    } catch (error) {
      this.#onFault(error);
    }
    this.#connection.schedule();
  }

  #apply(verdict: Verdict): void {
    switch (verdict.kind) {
      case 'allowed':
        this.#terms.copy(verdict);
        this.#forward(this.#connection.upstreams.take());
        return;
      case 'denied':
        this.#answer(verdict.answer, GRPC_RESOURCE_EXHAUSTED);
        return;
      case 'unavailable':
      case 'bad-request':
        this.#answer(verdict.answer);
    }
  }

  /** Answers a request that is not served for what it is. */
  refuse(): void {
    const { refusal } = this.#request;
    if (refusal === undefined) return;
    this.#context.counters.headsRefused += 1;
    this.#context.counters.countRefusal(refusal);
    if (refusal === 'malformed') this.#end(PROTOCOL_ERROR);
    else this.#answer(refusalAnswer(refusal));
  }

  #forward(upstream: Http2UpstreamConnection): void {
    this.#state = 'forwarded';
    this.#upstream = upstream;
    this.#arm();
    // Until then nobody knows how many streams it takes, and what it refuses would have to be sent again.
    if (upstream.endpoint.peer.isTold) this.#onUpstreamTold(upstream);
    else {
      upstream.whenTold(() => {
        try {
          this.#onUpstreamTold(upstream);
        } catch (error) {
          this.#onFault(error);
        }
        this.#connection.schedule();
      });
    }
  }

  #onUpstreamTold(upstream: Http2UpstreamConnection): void {
    if (this.#state !== 'forwarded' || this.#upstream !== upstream) return;
    if (upstream.failure !== undefined) this.#failWith(upstream.failure);
    else if (!upstream.hasRoom) this.#forward(this.#connection.upstreams.take());
    // Only an application that says so takes a CONNECT that names a protocol (RFC 8441 §3).
    else if (this.#request.protocol === '' || upstream.endpoint.peer.takesConnectProtocol) {
      this.#send(upstream);
    } else this.#answer(ownAnswers['connect-protocol']);
  }

  #send(upstream: Http2UpstreamConnection): void {
    const endsNow = this.#stream.remoteEnded && this.#early.isEmpty;
    const fields = this.#connection.hop.request(this.#request);
    this.#sentAtMs = this.#context.now();
    const stream = upstream.request(fields, endsNow && this.#trailers === undefined, this);
    this.#upstreamStream = stream;
    const { sender } = upstream.endpoint;
    this.#bodySent ||= !this.#early.isEmpty;
    for (const bytes of this.#early.take()) sender.data(stream, bytes, false);
    if (this.#stream.remoteEnded) sender.end(stream, this.#trailers);
    this.#arm();
  }

  onFields(stream: Stream, block: FieldBlock, endsStream: boolean): void {
    try {
      if (stream === this.#stream) this.#onRequestTrailers(block);
      else if (stream === this.#upstreamStream) this.#onResponseFields(stream, block, endsStream);
      this.#arm();
    } catch (error) {
      this.#onFault(error);
    }
  }

  #onRequestTrailers(block: FieldBlock): void {
    if (!areTrailers(block)) {
      this.#context.counters.countRefusal('trailer-field');
      this.#end(PROTOCOL_ERROR);
      return;
    }
    this.#trailers = block.fields;
    if (this.#upstreamStream === undefined) return;
    this.#upstream?.endpoint.sender.end(this.#upstreamStream, this.#trailers);
    this.#upstream?.schedule();
  }

  #onResponseFields(stream: Stream, block: FieldBlock, endsStream: boolean): void {
    if (this.#state === 'responding') {
      this.#onResponseTrailers(block);
      return;
    }
    const facts = readResponse(block);
    const isInterim = facts !== undefined && facts.status < 200;
    if (facts === undefined || (isInterim && !this.#mayPassInterim(facts.status, endsStream))) {
      this.#failWith('bad-response');
      return;
    }
    if (isInterim) {
      this.#connection.endpoint.sender.fields(this.#stream, block.fields, false);
      this.#connection.schedule();
      return;
    }
    stream.bytesDue = bodyDue(facts, this.#isHead);
    // A body that was announced is not over with the fields (RFC 9113 §8.1.1).
    if (endsStream && stream.bytesDue > 0) {
      this.#failWith('bad-response');
      return;
    }
    stream.hasFields = true;
    this.#respond(facts.status, block.fields, endsStream);
  }

  /** A field of the response, by lower-case name. */
  header(name: string): string | undefined {
    return valueOf(this.#responseFields, name);
  }

  #mayPassInterim(status: number, endsStream: boolean): boolean {
    this.#interims += 1;
    return status !== 101 && !endsStream && this.#interims <= maxInterimResponses;
  }

  #respond(status: number, sent: readonly Field[], endsStream: boolean): void {
    this.#state = 'responding';
    const { counters, now } = this.#context;
    counters.upstreamSeconds.observe((now() - this.#sentAtMs) / 1000);
    if (this.#request.protocol !== '') counters.tunnelsOpen += 1;
    this.#noteResponse(status);
    this.#responseFields = sent;
    const choice = this.#terms.choose(this);
    this.#terms.show(this);
    this.#responseFields = NONE;
    const fields = this.#connection.hop.response(sent, {
      status,
      fields: lines.read(this.#terms.fieldsFor(choice)),
      replacesQuota: choice === 'ours',
      date: this.#connection.date,
    });
    this.#connection.endpoint.sender.fields(this.#stream, fields, endsStream);
    this.#connection.schedule();
  }

  #onResponseTrailers(block: FieldBlock): void {
    if (!areTrailers(block)) {
      this.#failWith('bad-response');
      return;
    }
    this.#connection.endpoint.sender.end(this.#stream, block.fields);
    this.#connection.schedule();
  }

  onData(stream: Stream, bytes: Buffer, endsStream: boolean): void {
    try {
      if (stream === this.#stream) this.#onRequestData(bytes, endsStream);
      else if (stream === this.#upstreamStream) this.#onResponseData(bytes, endsStream);
      this.#arm();
    } catch (error) {
      this.#onFault(error);
    }
  }

  #onResponseData(bytes: Buffer, endsStream: boolean): void {
    this.#connection.endpoint.sender.data(this.#stream, bytes, endsStream);
    if (this.#stream.queuedBytes > 0 && this.#connection.endpoint.sender.isOverfull) this.#shed();
    this.#connection.schedule();
  }

  /** More waits than there is room for: somebody has to give way. */
  #shed(): void {
    this.#context.counters.streamsShed += 1;
    this.#end(ENHANCE_YOUR_CALM);
  }

  #onRequestData(bytes: Buffer, endsStream: boolean): void {
    const stream = this.#upstreamStream;
    if (this.#upstream === undefined || stream === undefined) {
      // What comes behind an answer of our own is not wanted, but must not fill the connection's window.
      if (this.#state === 'done') this.#connection.endpoint.credit(this.#stream, bytes.length);
      else this.#early.add(bytes);
      if (!this.#early.isEmpty && this.#connection.endpoint.sender.isOverfull) this.#shed();
      return;
    }
    this.#bodySent ||= bytes.length > 0;
    this.#upstream.endpoint.sender.data(stream, bytes, endsStream);
    this.#upstream.schedule();
  }

  onSent(stream: Stream, bytes: number): void {
    if (stream === this.#stream) {
      if (this.#resetsWhenSent) this.#resetWhenSent();
      if (this.#upstream === undefined || this.#upstreamStream === undefined) return;
      this.#upstream.endpoint.credit(this.#upstreamStream, bytes);
      this.#upstream.schedule();
    } else {
      this.#connection.endpoint.credit(this.#stream, bytes);
      this.#connection.schedule();
    }
    this.#arm();
  }

  onReset(stream: Stream, code: ErrorCode): void {
    try {
      if (stream === this.#stream) this.#onClientReset(code);
      else if (stream === this.#upstreamStream) this.#onUpstreamReset(code);
    } catch (error) {
      this.#onFault(error);
    }
  }

  #onClientReset(code: ErrorCode): void {
    const { counters, gate } = this.#context;
    if (this.#state === 'done') return;
    counters.clientAborts += 1;
    if (this.#state === 'deciding') gate.cancel(this);
    this.#finishTunnel();
    this.#dropUpstream(code === NO_ERROR ? CANCEL : code);
    this.#state = 'done';
  }

  /** The application, or the connection to it, has ended the stream. */
  #onUpstreamReset(code: ErrorCode): void {
    this.#upstreamStream = undefined;
    if (this.#state === 'responding') this.#onBrokenResponse(code);
    else if (this.#state === 'forwarded') this.#onLostRequest(code);
  }

  #onBrokenResponse(code: ErrorCode): void {
    const failure = this.#upstream?.failure;
    // After a whole response it only says that the rest of the request is not wanted.
    if (code === NO_ERROR && this.#stream.localEnding) {
      this.#resetWhenSent();
      return;
    }
    this.#context.counters.upstreamErrors[failure ?? 'reset'] += 1;
    this.#end(failure === undefined ? code : INTERNAL_ERROR);
  }

  #onLostRequest(code: ErrorCode): void {
    const failure = this.#upstream?.failure;
    if (this.#mayRetry(code, this.#upstream)) {
      this.#retried = true;
      this.#context.counters.upstreamRetries += 1;
      this.#forward(this.#connection.upstreams.take());
    } else if (failure === undefined) {
      this.#context.counters.upstreamErrors.reset += 1;
      this.#end(code);
    } else this.#failWith(failure);
  }

  // What the application has refused (RFC 9113 §8.7) it has not looked at; on a connection that died it may have. Only
  // while nothing of the body has left, because it is not kept.
  #mayRetry(code: ErrorCode, upstream: Http2UpstreamConnection | undefined): boolean {
    if (this.#retried || this.#bodySent) return false;
    if (code === REFUSED_STREAM) return true;
    const isStale = upstream?.failure !== undefined && upstream.reused;
    return isStale && this.#request.isIdempotent;
  }

  #failWith(kind: UpstreamErrorKind): void {
    const answer = failureAnswer(kind, this.#upstream);
    this.#context.counters.upstreamErrors[kind] += 1;
    this.#dropUpstream(kind === 'bad-response' ? PROTOCOL_ERROR : CANCEL);
    if (this.#state === 'responding') this.#end(INTERNAL_ERROR);
    else this.#answer(answer);
  }

  /** Answers in the proxy's own name. The rest of the request is not wanted. */
  #answer(answer: Answer, grpcStatus?: number): void {
    this.#finishTunnel();
    this.#dropUpstream(CANCEL);
    this.#state = 'done';
    this.#early.take();
    const { date, endpoint } = this.#connection;
    const status = this.#isGrpc
      ? sendToGrpc(endpoint.sender, this.#stream, grpcAnswerFields(answer, date, grpcStatus))
      : sendAnswer(endpoint.sender, this.#stream, answer, { date, isHead: this.#isHead });
    this.#noteResponse(status);
    this.#resetWhenSent();
    this.#connection.schedule();
  }

  /** Behind the last byte of the response: the client need not send the rest (RFC 9113 §8.1). */
  #resetWhenSent(): void {
    const stream = this.#stream;
    if (stream.isOver) return;
    this.#resetsWhenSent = !stream.localEnded;
    if (stream.localEnded) this.#connection.endpoint.reset(stream, NO_ERROR);
    else this.deadlineMs = this.#deadlineIn('client-stall');
  }

  #noteResponse(status: number): void {
    const { accessLog, counters, now } = this.#context;
    counters.countResponse(status);
    accessLog?.record(this.#request, status, now() - this.#beganMs);
  }

  #dropUpstream(code: ErrorCode): void {
    const stream = this.#upstreamStream;
    this.#upstreamStream = undefined;
    if (this.#upstream === undefined || stream === undefined) return;
    this.#upstream.endpoint.reset(stream, code);
    this.#upstream.schedule();
    this.#upstream = undefined;
  }

  /** Breaks both sides off. */
  #end(code: ErrorCode): void {
    if (this.#state === 'deciding') this.#context.gate.cancel(this);
    this.#finishTunnel();
    this.#state = 'done';
    this.#dropUpstream(CANCEL);
    // NO_ERROR in the middle of a message would make it look whole.
    this.#connection.endpoint.reset(this.#stream, code === NO_ERROR ? INTERNAL_ERROR : code);
    this.#connection.schedule();
  }

  #finishTunnel(): void {
    if (this.#request.protocol === '' || this.#state !== 'responding') return;
    this.#context.counters.tunnelsOpen -= 1;
  }

  /** The stream is over on both sides. */
  onOver(): void {
    this.#finishTunnel();
    this.#early.take();
    if (this.#state === 'responding') this.#state = 'done';
  }

  // Whatever goes wrong with one request stays with it: others share both connections.
  #onFault(error: unknown): void {
    this.#context.counters.faults += 1;
    this.#context.onFault(error);
    this.#end(INTERNAL_ERROR);
  }

  #arm(): void {
    if (this.#state === 'deciding' || this.#state === 'done') return;
    this.deadlineMs = this.#deadlineIn(this.#waitsFor());
    this.#readsBefore = this.#upstream?.reads ?? 0;
  }

  #deadlineIn(wait: Wait): number {
    const { settings, sweptMs } = this.#context;
    return sweptMs + sweepIntervalMs + timeoutOf(settings.timeouts, wait);
  }

  #waitsFor(): Wait {
    if (this.#upstream?.endpoint.peer.isTold === false) return 'connect';
    // A call of gRPC, as a tunnel, may be silent for as long as both sides like: it has deadlines of its own.
    if (this.#isGrpc || this.#request.protocol !== '') return 'tunnel';
    return this.#state === 'responding'
      ? responseWait(this.#stream)
      : requestWait(this.#stream, this.#upstreamStream);
  }

  /** Nothing has moved for as long as is allowed. */
  onDeadline(): void {
    const wait = this.#state === 'done' ? 'client-stall' : this.#waitsFor();
    this.deadlineMs = Infinity;
    this.#context.counters.timeouts[wait] += 1;
    if (wait !== 'client-stall') this.#upstream?.onVainWait(this.#readsBefore);
    if (this.#state !== 'forwarded' || wait === 'tunnel') this.#end(CANCEL);
    else if (wait === 'client-stall') this.#answer(ownAnswers['client-stall']);
    else this.#failWith('timeout');
  }
}
