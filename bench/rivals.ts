// Contenders that no registry carries: a binary named by WEIR_BENCH_<PEER>, or they are absent.
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import type { Contender } from './contender.ts';
import { contender } from './contenders.ts';
import type { Stage } from './contenders.ts';
import { freePort } from './free-port.ts';
import { PROXY_CORE, PinnedProcess } from './pinned-process.ts';

export interface RivalReport {
  readonly present: readonly Contender[];
  /** Title and the variable that would bring it. */
  readonly absent: readonly string[];
}

export async function startRivals(stage: Stage): Promise<RivalReport> {
  const traefik = process.env['WEIR_BENCH_TRAEFIK'];
  const envoy = process.env['WEIR_BENCH_ENVOY'];
  const ratelimit = process.env['WEIR_BENCH_RATELIMIT'];
  const present: Contender[] = [];
  const absent: string[] = [];
  if (traefik === undefined) absent.push('Traefik + Redis (WEIR_BENCH_TRAEFIK)');
  else present.push(await startTraefik(traefik, stage));
  if (envoy === undefined) absent.push('Envoy, local limit (WEIR_BENCH_ENVOY)');
  else present.push(await startEnvoyLocal(envoy, stage));
  if (envoy === undefined || ratelimit === undefined) {
    absent.push('Envoy + ratelimit + Redis (WEIR_BENCH_ENVOY and WEIR_BENCH_RATELIMIT)');
  } else present.push(await startEnvoyRatelimit({ envoy, ratelimit }, stage));
  return { present, absent };
}

async function startTraefik(binary: string, stage: Stage): Promise<Contender> {
  const [port, refusingPort] = [await freePort(), await freePort()];
  const dynamic = path.join(stage.folder, 'traefik-dynamic.yaml');
  const fixed = path.join(stage.folder, 'traefik.yaml');
  const limit = (average: number): string =>
    `{rateLimit: {average: ${String(average)}, burst: ${String(average)}, sourceCriterion: {requestHeaderName: X-Api-Key}, redis: {endpoints: ["127.0.0.1:${String(stage.redis)}"]}}}`;
  // Traefik's limit hangs on a router, not on the key: one entry point per limit.
  await writeFile(
    dynamic,
    `http:
  routers:
    allowed: {rule: "PathPrefix(\`/\`)", entryPoints: [allowed], middlewares: [allowed], service: up}
    refused: {rule: "PathPrefix(\`/\`)", entryPoints: [refused], middlewares: [refused], service: up}
  middlewares: {allowed: ${limit(1e9)}, refused: ${limit(1)}}
  services: {up: {loadBalancer: {servers: [{url: "http://127.0.0.1:${String(stage.upstream)}"}]}}}
`,
  );
  await writeFile(
    fixed,
    `global: {checkNewVersion: false, sendAnonymousUsage: false}
log: {level: ERROR}
entryPoints: {allowed: {address: "127.0.0.1:${String(port)}"}, refused: {address: "127.0.0.1:${String(refusingPort)}"}}
providers: {file: {filename: ${dynamic}, watch: false}}
`,
  );
  const child = stage.stack.use(
    new PinnedProcess(binary, [`--configFile=${fixed}`], { core: PROXY_CORE }),
  );
  await child.listening(port);
  return { ...contender('traefik', port, [child]), usesRedis: true, refusingPort };
}

async function startEnvoyLocal(binary: string, stage: Stage): Promise<Contender> {
  const port = await freePort();
  const bucket = (tokens: number, interval: string): object => ({
    max_tokens: tokens,
    tokens_per_fill: tokens,
    fill_interval: interval,
  });
  const all = { default_value: { numerator: 100, denominator: 'HUNDRED' } };
  const filter = {
    name: 'envoy.filters.http.local_ratelimit',
    typed_config: {
      '@type':
        'type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit',
      stat_prefix: 'l',
      token_bucket: bucket(1e9, '1s'),
      filter_enabled: all,
      filter_enforced: all,
      rate_limits: [{ actions: [KEY_ACTION] }],
      descriptors: [
        { entries: [{ key: 'api_key', value: 'deny' }], token_bucket: bucket(1, '3600s') },
      ],
    },
  };
  const child = await startEnvoy(binary, { name: 'envoy-local', port, filter }, stage);
  return { ...contender('envoy-local', port, [child]), refusingPort: port };
}

