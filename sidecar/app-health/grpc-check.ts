// The kubelet's grpc probe, done for it: grpc.health.v1.Health/Check over HTTP/2 without TLS.
import { connect, type ClientHttp2Session, type IncomingHttpHeaders } from 'node:http2';
import type { AppCheck } from '../../contract/app-probe.ts';
import { SUCCEEDED, failed, outcomeOf, type CheckOutcome } from './check-outcome.ts';
import { decodeHealthResponse, encodeHealthRequest } from './health-message.ts';
import type { Asker } from './http-check.ts';
import { connectLoopback } from './loopback-connection.ts';

type GrpcCheck = Extract<AppCheck, { kind: 'grpc' }>;

/** A health answer takes seven bytes. */
const ANSWER_BYTES_MAX = 4_096;

/** Never rejects. */
export async function checkGrpc(
  check: GrpcCheck,
  asker: Asker,
  signal: AbortSignal,
): Promise<CheckOutcome> {
  try {
    const socket = await connectLoopback(check.port, signal);
    const session = connect('http://127.0.0.1', { createConnection: () => socket });
    try {
      return judge(await call(session, { check, asker, signal }));
    } finally {
      session.destroy();
      socket.destroy();
    }
  } catch (error) {
    return outcomeOf(error, signal);
  }
}

interface Answer {
  readonly httpStatus: number | undefined;
  readonly grpcStatus: string | undefined;
  readonly grpcMessage: string | undefined;
  readonly message: Uint8Array;
}

function judge({ httpStatus, grpcStatus, grpcMessage, message }: Answer): CheckOutcome {
  if (httpStatus !== 200) return failed(`${httpAnswer(httpStatus)} to a gRPC call`);
  if (grpcStatus !== '0') {
    const unimplemented = grpcStatus === '12' ? ', the app has no grpc.health.v1.Health' : '';
    return failed(`gRPC status ${grpcStatus ?? 'missing'} ${grpcMessage ?? ''}${unimplemented}`);
  }
  const status = decodeHealthResponse(message);
  if (status === undefined) return failed('an answer that is no HealthCheckResponse');
  return status === 'SERVING' ? SUCCEEDED : failed(status);
}

function httpAnswer(status: number | undefined): string {
  return status === undefined ? 'no answer' : `HTTP ${status}`;
}

interface Call {
  readonly check: GrpcCheck;
  readonly asker: Asker;
  readonly signal: AbortSignal;
}

function call(session: ClientHttp2Session, { check, asker, signal }: Call): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  session.on('error', reject);
  const host = asker.podAddress.includes(':') ? `[${asker.podAddress}]` : asker.podAddress;
  const fields = {
    ':method': 'POST',
    ':path': '/grpc.health.v1.Health/Check',
    ':authority': `${host}:${check.port}`,
    'content-type': 'application/grpc',
    'user-agent': asker.userAgent,
    te: 'trailers',
  };
  const stream = session.request(fields, { signal });
  let head: IncomingHttpHeaders = {};
  let trailers: IncomingHttpHeaders = {};
  const chunks: Buffer[] = [];
  let bytes = 0;
  stream.on('response', (given) => (head = given));
  stream.on('trailers', (given) => (trailers = given));
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= ANSWER_BYTES_MAX) chunks.push(chunk);
    else stream.destroy(new Error(`an answer of more than ${ANSWER_BYTES_MAX} bytes`));
  });
  stream.on('error', reject);
  stream.on('close', () => {
    resolve(answerOf(head, trailers, Buffer.concat(chunks)));
  });
  stream.end(encodeHealthRequest(check.service));
  return promise;
}

/** An answer without a message has its status in the head. */
function answerOf(
  head: IncomingHttpHeaders,
  trailers: IncomingHttpHeaders,
  message: Uint8Array,
): Answer {
  const status: unknown = head[':status'];
  const last = 'grpc-status' in trailers ? trailers : head;
  return {
    httpStatus: typeof status === 'number' ? status : undefined,
    grpcStatus: textOf(last['grpc-status']),
    grpcMessage: textOf(last['grpc-message']),
    message,
  };
}

function textOf(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value.slice(0, 200) : undefined;
}
