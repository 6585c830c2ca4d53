// client-go's name, so that dashboards and alerts made for other controllers work.
// A CommonJS package: its names are found under `default` both in sources and in the bundle.
import prometheus, { type Counter, type Registry } from 'prom-client';

export interface ClientMetrics {
  /** `code` is the HTTP status, or `<error>` when no answer came. */
  answered(code: string, method: string, host: string): void;
}

export function openClientMetrics(registry: Registry): ClientMetrics {
  const requests: Counter = new prometheus.Counter({
    name: 'rest_client_requests_total',
    help: 'Requests to the API server, by status code, method and host.',
    labelNames: ['code', 'method', 'host'],
    registers: [registry],
  });
  return {
    answered(code, method, host) {
      requests.inc({ code, method, host });
    },
  };
}
