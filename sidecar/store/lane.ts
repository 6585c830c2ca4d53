// Hot path. What is ready to be asked of the store in one call, and the circuit breaker in front of it.
import type { Breaker } from '../limiter/breaker.ts';
import type { KeyedBucket } from '../limiter/bucket.ts';
import { clear } from '../limiter/element.ts';
import type { Call } from './call.ts';
import type { Group } from './group.ts';
import type { StoreLane, StoreNode } from './store.ts';

/** A refund or charge that waits to be sent; nobody waits for its answer. */
export interface Maintenance {
  readonly operation: number;
  readonly buckets: readonly KeyedBucket[];
  /** Tokens to every bucket. */
  readonly weight: number;
  /** Tokens over all buckets when a lease gives them back, else 0. */
  readonly leased: number;
}

/** More would be older than they are worth: 4 096 charges fill 32 calls. */
export const MAX_MAINTENANCE = 4_096;

export class Lane {
  readonly route: StoreLane;
  ready: Group[] = [];
  maintenance: Maintenance[] = [];
  /** Stands in the limiter's list of lanes to flush. */
  isScheduled = false;
  /** Its store was replaced: it ends what is under way and takes nothing new. */
  isRetired = false;
  readonly #breakerOf: (node: StoreNode) => Breaker;
  #node: StoreNode;
  #breaker: Breaker;

  constructor(route: StoreLane, breakerOf: (node: StoreNode) => Breaker) {
    this.route = route;
    this.#breakerOf = breakerOf;
    this.#node = route.node;
    this.#breaker = breakerOf(this.#node);
  }

  get node(): StoreNode {
    return this.#node;
  }

  /** The breaker of the node that holds the lane now: a Cluster moves slots. */
  get breaker(): Breaker {
    const { node } = this.route;
    if (node !== this.#node) {
      this.#node = node;
      this.#breaker = this.#breakerOf(node);
    }
    return this.#breaker;
  }

  get hasWork(): boolean {
    return this.ready.length > 0 || this.maintenance.length > 0;
  }

  /** Fills `call` with what is ready, refunds and charges first. */
  load(call: Call): void {
    let taken = 0;
    for (const work of this.maintenance) {
      if (!call.addMaintenance(work)) break;
      taken += 1;
    }
    if (taken > 0) this.maintenance.splice(0, taken);
    if (this.maintenance.length === 0) this.#loadGroups(call);
  }

  #loadGroups(call: Call): void {
    let taken = 0;
    for (const group of this.ready) {
      if (!call.addGroup(group)) break;
      group.isReady = false;
      taken += 1;
    }
    if (taken === this.ready.length) clear(this.ready);
    else this.ready.splice(0, taken);
  }
}
