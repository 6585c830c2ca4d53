// The static configuration of an Envoy: one listener, one filter before the router, clusters. What others do not do
// either is off: no request ids, no headers of Envoy's own, no statistics per route; circuit breakers never trip.

export interface EnvoyOptions {
  readonly port: number;
  readonly upstream: number;
  /** Whether the upstream is asked over HTTP/2; clients may come with it at any time. */
  readonly isHttp2?: boolean;
  /** The rate limit filter. */
  readonly filter: object;
  /** The ratelimit service's port; absent when nobody asks one. */
  readonly ratelimit?: number;
}

/** What limits go by: the header that every contender has as its key. */
export const KEY_ACTION = {
  request_headers: { header_name: 'x-api-key', descriptor_key: 'api_key' },
} as const;

const HTTP2 = {
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      explicit_http_config: { http2_protocol_options: {} },
    },
  },
} as const;

/** As many as any load has under way, several times over. */
const MOST_AT_ONCE = 8_192;

/** For `envoy -c`, once it is written as JSON. */
export function envoyBootstrap(options: EnvoyOptions): object {
  const { port, upstream, isHttp2 = false, ratelimit } = options;
  return {
    static_resources: {
      listeners: [
        {
          name: 'l',
          address: socketAddress(port),
          filter_chains: [{ filters: [connectionManager(options)] }],
        },
      ],
      clusters: [
        { ...cluster('up', upstream), ...(isHttp2 ? HTTP2 : {}) },
        ...(ratelimit === undefined ? [] : [{ ...cluster('ratelimit', ratelimit), ...HTTP2 }]),
      ],
    },
  };
}

function connectionManager({ filter, ratelimit }: EnvoyOptions): object {
  const limits = ratelimit === undefined ? {} : { rate_limits: [{ actions: [KEY_ACTION] }] };
  const route = { match: { prefix: '/' }, route: { cluster: 'up', ...limits } };
  const router = {
    name: 'envoy.filters.http.router',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router',
      dynamic_stats: false,
      suppress_envoy_headers: true,
    },
  };
  return {
    name: 'envoy.filters.network.http_connection_manager',
    typed_config: {
      '@type':
        'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
      stat_prefix: 'h',
      codec_type: 'AUTO',
      generate_request_id: false,
      route_config: {
        name: 'r',
        virtual_hosts: [{ name: 'v', domains: ['*'], routes: [route] }],
      },
      http_filters: [filter, router],
    },
  };
}

function cluster(name: string, port: number): object {
  const most = {
    max_connections: MOST_AT_ONCE,
    max_pending_requests: MOST_AT_ONCE,
    max_requests: MOST_AT_ONCE,
  };
  return {
    name,
    type: 'STATIC',
    connect_timeout: '1s',
    circuit_breakers: { thresholds: [most] },
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: socketAddress(port) } }] }],
    },
  };
}

function socketAddress(port: number): object {
  return { socket_address: { address: '127.0.0.1', port_value: port } };
}
