// The admin listener: health (the sidecar's, and the app's for the kubelet), readiness and metrics for whoever reaches it;
// configuration and drain for loopback only.
// It is apart from the data path and slow traffic, so Node's own HTTP server serves it.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { APP_HEALTH_PATH } from '../../contract/app-probe.ts';
import { WeirError } from '../../contract/errors.ts';
import type { HostPort } from '../../contract/setting.ts';
import type { Asker } from '../app-health/http-check.ts';
import { isLoopbackAddress, isLoopbackHost } from './loopback.ts';
import { OpenConnections } from './open-connections.ts';

export interface AdminSubject {
  /** Undefined when ready; else the reason in words, e.g. `draining`. */
  readonly whyNotReady: () => string | undefined;
  readonly metrics: () => Promise<string>;
  /** The effective configuration and the compiled policies, secrets redacted. */
  readonly describe: () => unknown; // or a promise of it
  readonly startDraining: () => void;
  /** Asks the app in the kubelet's place; paths below `/app-health/`. */
  readonly appHealth: (path: string, asker: Asker) => Promise<Reply>;
}

export interface Admin extends AsyncDisposable {
  readonly address: HostPort;
}

interface Reply {
  readonly status: number;
  readonly body: string;
  readonly contentType?: string;
}

type Route = (subject: AdminSubject) => Reply | Promise<Reply>;

interface AdminRoute {
  /** Over loopback only. */
  readonly local: boolean;
  readonly answer: Route;
}

const ROUTES: Readonly<Record<string, AdminRoute>> = {
  'GET /healthz': { local: false, answer: () => ({ status: 200, body: 'ok\n' }) },
  'GET /readyz': { local: false, answer: readiness },
  'GET /metrics': {
    local: false,
    answer: async (subject) => ({
      status: 200,
      body: await subject.metrics(),
      contentType: 'text/plain; version=0.0.4; charset=utf-8',
    }),
  },
  'GET /config': {
    local: true,
    answer: async (subject) => json(200, await subject.describe()),
  },
  'POST /drain': {
    local: true,
    answer: (subject) => {
      subject.startDraining();
      return { status: 200, body: 'draining\n' };
    },
  },
};

// An admin request is one line from a probe, a scraper or a hook, and comes at once: who is silent has nothing to ask.
const HEAD_TIMEOUT_MS = 1_000;
const REQUEST_TIMEOUT_MS = 2_000;
const LOOKS_EVERY_MS = 1_000;
const MOST_HEADER_BYTES = 8_192;

/** Listens; port 0 picks a free one. Throws LISTEN_FAILED naming the address. */
export async function openAdmin(listen: HostPort, subject: AdminSubject): Promise<Admin> {
  const connections = new OpenConnections();
  const server = createServer(
    {
      maxHeaderSize: MOST_HEADER_BYTES,
      headersTimeout: HEAD_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: LOOKS_EVERY_MS,
    },
    (request, response) => {
      connections.begin(request.socket);
      void answer(request, response, subject).finally(() => {
        connections.end(request.socket);
      });
    },
  );
  server.on('connection', (socket) => {
    connections.add(socket);
  });
  await listenOn(server, listen);
  const { port } = server.address() as AddressInfo;
  return {
    address: { host: listen.host, port },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function listenOn(server: Server, { host, port }: HostPort): Promise<void> {
  server.listen({ host, port });
  try {
    await once(server, 'listening');
  } catch (cause) {
    throw new WeirError(
      'LISTEN_FAILED',
      { address: `${host}:${port}`, setting: '--admin', advice: 'choose a free port, or 0' },
      { cause },
    );
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  subject: AdminSubject,
): Promise<void> {
  const reply = await findReply(request, subject);
  const body = request.method === 'HEAD' ? '' : reply.body;
  response.writeHead(reply.status, {
    'content-type': reply.contentType ?? 'text/plain; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    connection: 'close',
  });
  response.end(body);
}

async function findReply(request: IncomingMessage, subject: AdminSubject): Promise<Reply> {
  const path = (request.url ?? '').replace(/\?.*$/, '');
  const route = routeOf(request, path);
  if (route === undefined) return unknownRoute(path);
  if (route.local && !isLocal(request)) {
    return { status: 403, body: `${path} answers only over loopback, and no web page\n` };
  }
  try {
    return await route.answer(subject);
  } catch (error) {
    return { status: 500, body: `${error instanceof Error ? error.message : 'failed'}\n` };
  }
}

function routeOf(request: IncomingMessage, path: string): AdminRoute | undefined {
  const method = request.method === 'HEAD' ? 'GET' : (request.method ?? '');
  if (method !== 'GET' || !path.startsWith(APP_HEALTH_PATH)) return ROUTES[`${method} ${path}`];
  return { local: false, answer: ({ appHealth }) => appHealth(path, askerOf(request)) };
}

function askerOf({ socket, headers }: IncomingMessage): Asker {
  return {
    // A socket that takes both families shows the older one in the form of the newer.
    podAddress: (socket.localAddress ?? '127.0.0.1').replace(/^::ffff:/, ''),
    userAgent: headers['user-agent'] ?? 'kube-probe/weir',
  };
}

function unknownRoute(path: string): Reply {
  const others = Object.keys(ROUTES).filter((name) => name.endsWith(` ${path}`));
  if (others.length > 0) return { status: 405, body: `use ${others.join(' or ')}\n` };
  return { status: 404, body: `known: ${Object.keys(ROUTES).join(', ')}\n` };
}

function readiness(subject: AdminSubject): Reply {
  const reason = subject.whyNotReady();
  return reason === undefined
    ? { status: 200, body: 'ready\n' }
    : { status: 503, body: `not ready: ${reason}\n` };
}

function json(status: number, value: unknown): Reply {
  const body = `${JSON.stringify(value, undefined, 2)}\n`;
  return { status, body, contentType: 'application/json' };
}

// A web page in a browser on this machine comes over loopback too: it gives itself away by Origin, or, where its name
// was bound anew to 127.0.0.1, by that name in Host.
function isLocal({ socket, headers }: IncomingMessage): boolean {
  if (!isLoopbackAddress(socket.remoteAddress ?? '')) return false;
  return headers.origin === undefined && isLoopbackHost(headers.host ?? '');
}
