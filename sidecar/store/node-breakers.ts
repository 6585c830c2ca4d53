// The circuit breakers of a store's nodes, and who is told of their changes.
import { Breaker, type BreakerState } from '../limiter/breaker.ts';
import type { Call } from './call.ts';
import type { Scheduler } from './clock.ts';
import { IdleProbes, type ProbeOwner } from './idle-probes.ts';
import type { FailureKind, StoreNode } from './store.ts';

/** A change of a node's circuit breaker. */
export interface BreakerTransition {
  readonly node: string;
  readonly from: BreakerState;
  readonly to: BreakerState;
  /** The failure that caused it; undefined when it was not a failure. */
  readonly cause: FailureKind | undefined;
  /** The store's own words. */
  readonly detail: string;
}

export interface NodeBreakerOptions {
  /** Numbers in [0, 1), for the jitter. */
  readonly random: () => number;
  readonly onTransition: (event: BreakerTransition) => void;
  readonly scheduler: Scheduler;
}

export class NodeBreakers {
  readonly #breakers = new Map<StoreNode, Breaker>();
  readonly #random: () => number;
  readonly #onTransition: (event: BreakerTransition) => void;
  readonly #idle: IdleProbes;
  readonly of = (node: StoreNode): Breaker => {
    let breaker = this.#breakers.get(node);
    if (breaker === undefined) {
      breaker = new Breaker(this.#random);
      this.#breakers.set(node, breaker);
    }
    return breaker;
  };

  constructor({ random, onTransition, scheduler }: NodeBreakerOptions, owner: ProbeOwner) {
    this.#random = random;
    this.#onTransition = onTransition;
    this.#idle = new IdleProbes(owner, scheduler);
  }

  /** The states of all nodes' breakers, for metrics. */
  states(): { readonly node: string; readonly state: BreakerState }[] {
    return [...this.#breakers].map(([node, { state }]) => ({ node: node.name, state }));
  }

  onReconnect(node: StoreNode, nowUs: number): void {
    this.#breakers.get(node)?.onReconnect(nowUs);
  }

  forget(node: StoreNode): void {
    this.#breakers.delete(node);
  }

  stop(): void {
    this.#idle.stop();
  }

  /** Tells of it if the call's breaker is not `from` any more. */
  report(call: Call, from: BreakerState, cause: FailureKind | undefined, detail: string): void {
    const to = call.breaker?.state ?? from;
    if (to === from) return;
    if (to === 'open') this.#watch(call);
    this.#onTransition({ node: call.lane?.node.name ?? '', from, to, cause, detail });
  }

  #watch({ lane, breaker, buckets }: Call): void {
    const [bucket] = buckets;
    if (lane === undefined || breaker === undefined || bucket === undefined) return;
    this.#idle.watch(breaker, lane, bucket);
  }
}
