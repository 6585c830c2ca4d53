// Envoy with its limiter in the process, and Envoy that asks envoyproxy/ratelimit, which counts in Redis.
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Contender, Limit } from '../contender.ts';
import { contender } from '../contender.ts';
import { freePort } from '../free-port.ts';
import { PROXY_CORE, PinnedProcess } from '../pinned-process.ts';
import type { Stage } from '../stage.ts';
import type { EnvoyOptions } from './envoy-bootstrap.ts';
import { KEY_ACTION, envoyBootstrap } from './envoy-bootstrap.ts';

/** Keys over their limit are remembered by the service, as its documentation advises: refusals cost it no Redis. */
const LOCAL_CACHE_BYTES = 1_048_576;
/** What its documentation advises "for optimal performance": requests at once share a write to Redis. */
const PIPELINE_WINDOW = '150us';

export async function startEnvoyLocal(binary: string, stage: Stage): Promise<Contender> {
  const port = await freePort();
  const filter = localFilter(stage.limit);
  const child = await startEnvoy(binary, stage, { name: 'envoy-local', port, filter });
  return { ...contender('envoy-local', port, [child]), refusingPort: port };
}

/** HTTP/2 on both sides. */
export async function startEnvoyLocalHttp2(binary: string, stage: Stage): Promise<Contender> {
  const port = await freePort();
  const options = { port, filter: localFilter(stage.limit), isHttp2: true };
  const child = await startEnvoy(
    binary,
    { ...stage, upstream: stage.http2Upstream },
    { name: 'envoy-local-http2', ...options },
  );
  return { ...contender('envoy-local-http2', port, [child]), refusingPort: port };
}

/** One bucket for every key but `deny`: less than the others do, hence a floor. */
function localFilter({ capacity, perSecond }: Limit): object {
  const bucket = (most: number, perFill: number, interval: string): object => ({
    max_tokens: most,
    tokens_per_fill: perFill,
    fill_interval: interval,
  });
  const always = { default_value: { numerator: 100, denominator: 'HUNDRED' } };
  return {
    name: 'envoy.filters.http.local_ratelimit',
    typed_config: {
      '@type':
        'type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit',
      stat_prefix: 'l',
      token_bucket: bucket(capacity, perSecond, '1s'),
      filter_enabled: always,
      filter_enforced: always,
      rate_limits: [{ actions: [KEY_ACTION] }],
      descriptors: [
        { entries: [{ key: 'api_key', value: 'deny' }], token_bucket: bucket(1, 1, '3600s') },
      ],
    },
  };
}

export async function startEnvoyRatelimit(
  binaries: { readonly envoy: string; readonly ratelimit: string },
  stage: Stage,
): Promise<Contender> {
  const [port, grpc] = [await freePort(), await freePort()];
  const service = stage.stack.use(
    new PinnedProcess(binaries.ratelimit, [], {
      core: PROXY_CORE,
      environment: await ratelimitEnvironment(grpc, stage),
    }),
  );
  await service.listening(grpc);
  const filter = {
    name: 'envoy.filters.http.ratelimit',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit',
      domain: 'bench',
      // As long as the others wait; Envoy's own 20 ms let requests pass unlimited on a busy machine.
      timeout: '0.05s',
      rate_limit_service: {
        transport_api_version: 'V3',
        grpc_service: { envoy_grpc: { cluster_name: 'ratelimit' } },
      },
    },
  };
  const options = { name: 'envoy-ratelimit', port, filter, ratelimit: grpc };
  const child = await startEnvoy(binaries.envoy, stage, options);
  return {
    ...contender('envoy-ratelimit', port, [child, service]),
    usesRedis: true,
    refusingPort: port,
  };
}

async function ratelimitEnvironment(grpc: number, stage: Stage): Promise<Record<string, string>> {
  const folder = path.join(stage.folder, 'ratelimit', 'config');
  await mkdir(folder, { recursive: true });
  // A fixed window has a rate and no burst.
  await writeFile(
    path.join(folder, 'bench.yaml'),
    `domain: bench
descriptors:
  - {key: api_key, value: deny, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: api_key, rate_limit: {unit: second, requests_per_unit: ${String(stage.limit.perSecond)}}}
`,
  );
  return {
    USE_STATSD: 'false',
    DISABLE_STATS: 'true',
    LOG_LEVEL: 'error',
    BACKEND_TYPE: 'redis',
    REDIS_SOCKET_TYPE: 'tcp',
    REDIS_URL: `127.0.0.1:${String(stage.redis)}`,
    REDIS_PIPELINE_WINDOW: PIPELINE_WINDOW,
    LOCAL_CACHE_SIZE_IN_BYTES: String(LOCAL_CACHE_BYTES),
    RUNTIME_ROOT: path.join(stage.folder, 'ratelimit'),
    RUNTIME_SUBDIRECTORY: '',
    RUNTIME_APPDIRECTORY: 'config',
    RUNTIME_WATCH_ROOT: 'false',
    HOST: '127.0.0.1',
    PORT: String(await freePort()),
    GRPC_HOST: '127.0.0.1',
    GRPC_PORT: String(grpc),
    DEBUG_HOST: '127.0.0.1',
    DEBUG_PORT: String(await freePort()),
  };
}

async function startEnvoy(
  binary: string,
  stage: Stage,
  options: Omit<EnvoyOptions, 'upstream'> & { readonly name: string },
): Promise<PinnedProcess> {
  const file = path.join(stage.folder, `${options.name}.json`);
  await writeFile(file, JSON.stringify(envoyBootstrap({ ...options, upstream: stage.upstream })));
  const args = ['-c', file, '--concurrency', '1', '--disable-hot-restart', '-l', 'error'];
  const child = stage.stack.use(new PinnedProcess(binary, args, { core: PROXY_CORE }));
  await child.listening(options.port);
  return child;
}
