// The numbers of the webhook: controller-runtime's names, so that dashboards made for other operators show them, and
// one of ours that says what became of each pod.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** The API server waits a few seconds; an answer from memory takes milliseconds. */
const LATENCY_BOUNDS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

export class WebhookMetrics {
  readonly #requests: Counter<'webhook' | 'code'>;
  readonly #latency: Histogram<'webhook'>;
  readonly #inFlight: Gauge<'webhook'>;
  readonly #injections: Counter<'result' | 'reason'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#requests = new Counter({
      name: 'controller_runtime_webhook_requests_total',
      help: 'Admission requests by HTTP status code.',
      labelNames: ['webhook', 'code'],
      registers,
    });
    this.#latency = new Histogram({
      name: 'controller_runtime_webhook_latency_seconds',
      help: 'From an admission request to its answer.',
      labelNames: ['webhook'],
      buckets: LATENCY_BOUNDS_SECONDS,
      registers,
    });
    this.#inFlight = new Gauge({
      name: 'controller_runtime_webhook_requests_in_flight',
      help: 'Admission requests being answered.',
      labelNames: ['webhook'],
      registers,
    });
    this.#injections = new Counter({
      name: 'weir_injection_total',
      help: 'Pods that came by for a sidecar, by what became of them and why.',
      labelNames: ['result', 'reason'],
      registers,
    });
  }

  begin(webhook: string): void {
    this.#inFlight.inc({ webhook });
  }

  end(webhook: string, code: number, seconds: number): void {
    this.#inFlight.dec({ webhook });
    this.#requests.inc({ webhook, code: String(code) });
    this.#latency.observe({ webhook }, seconds);
  }

  countInjection(result: string, reason: string): void {
    this.#injections.inc({ result, reason });
  }
}
