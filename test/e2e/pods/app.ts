// An application as users run them, inside a pod: HTTP on each address of LISTEN (`0.0.0.0:8080,127.0.0.1:9090`), and
// gRPC's health service on each of LISTEN_GRPC, HTTPS with /tls on each of LISTEN_TLS. On SIGTERM it
// closes, which cuts kept connections that are idle at this moment; with EXIT=announced it ends them by an answer first.
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import { createServer as createTlsServer } from 'node:https';
import { hostname } from 'node:os';
import process from 'node:process';

const {
  LISTEN = '0.0.0.0:8080',
  LISTEN_GRPC = '',
  LISTEN_TLS = '',
  EXIT,
  JOB_SECONDS,
} = process.env;
/** In which each kept connection of a busy client has a request. */
const ANNOUNCE_MS = 2_000;
let isEnding = false;
const counts = new Map<string, number>();

const answer: RequestListener = (request, response) => {
  const { url = '/', headers } = request;
  const path = url.split('?', 1)[0] ?? url;
  const isProbe = (headers['user-agent'] ?? '').startsWith('kube-probe');
  const key = isProbe ? `probe ${path}` : path;
  counts.set(key, (counts.get(key) ?? 0) + 1);
  if (isEnding) response.setHeader('connection', 'close');
  if (path === '/counts') response.end(JSON.stringify(Object.fromEntries(counts)));
  else response.end(`${hostname()}\n`);
};

function openTls(): ReturnType<typeof createTlsServer> {
  const [cert, key] = ['/tls/tls.crt', '/tls/tls.key'].map((file) => readFileSync(file));
  return createTlsServer({ cert, key }, answer);
}

/** grpc.health.v1.Health/Check: SERVING, whatever is asked. */
function openGrpc(): ReturnType<typeof createHttp2Server> {
  const server = createHttp2Server();
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    const key = `grpc ${String(headers[':path'])}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    stream.on('error', () => undefined);
    stream.respond({ 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => {
      stream.sendTrailers({ 'grpc-status': '0' });
    });
    stream.resume();
    stream.end(Buffer.from([0, 0, 0, 0, 2, 8, 1]));
  });
  return server;
}

const servers = [
  ...addresses(LISTEN).map((address) => createServer(answer).listen(address)),
  ...addresses(LISTEN_TLS).map((address) => openTls().listen(address)),
  ...addresses(LISTEN_GRPC).map((address) => openGrpc().listen(address)),
];

function addresses(list: string): readonly { readonly host: string; readonly port: number }[] {
  return list
    .split(',')
    .filter((one) => one !== '')
    .map((one) => {
      const colon = one.lastIndexOf(':');
      const host = one.slice(0, colon).replace(/^\[|\]$/g, '');
      return { host, port: Number(one.slice(colon + 1)) };
    });
}

process.once('SIGTERM', () => {
  isEnding = EXIT === 'announced';
  setTimeout(
    () => {
      for (const server of servers) server.close();
    },
    isEnding ? ANNOUNCE_MS : 0,
  );
});
// A Job's work: it serves for a while and is done.
if (JOB_SECONDS !== undefined) setTimeout(() => process.exit(0), Number(JOB_SECONDS) * 1_000);