async function startEnvoyRatelimit(
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
      timeout: '0.05s',
      rate_limit_service: {
        transport_api_version: 'V3',
        grpc_service: { envoy_grpc: { cluster_name: 'ratelimit' } },
      },
    },
  };
  const options = { name: 'envoy-ratelimit', port, filter, ratelimit: grpc };
  const child = await startEnvoy(binaries.envoy, options, stage);
  return {
    ...contender('envoy-ratelimit', port, [child, service]),
    usesRedis: true,
    refusingPort: port,
  };
}

async function ratelimitEnvironment(grpc: number, stage: Stage): Promise<Record<string, string>> {
  const folder = path.join(stage.folder, 'ratelimit', 'config');
  await mkdir(folder, { recursive: true });
  await writeFile(
    path.join(folder, 'bench.yaml'),
    `domain: bench
descriptors:
  - {key: api_key, value: deny, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: api_key, rate_limit: {unit: second, requests_per_unit: 1000000000}}
`,
  );
  return {
    USE_STATSD: 'false',
    DISABLE_STATS: 'true',
    LOG_LEVEL: 'error',
    BACKEND_TYPE: 'redis',
    REDIS_SOCKET_TYPE: 'tcp',
    REDIS_URL: `127.0.0.1:${String(stage.redis)}`,
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

const KEY_ACTION = {
  request_headers: { header_name: 'x-api-key', descriptor_key: 'api_key' },
} as const;

interface EnvoyOptions {
  readonly name: string;
  readonly port: number;
  readonly filter: object;
  /** The ratelimit service's port. */
  readonly ratelimit?: number;
}

async function startEnvoy(
  binary: string,
  options: EnvoyOptions,
  stage: Stage,
): Promise<PinnedProcess> {
  const file = path.join(stage.folder, `${options.name}.json`);
  await writeFile(file, JSON.stringify(envoyBootstrap(options, stage.upstream)));
  const args = ['-c', file, '--concurrency', '1', '--disable-hot-restart', '-l', 'error'];
  const child = stage.stack.use(new PinnedProcess(binary, args, { core: PROXY_CORE }));
  await child.listening(options.port);
  return child;
}

function envoyBootstrap({ port, filter, ratelimit }: EnvoyOptions, upstream: number): object {
  const limits = ratelimit === undefined ? {} : { rate_limits: [{ actions: [KEY_ACTION] }] };
  const route = { match: { prefix: '/' }, route: { cluster: 'up', ...limits } };
  const router = {
    name: 'envoy.filters.http.router',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router',
    },
  };
  const connectionManager = {
    name: 'envoy.filters.network.http_connection_manager',
    typed_config: {
      '@type':
        'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
      stat_prefix: 'h',
      codec_type: 'AUTO',
      route_config: {
        name: 'r',
        virtual_hosts: [{ name: 'v', domains: ['*'], routes: [route] }],
      },
      http_filters: [filter, router],
    },
  };
  return {
    static_resources: {
      listeners: [
        {
          name: 'l',
          address: socketAddress(port),
          filter_chains: [{ filters: [connectionManager] }],
        },
      ],
      clusters: [
        cluster('up', upstream),
        ...(ratelimit === undefined ? [] : [{ ...cluster('ratelimit', ratelimit), ...HTTP2 }]),
      ],
    },
  };
}

const HTTP2 = {
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      explicit_http_config: { http2_protocol_options: {} },
    },
  },
} as const;

function cluster(name: string, port: number): object {
  return {
    name,
    type: 'STATIC',
    connect_timeout: '1s',
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: socketAddress(port) } }] }],
    },
  };
}

function socketAddress(port: number): object {
  return { socket_address: { address: '127.0.0.1', port_value: port } };
}
