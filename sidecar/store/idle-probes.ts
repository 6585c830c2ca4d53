// Whether a store that was left alone is back: requests find out, and where none come these probes do. Without them a
// sidecar that nobody asks would call its store away for ever, and the operator would repeat it in every status.
import type { Breaker } from '../limiter/breaker.ts';
import type { KeyedBucket } from '../limiter/bucket.ts';
import { PEEK } from '../limiter/token-bucket.ts';
import type { ScheduledTask, Scheduler } from './clock.ts';
import type { Lane, Maintenance } from './lane.ts';

/** Longer than a breaker rests, so that each may go through; recovery shows within 2 s. */
export const IDLE_PROBE_MS = 1_000;

export interface ProbeOwner {
  /** Sends it if the breaker lets it, which a probe of a request may have used up. */
  maintain(lane: Lane, work: Maintenance): void;
}

export class IdleProbes {
  readonly #owner: ProbeOwner;
  readonly #scheduler: Scheduler;
  /** One for each node that is left alone, however many lanes it has. */
  readonly #tasks = new Map<Breaker, ScheduledTask>();

  constructor(owner: ProbeOwner, scheduler: Scheduler) {
    this.#owner = owner;
    this.#scheduler = scheduler;
  }

  /** `breaker`, the lane's, has opened. `bucket` is one of those that were asked for; it is looked at, never charged. */
  watch(breaker: Breaker, lane: Lane, bucket: KeyedBucket): void {
    if (this.#tasks.has(breaker)) return;
    const peek: Maintenance = { operation: PEEK, buckets: [bucket], weight: 1, leased: 0 };
    const probe = (): void => {
      this.#tasks.delete(breaker);
      if (lane.isRetired || lane.breaker !== breaker || breaker.state === 'closed') return;
      this.#owner.maintain(lane, peek);
      this.#tasks.set(breaker, this.#scheduler.after(IDLE_PROBE_MS, probe));
    };
    this.#tasks.set(breaker, this.#scheduler.after(IDLE_PROBE_MS, probe));
  }

  stop(): void {
    for (const task of this.#tasks.values()) task.cancel();
    this.#tasks.clear();
  }
}
