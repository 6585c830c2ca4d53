// The proxy's own answers as HTTP/2 says them: a head and a body, or, to a call of gRPC, trailers alone.
import { Field } from '../../http2/field.ts';
import { encodeGrpcMessage, GRPC_RESOURCE_EXHAUSTED, grpcStatusOf } from '../../http2/grpc.ts';
import type { Sender } from '../../http2/sender.ts';
import type { Stream } from '../../http2/stream.ts';
import type { Answer } from '../gate.ts';
import { ownAnswers, upstreamFailureAnswer } from '../own-answers.ts';
import type { UpstreamErrorKind } from '../proxy-counters.ts';
import { FieldLines } from './forwarded-fields.ts';
import type { Http2UpstreamConnection } from './upstream-connection.ts';

const lines = new FieldLines();

/** Sends `answer` whole, or as far as the client's window reaches; its status. */
export function sendAnswer(
  sender: Sender,
  stream: Stream,
  answer: Answer,
  { date, isHead }: { readonly date: Field; readonly isHead: boolean },
): number {
  const { body, fields, status } = answer;
  const head = [
    new Field(':status', String(status), 'indexed'),
    ...lines.read(fields),
    date,
    new Field('content-length', String(body.length), 'plain'),
  ];
  // A response to HEAD has no body but says its length (RFC 9110 §9.3.2).
  const hasBody = !isHead && body !== '';
  sender.fields(stream, head, !hasBody);
  if (hasBody) sender.data(stream, Buffer.from(body, 'latin1'), true);
  return status;
}

/** Sends trailers alone; their HTTP status. */
export function sendToGrpc(sender: Sender, stream: Stream, fields: readonly Field[]): number {
  sender.fields(stream, fields, true);
  return 200;
}

/**
 * The same to a call of gRPC, whole. `grpcStatus` where the call was over a limit, whatever HTTP status the policy gives.
 * Retry-After is there for whoever reads metadata; `grpc-retry-pushback-ms` is what clients with a retry policy go by.
 */
export function grpcAnswerFields(
  answer: Answer,
  date: Field,
  grpcStatus: number = grpcStatusOf(answer.status),
): readonly Field[] {
  const own = lines.read(answer.fields).filter(({ name }) => !OF_A_BODY.has(name));
  const retryAfter = own.find(({ name }) => name === 'retry-after')?.value;
  return [
    OK,
    GRPC,
    new Field('grpc-status', String(grpcStatus), 'plain'),
    new Field('grpc-message', encodeGrpcMessage(answer.detail), 'plain'),
    ...pushback(grpcStatus, retryAfter),
    ...own,
    date,
  ];
}

/** Fields that speak of a body in another format. */
const OF_A_BODY: ReadonlySet<string> = new Set(['content-type', 'cache-control']);

const OK = new Field(':status', '200', 'indexed');
const GRPC = new Field('content-type', 'application/grpc', 'indexed');

/** What no wait cures must not be tried again at all: that is what a negative number says. */
function pushback(grpcStatus: number, retryAfter: string | undefined): readonly Field[] {
  if (retryAfter === undefined && grpcStatus !== GRPC_RESOURCE_EXHAUSTED) return [];
  const ms = retryAfter === undefined ? -1 : Number(retryAfter) * 1_000;
  return [new Field('grpc-retry-pushback-ms', String(ms), 'plain')];
}

/** The answer to a request that failed on that connection. */
export function failureAnswer(
  kind: UpstreamErrorKind,
  upstream: Http2UpstreamConnection | undefined,
): Answer {
  if (upstream?.takesNothing === true) return ownAnswers['upstream-takes-nothing'];
  if (upstream?.endpoint.peer.isTold === true) return upstreamFailureAnswer(kind);
  switch (kind) {
    case 'connect':
    case 'timeout':
      return upstreamFailureAnswer(kind);
    case 'bad-response':
      return ownAnswers['upstream-not-http2'];
    // It may be starting or ending: that it cannot speak HTTP/2 is not said.
    case 'closed':
    case 'reset':
      return ownAnswers['upstream-closed-unheard'];
  }
}
