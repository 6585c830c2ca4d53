// The admission webhook on the wire: HTTPS with a certificate that may change while it serves, one path, bounded
// bodies. What is answered is decided in operator/injection; a fault of ours is answered 500, and then the entry's
// failurePolicy decides, which is what its author chose it for.
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Registry } from 'prom-client';
import { WeirError } from '../../contract/errors.ts';
import { reviewAdmission } from '../injection/admission-review.ts';
import type { InjectionEvent, WorldView } from '../injection/admission-review.ts';
import type { InjectionConfig } from '../injection/injection-config.ts';
import type { Log } from '../log.ts';
import { WebhookMetrics } from './webhook-metrics.ts';

/** Where the API server posts to. */
export const MUTATE_PATH = '/mutate';

/** The API server takes objects of 3 MiB at most; a review holds one, and a little around it. */
export const BODY_BYTES_MAX: number = 4 * 1_048_576;
/** Longer than the API server waits for any webhook (30 s at most), so a silent connection is nobody's. */
const REQUEST_TIMEOUT_MS = 35_000;
/** Longer than the API server keeps an idle connection (90 s): it closes first, and no request meets a closed door. */
const KEEP_ALIVE_MS = 120_000;

/** PEM texts. */
export interface ServingCertificate {
  readonly cert: string;
  readonly key: string;
}

/** Where what has to be said of a pod goes. Returns at once, never throws. */
export interface EventSink {
  record(event: InjectionEvent): void;
}

export interface WebhookOptions {
  readonly host: string;
  /** 0: a free one. */
  readonly port: number;
  readonly certificate: ServingCertificate;
  readonly world: WorldView;
  /** Read at each request: the CA that pods are told to trust changes. */
  readonly config: () => InjectionConfig;
  readonly events: EventSink;
  readonly log: Log;
  readonly metrics: Registry;
}

export interface WebhookServer extends AsyncDisposable {
  /** `https://host:port`. */
  readonly url: string;
  /** New connections get this certificate; those that are open go on. Throws when key and certificate do not fit. */
  setCertificate(certificate: ServingCertificate): void;
  /**
   * From now on each connection ends with its next answer, while new ones are taken: whoever keeps connections to a
   * Service stays with the same replica until told. One that we closed under a request would refuse a pod (seen: 2 of
   * 1 100 in a rolling restart).
   */
  drain(): void;
}

/** Throws WeirError LISTEN_FAILED. Disposing answers what is in flight and takes nothing more. */
export async function openWebhookServer(options: WebhookOptions): Promise<WebhookServer> {
  const app = fastify({
    https: { ...options.certificate, minVersion: 'TLSv1.2' },
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: 'idle',
    // A request that comes over an open connection while we end is answered like any other: a 503 would refuse a pod.
    return503OnClosing: false,
  });
  let isDraining = false;
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (isDraining) reply.header('connection', 'close');
    done();
  });
  route(app, options);
  const { host, port } = options;
  const url = await app.listen({ host, port }).catch((cause: unknown) => {
    throw new WeirError('LISTEN_FAILED', { address: `${host}:${port}` }, { cause });
  });
  return {
    url,
    setCertificate: (certificate) => {
      app.server.setSecureContext(certificate);
    },
    drain: () => {
      isDraining = true;
    },
    [Symbol.asyncDispose]: async () => {
      await app.close();
    },
  };
}

function route(app: FastifyInstance, options: WebhookOptions): void {
  const metrics = new WebhookMetrics(options.metrics);
  const begun = new WeakMap<FastifyRequest, number>();
  app.addHook('onRequest', (request, _reply, done) => {
    metrics.begin(MUTATE_PATH);
    begun.set(request, performance.now());
    done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    const since = begun.get(request) ?? performance.now();
    metrics.end(MUTATE_PATH, reply.statusCode, (performance.now() - since) / 1_000);
    done();
  });
  app.post(MUTATE_PATH, (request, reply) =>
    mutateAnswer(request, reply, { ...options, numbers: metrics }),
  );
  app.setNotFoundHandler((request, reply) =>
    reply
      .code(404)
      .send({ error: `${request.method} ${request.url}: only POST ${MUTATE_PATH} is served` }),
  );
  app.setErrorHandler((error, _request, reply) => {
    const { status, message } = describeFault(error);
    if (status >= 500) options.log.error({ err: error }, 'admission request failed');
    return reply.code(status).send({ error: message });
  });
}

interface Answering extends WebhookOptions {
  readonly numbers: WebhookMetrics;
}

function mutateAnswer(
  { body }: FastifyRequest,
  reply: FastifyReply,
  { world, config, events, numbers }: Answering,
): FastifyReply {
  const reviewed = reviewAdmission(body, { world, config: config() });
  if (reviewed.kind === 'unreadable') return reply.code(400).send({ error: reviewed.problem });
  numbers.countInjection(reviewed.result, reviewed.reason);
  for (const event of reviewed.events) events.record(event);
  return reply.send(reviewed.answer);
}

interface Fault {
  readonly status: number;
  readonly message: string;
}

const FAULTS: Readonly<Record<string, Fault>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: {
    status: 413,
    message: `the body is larger than ${BODY_BYTES_MAX} bytes`,
  },
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    status: 415,
    message: 'the content type is not application/json',
  },
  FST_ERR_CTP_EMPTY_JSON_BODY: { status: 400, message: 'the body is empty' },
  FST_ERR_CTP_INVALID_JSON_BODY: { status: 400, message: 'the body is not JSON' },
};

// What went wrong inside is for our log; the API server repeats the answer to whoever created the pod.
function describeFault(error: unknown): Fault {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const known = FAULTS[code];
  if (known !== undefined) return known;
  if (error instanceof SyntaxError) return { status: 400, message: 'the body is not JSON' };
  return { status: 500, message: 'the injector failed on this pod; see the log of weir-operator' };
}
