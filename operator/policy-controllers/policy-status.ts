// Keeps the status of policies true: asked with a key, it observes, plans, and writes what reads differently. Only the
// leader runs it.
import { isDeepStrictEqual } from 'node:util';
import type { ObjectReference } from '../kube/object.ts';
import { bypassEvents, conflictEvents, transitionEvents } from '../policy/policy-event.ts';
import {
  observePolicy,
  type PolicyObservation,
  type Surroundings,
} from '../policy/policy-observation.ts';
import { planStatus, type StatusPlan } from '../policy/policy-status.ts';
import { paceOf } from '../policy/status-pace.ts';
import type { World } from '../policy/world.ts';
import type { Clock } from '../clock.ts';
import type { EventSink, StatusWriter } from './outlets.ts';

/** Sidecars reconnect within 30 s of back-off; twice that, and who is silent is away. */
export const SETTLING_MS = 60_000;

/** A watch that lags more is broken, and its reflector starts anew. */
export const CACHE_LAG_MS = 30_000;

export interface PolicyStatusOptions {
  readonly world: World;
  readonly surroundings: () => Omit<Surroundings, 'isSettling'>;
  readonly writer: StatusWriter;
  readonly events: EventSink;
  readonly clock: Clock;
}

interface Told {
  /** Of the last write, on the monotonic clock. */
  readonly writtenMs: number | undefined;
  /** What was written, until the watch has brought it back; undefined = it has. */
  readonly status: unknown;
  readonly generation: number;
  readonly uid: string;
  /** Notes of conflicts and bypasses that were told. */
  readonly notes: ReadonlySet<string>;
}

export class PolicyStatusController {
  readonly #options: PolicyStatusOptions;
  readonly #startedMs: number;
  readonly #told = new Map<string, Told>();

  constructor(options: PolicyStatusOptions) {
    this.#options = options;
    this.#startedMs = options.clock.nowMs();
  }

  /** Answers when it wants to be asked again though nothing changed. */
  async reconcile(
    key: string,
    signal: AbortSignal,
  ): Promise<{ readonly requeueAfterMs?: number } | undefined> {
    const { world, clock } = this.#options;
    const settledInMs = Math.max(0, this.#startedMs + SETTLING_MS - clock.nowMs());
    const surroundings = { ...this.#options.surroundings(), isSettling: settledInMs > 0 };
    const observed = observePolicy(world, key, surroundings);
    if (observed === undefined) {
      this.#told.delete(key);
      return undefined;
    }
    const told = this.#toldOf(key, observed);
    const observation = withLatestStatus(observed, told);
    const plan = planStatus(observation, clock.wallMs());
    const pace = paceOf(plan.change, told?.writtenMs, clock.nowMs());
    if (pace.kind === 'wait') return { requeueAfterMs: pace.forMs };
    if (pace.kind === 'write') await this.#write(key, { observation, plan, signal });
    else this.#tellNotes(key, observation);
    return settledInMs > 0 ? { requeueAfterMs: settledInMs } : undefined;
  }

  /** From when the watch has brought our write back, what the cache shows counts: somebody may have changed it. */
  #toldOf(key: string, { policy }: PolicyObservation): Told | undefined {
    const told = this.#told.get(key);
    if (told?.uid !== policy.uid) return undefined;
    const writtenMs = told.writtenMs ?? -Infinity;
    const isBack =
      isDeepStrictEqual(told.status, policy.status) ||
      this.#options.clock.nowMs() - writtenMs >= CACHE_LAG_MS;
    if (!isBack || told.status === undefined) return told;
    const seen = { ...told, status: undefined };
    this.#told.set(key, seen);
    return seen;
  }

  async #write(
    key: string,
    step: {
      readonly observation: PolicyObservation;
      readonly plan: StatusPlan;
      readonly signal: AbortSignal;
    },
  ): Promise<void> {
    const { observation, plan, signal } = step;
    const { writer, events, clock } = this.#options;
    await writer.write(observation.policy, plan.status, signal);
    const { generation, uid } = observation.policy;
    const notes = this.#told.get(key)?.notes ?? new Set();
    this.#told.set(key, {
      writtenMs: clock.nowMs(),
      status: plan.status,
      generation,
      uid,
      notes,
    });
    for (const event of transitionEvents(observation, plan.transitions)) events.record(event);
    this.#tellNotes(key, observation);
  }

  /** Conflicts and bypasses are told when they come, and again when they had gone in between. */
  #tellNotes(key: string, observation: PolicyObservation): void {
    const told = this.#told.get(key);
    const { policy } = observation;
    const all = [
      ...conflictEvents(observation),
      ...bypassEvents(observation, observation.bypasses, (pod) =>
        this.#ownerOf(policy.namespace, pod),
      ),
    ];
    const named = all.map((event) => ({
      event,
      note: [event.regarding.kind, event.regarding.name, event.reason, event.note].join(' '),
    }));
    for (const { event, note } of named) {
      if (told?.notes.has(note) !== true) this.#options.events.record(event);
    }
    const notes = new Set(named.map(({ note }) => note));
    const { uid, generation } = policy;
    const nothing = { writtenMs: undefined, status: undefined, generation, uid };
    this.#told.set(key, { ...nothing, ...told, notes });
  }

  #ownerOf(namespace: string, podName: string): ObjectReference | undefined {
    return this.#options.world.podByName(namespace, podName)?.workload.reference;
  }
}

// The cache may lag behind our own write: planning on the older status would write the same again, with another time.
function withLatestStatus(
  observation: PolicyObservation,
  told: Told | undefined,
): PolicyObservation {
  const { policy } = observation;
  if (told?.status === undefined || told.generation !== policy.generation) return observation;
  return { ...observation, policy: { ...policy, status: told.status } };
}
