// Small apps on loopback that a probe may ask: over HTTP, with a certificate of nobody's, and with gRPC's health service.
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import {
  createServer as createHttp2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import { createServer as createTlsServer } from 'node:https';
import {
  createServer as createTcpServer,
  type AddressInfo,
  type Server as TcpServer,
} from 'node:net';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { makeCertificates } from './certificates.ts';

export interface ProbedApp extends AsyncDisposable {
  readonly port: number;
}

async function opened(server: TcpServer, host: string, end: () => void): Promise<ProbedApp> {
  server.listen({ host, port: 0 });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async [Symbol.asyncDispose]() {
      server.close();
      end();
      await once(server, 'close');
    },
  };
}

export function openHttpApp(onRequest: RequestListener, host = '127.0.0.1'): Promise<ProbedApp> {
  const server: Server = createServer(onRequest);
  return opened(server, host, () => {
    server.closeAllConnections();
  });
}

export async function openHttpsApp(onRequest: RequestListener): Promise<ProbedApp> {
  await using made = await makeCertificates();
  const [cert, key] = await Promise.all(
    ['server.crt', 'server.key'].map((name) => readFile(path.join(made.folder, name))),
  );
  const server = createTlsServer({ cert, key }, onRequest);
  return await opened(server, '127.0.0.1', () => {
    server.closeAllConnections();
  });
}

/** Takes connections and says nothing. */
export function openSilentApp(): Promise<ProbedApp> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => undefined);
    open.add(socket);
  });
  const open = new Set<{ destroy(): unknown }>();
  return opened(server, '127.0.0.1', () => {
    for (const socket of open) socket.destroy();
  });
}

export interface GrpcCall {
  readonly path: string;
  readonly authority: string;
  readonly message: Buffer;
}

/** `onCall` answers on the stream. */
export function openGrpcApp(
  onCall: (stream: ServerHttp2Stream, call: GrpcCall) => void,
): Promise<ProbedApp> {
  const server = createHttp2Server();
  const sessions = new Set<{ destroy(): void }>();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', () => undefined);
  });
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    const chunks: Buffer[] = [];
    stream.on('error', () => undefined);
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      const { ':path': called = '', ':authority': authority = '' } = headers;
      onCall(stream, { path: called, authority, message: Buffer.concat(chunks) });
    });
  });
  return opened(server, '127.0.0.1', () => {
    for (const session of sessions) session.destroy();
  });
}

/** Answers as grpc.health.v1.Health does: a status of the protocol, or a gRPC error. */
export function answerHealth(
  stream: ServerHttp2Stream,
  { serving, grpcStatus = 0 }: { readonly serving?: number; readonly grpcStatus?: number },
): void {
  const head = { ':status': 200, 'content-type': 'application/grpc' };
  if (serving === undefined) {
    stream.respond({ ...head, 'grpc-status': String(grpcStatus) }, { endStream: true });
    return;
  }
  stream.respond(head, { waitForTrailers: true });
  stream.once('wantTrailers', () => {
    stream.sendTrailers({ 'grpc-status': String(grpcStatus) });
  });
  stream.end(Uint8Array.of(0, 0, 0, 0, 2, 0x08, serving));
}
