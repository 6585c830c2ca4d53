// Looks, now and then and after changes, for pods that asked for a sidecar and have none; tells their owners, counts
// them, and evicts a few where the operator's settings say so. Only the leader runs it.
import {
  remedyEvent,
  type FailedCreate,
  type SidecarQuantities,
} from '../policy/failed-creation.ts';
import {
  evictionKey,
  planEvictions,
  uninjectedEvents,
  uninjectedPods,
  type UninjectedPod,
} from '../policy/watchdog.ts';
import type { World } from '../policy/world.ts';
import type { Clock } from '../clock.ts';
import type { EventSink, Evictor } from './outlets.ts';

export interface WatchdogOptions {
  readonly world: World;
  readonly isExcluded: (namespace: string) => boolean;
  readonly events: EventSink;
  /** Undefined = pods are never evicted. */
  readonly evictor: Evictor | undefined;
  /** Whether the webhook answers: without it, who is evicted comes back as bare as before. */
  readonly isWebhookServing: () => boolean;
  readonly quantities: SidecarQuantities;
  readonly clock: Clock;
  /** How many there are, for the metric `weir_uninjected_pods`. */
  readonly onCount: (count: number) => void;
}

/** A pod that came bare is told within a minute, also when nothing else happens. */
export const ROUND_MS = 30_000;
/** Evictions are remembered for as long as their workload is left alone. */
const HISTORY_MS = 600_000;

export class Watchdog {
  readonly #options: WatchdogOptions;
  /** By owner: the note that was told. */
  #told: ReadonlyMap<string, string> = new Map();
  #evictedAt: readonly number[] = [];
  readonly #lastOfOwner = new Map<string, number>();

  constructor(options: WatchdogOptions) {
    this.#options = options;
  }

  /** One round; answers when the next is due. */
  async round(signal: AbortSignal): Promise<{ readonly requeueAfterMs: number }> {
    const { world, isExcluded, onCount } = this.#options;
    const found = uninjectedPods(world, isExcluded);
    onCount(found.length);
    this.#tell(found);
    await this.#evict(found, signal);
    return { requeueAfterMs: ROUND_MS };
  }

  /** An Event of a controller; those about our container are answered with what to do. */
  failed(event: FailedCreate): void {
    const remedy = remedyEvent(event, this.#options.quantities);
    if (remedy !== undefined) this.#options.events.record(remedy);
  }

  #tell(found: readonly UninjectedPod[]): void {
    const told = new Map<string, string>();
    for (const event of uninjectedEvents(found)) {
      const { namespace = '', kind, name } = event.regarding;
      const owner = `${namespace}/${kind}/${name}`;
      told.set(owner, event.note);
      if (this.#told.get(owner) !== event.note) this.#options.events.record(event);
    }
    this.#told = told;
  }

  async #evict(found: readonly UninjectedPod[], signal: AbortSignal): Promise<void> {
    const { evictor, isWebhookServing, clock } = this.#options;
    if (evictor === undefined || !isWebhookServing()) return;
    const nowMs = clock.wallMs();
    this.#forget(nowMs);
    const history = { at: this.#evictedAt, lastOfOwner: this.#lastOfOwner };
    for (const one of planEvictions(found, history, nowMs)) {
      // Before the call: a call that failed half-way may have evicted.
      this.#evictedAt = [...this.#evictedAt, nowMs];
      this.#lastOfOwner.set(evictionKey(one), nowMs);
      const isEvicted = await evictor.evict(one.pod, signal);
      if (isEvicted) this.#options.events.record(evictionEvent(one));
    }
  }

  #forget(nowMs: number): void {
    this.#evictedAt = this.#evictedAt.filter((at) => at > nowMs - HISTORY_MS);
    for (const [owner, at] of this.#lastOfOwner) {
      if (at <= nowMs - HISTORY_MS) this.#lastOfOwner.delete(owner);
    }
  }
}

function evictionEvent({ pod, owner }: UninjectedPod): Parameters<EventSink['record']>[0] {
  return {
    regarding: owner,
    type: 'Normal',
    reason: 'Evicted',
    action: 'Evict',
    note: `Pod ${pod.name} had no sidecar and was evicted, so that it comes back with one.`,
  };
}
