// The numbers of the stream server, in the operator's registry.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { ReviewResult } from './authentication.ts';
import type { PushResult } from './session.ts';

/** From one debounce to a cluster in trouble. */
const LAG_BOUNDS_SECONDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60];

export class StreamMetrics {
  readonly #clients: Gauge;
  readonly #pushes: Counter<'result'>;
  readonly #lag: Histogram;
  readonly #reviews: Counter<'result'>;
  readonly #ends: Counter<'reason'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#clients = new Gauge({
      name: 'weir_stream_clients',
      help: 'Sidecars with a live stream to this replica.',
      registers,
    });
    this.#pushes = new Counter({
      name: 'weir_config_push_total',
      help: 'Configurations pushed, by what the sidecar made of them.',
      labelNames: ['result'],
      registers,
    });
    this.#lag = new Histogram({
      name: 'weir_config_lag_seconds',
      help: 'From a change in the cluster to its being in force on a sidecar.',
      buckets: LAG_BOUNDS_SECONDS,
      registers,
    });
    this.#reviews = new Counter({
      name: 'weir_token_reviews_total',
      help: 'Token reviews asked of the API server.',
      labelNames: ['result'],
      registers,
    });
    this.#ends = new Counter({
      name: 'weir_stream_ends_total',
      help: 'Streams ended by this replica, by why.',
      labelNames: ['reason'],
      registers,
    });
  }

  setClients(count: number): void {
    this.#clients.set(count);
  }

  countPush(result: PushResult, lagMs: number): void {
    this.#pushes.inc({ result });
    if (result === 'acked') this.#lag.observe(lagMs / 1_000);
  }

  countReview(result: ReviewResult): void {
    this.#reviews.inc({ result });
  }

  countEnd(reason: string): void {
    this.#ends.inc({ reason });
  }
}
