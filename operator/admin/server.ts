// Health and metrics of the operator, for the kubelet, Prometheus and people. Plain HTTP: it tells nothing that the
// NetworkPolicy of the chart does not decide on, and a probe cannot trust a certificate of ours.
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Registry } from 'prom-client';
import { WeirError } from '../../contract/errors.ts';

/** A probe sends nothing. */
const MOST_BODY_BYTES = 1024;
/** A silent connection is let go; the kubelet's probes take 1 s. */
const REQUEST_TIMEOUT_MS = 10_000;

export interface Check {
  /** Kebab case, e.g. `cache-pods`. */
  readonly name: string;
  /** What is wrong, in words; undefined when all is well. */
  readonly problem: () => string | undefined;
}

export interface AdminOptions {
  readonly host: string;
  /** 0: a free one. */
  readonly port: number;
  /** What only a restart can cure. */
  readonly live: readonly Check[];
  readonly ready: readonly Check[];
  readonly metrics: Registry;
}

export interface AdminServer extends AsyncDisposable {
  /** `http://host:port`. */
  readonly url: string;
}

/** Throws WeirError LISTEN_FAILED. */
export async function openAdminServer(options: AdminOptions): Promise<AdminServer> {
  const app = fastify({
    bodyLimit: MOST_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    forceCloseConnections: true,
  });
  route(app, options);
  const { host, port } = options;
  const url = await app.listen({ host, port }).catch((cause: unknown) => {
    throw new WeirError('LISTEN_FAILED', { address: `${host}:${port}` }, { cause });
  });
  return {
    url,
    [Symbol.asyncDispose]: async () => {
      await app.close();
    },
  };
}

function route(app: FastifyInstance, { live, ready, metrics }: AdminOptions): void {
  app.get('/healthz', (request, reply) => answer(live, request, reply));
  app.get('/readyz', (request, reply) => answer(ready, request, reply));
  app.get('/metrics', async (_request, reply) => {
    const text = await metrics.metrics();
    return reply.type(metrics.contentType).send(text);
  });
}

/** 200 or 503; JSON for who asks for it, else one line a check, as the API server's own endpoints write them. */
function answer(
  checks: readonly Check[],
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const results = checks.map(({ name, problem }) => ({ name, problem: problem() }));
  const isOk = results.every(({ problem }) => problem === undefined);
  reply.code(isOk ? 200 : 503).header('cache-control', 'no-store');
  if (request.headers.accept?.includes('application/json') === true) {
    return reply.send({ ok: isOk, checks: results });
  }
  const lines = results.map(({ name, problem }) =>
    problem === undefined ? `[+] ${name}: ok` : `[-] ${name}: ${problem}`,
  );
  return reply.type('text/plain').send(`${[...lines, isOk ? 'ok' : 'not ok'].join('\n')}\n`);
}
