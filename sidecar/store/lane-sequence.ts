// A request whose buckets stand in several lanes: other hash slots of a Cluster, or the pod's own buckets besides
// shared ones. No call can be atomic over them, so they are charged one after the other, the narrowest key
// first, and a refusal gives the earlier ones back.
import type { Bucket, KeyedBuckets } from '../limiter/bucket.ts';
import type { Lane } from './lane.ts';
import { AllowedOutcome, type LimitWaiter, type Outcome, type PendingRequest } from './outcome.ts';

/** The parts of a request that stand in one lane. */
export interface Stage {
  readonly lane: Lane;
  readonly parts: KeyedBuckets[];
  readonly weights: number[];
}

export interface SequenceOwner {
  acquireStage(stage: Stage, waiter: LimitWaiter, sinceUs: number): void;
  refundStage(stage: Stage): void;
}

export class LaneSequence implements LimitWaiter, PendingRequest {
  pending: PendingRequest | undefined = undefined;
  readonly #owner: SequenceOwner;
  readonly #stages: readonly Stage[];
  readonly #waiter: LimitWaiter;
  readonly #sinceUs: number;
  /** Stages that the store has charged. */
  readonly #charged: Stage[] = [];
  #next = 0;
  #tightest: Bucket | undefined = undefined;
  #level = -1;
  #degraded = false;

  constructor(
    owner: SequenceOwner,
    stages: readonly Stage[],
    request: { readonly waiter: LimitWaiter; readonly sinceUs: number },
  ) {
    this.#owner = owner;
    this.#stages = stages;
    this.#waiter = request.waiter;
    this.#sinceUs = request.sinceUs;
  }

  start(): void {
    this.#waiter.pending = this;
    this.#step();
  }

  onOutcome(outcome: Outcome): void {
    if (outcome.kind !== 'allowed') {
      for (const stage of this.#charged) this.#owner.refundStage(stage);
      this.#waiter.pending = undefined;
      this.#waiter.onOutcome(outcome);
      return;
    }
    const stage = this.#stages[this.#next];
    // A degraded stage was decided without the store: there is nothing to give back.
    if (!outcome.degraded && stage !== undefined) this.#charged.push(stage);
    this.#degraded ||= outcome.degraded;
    this.#keepTightest(outcome.tightest, outcome.level);
    this.#next += 1;
    this.#step();
  }

  isAsked(): boolean {
    return this.#charged.length > 0 || this.pending?.isAsked(this) === true;
  }

  /** What was charged stays charged. */
  cancel(waiter: LimitWaiter): void {
    this.pending?.cancel(this);
    waiter.pending = undefined;
  }

  #step(): void {
    const stage = this.#stages[this.#next];
    if (stage !== undefined) {
      this.#owner.acquireStage(stage, this, this.#sinceUs);
      return;
    }
    const outcome = new AllowedOutcome();
    outcome.tightest = this.#tightest;
    outcome.level = this.#level;
    outcome.degraded = this.#degraded;
    this.#waiter.pending = undefined;
    this.#waiter.onOutcome(outcome);
  }

  #keepTightest(bucket: Bucket | undefined, level: number): void {
    if (bucket === undefined) return;
    const best = this.#tightest;
    if (best === undefined || level / bucket.stored.full < this.#level / best.stored.full) {
      this.#tightest = bucket;
      this.#level = level;
    }
  }
}

/** One stage per lane, the lane with the narrowest key first; equal ones stay in the order given. */
export function stagesOf(
  parts: readonly KeyedBuckets[],
  weights: readonly number[],
  lanes: readonly Lane[],
): Stage[] {
  const stages: Stage[] = [];
  for (let i = 0; i < lanes.length; i += 1) {
    const lane = lanes[i];
    const part = parts[i];
    if (lane === undefined || part === undefined) continue;
    let stage = stages.find((known) => known.lane === lane);
    if (stage === undefined) {
      stage = { lane, parts: [], weights: [] };
      stages.push(stage);
    }
    stage.parts.push(part);
    stage.weights.push(weights[i] ?? 0);
  }
  return stages.sort((a, b) => breadth(a) - breadth(b));
}

/** Buckets of this pod come first, they cost no call; then the more parts a key has, the fewer clients share it. */
function breadth(stage: Stage): number {
  if (stage.lane.route.synchronous) return -Infinity;
  return -Math.max(...stage.parts.map(({ tier }) => tier.rule.key.length));
}
