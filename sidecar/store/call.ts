// Hot path. One call to the store: the decisions of all groups that became ready in one turn of the event loop.
import type { Breaker } from '../limiter/breaker.ts';
import type { KeyedBucket } from '../limiter/bucket.ts';
import { clear } from '../limiter/element.ts';
import type { StoredLimit } from '../limiter/stored-limit.ts';
import { ACQUIRE, type Reply } from '../limiter/token-bucket.ts';
import type { Group } from './group.ts';
import { KeyPositions } from './key-positions.ts';
import type { Lane, Maintenance } from './lane.ts';
import type { FailureKind, StoreCall } from './store.ts';

/**
 * The script costs ~5 µs of the store's only thread a decision: 128 hold it for less than 1 ms, and its reply
 * fits one segment. A single decision over more buckets than that goes alone.
 */
export const MAX_KEYS_PER_CALL = 128;
/** With fewer keys than decisions the same bound holds for decisions. */
export const MAX_DECISIONS_PER_CALL = 128;

/** Who is told how a call ended. */
export interface CallOwner {
  onReply(call: Call, reply: Reply): void;
  onFailure(call: Call, kind: FailureKind, detail: string): void;
}

export class Call implements StoreCall {
  readonly keys: string[] = [];
  readonly limits: StoredLimit[] = [];
  readonly operations: number[] = [];
  /** One per acquiring decision; undefined once the group has left the call at its deadline. */
  readonly groups: (Group | undefined)[] = [];
  /** Where each group's decision begins in `operations`. */
  readonly starts: number[] = [];
  /** Decisions without a group. They come first: later ones can be undone arithmetically, a clamp cannot. */
  maintenance = 0;
  /** Per decision without a group: the tokens of a lease that it gives back, 0 when it is something else. */
  readonly returned: number[] = [];
  settled = false;
  sentUs = 0;
  /** The answer, once there is one. */
  reply: Reply = [];
  lane: Lane | undefined = undefined;
  /** Of the node it was sent to. */
  breaker: Breaker | undefined = undefined;
  readonly #positions = new KeyPositions();
  readonly #owner: CallOwner;

  constructor(owner: CallOwner) {
    this.#owner = owner;
  }

  /** The bucket each key was first named for. */
  get buckets(): readonly KeyedBucket[] {
    return this.#positions.buckets;
  }

  get decisions(): number {
    return this.maintenance + this.groups.length;
  }

  /** Where the levels begin in the reply. */
  get levelsAt(): number {
    return 1 + 2 * this.decisions;
  }

  /** How many requests of the `g`-th group may pass; −1 = a foreign value. */
  grantedTo(g: number): number {
    return Number(this.reply[1 + 2 * (this.maintenance + g)]);
  }

  /** µs until the first refused request of the `g`-th group would pass. */
  waitOf(g: number): number {
    return Number(this.reply[2 + 2 * (this.maintenance + g)]);
  }

  /** Sets the levels of the `g`-th group's buckets as they were after its decision. */
  readLevels(g: number, group: Group): void {
    const first = (this.starts[g] ?? 0) + 4;
    for (let i = 0; i < group.buckets.length; i += 1) {
      const position = this.operations[first + 2 * i] ?? 0;
      group.levels[i] = Number(this.reply[this.levelsAt + position - 1]);
    }
  }

  /** Undoes the `g`-th group's charge in the levels of the reply: what the decision before it left. */
  takeBack(g: number): void {
    const granted = this.grantedTo(g);
    if (granted <= 0) return;
    const start = this.starts[g] ?? 0;
    const end = start + 4 + 2 * (this.operations[start + 3] ?? 0);
    for (let b = start + 4; b < end; b += 2) {
      const position = this.operations[b] ?? 0;
      const upt = this.buckets[position - 1]?.bucket.stored.unitsPerToken ?? 0;
      const at = this.levelsAt + position - 1;
      this.reply[at] = Number(this.reply[at]) + granted * (this.operations[b + 1] ?? 0) * upt;
    }
  }

  /** How many requests wait for this call. */
  countLive(): number {
    let live = 0;
    for (const group of this.groups) live += group?.countLive(group.flying.length) ?? 0;
    return live;
  }

  /** The group leaves at its deadline. */
  dismiss(group: Group): void {
    const g = this.groups.indexOf(group);
    if (g >= 0) this.groups[g] = undefined;
  }

  /** Adds a group with its waiting requests; false when it has to go in another call. */
  addGroup(group: Group): boolean {
    if (!this.#hasRoom(group.buckets)) return false;
    const { operations } = this;
    this.starts.push(operations.length);
    this.groups.push(group);
    operations.push(ACQUIRE, group.depart(this) + group.prefetch, 0, group.buckets.length);
    for (let i = 0; i < group.buckets.length; i += 1) {
      operations.push(this.#position(group.buckets[i]), group.costs[i] ?? 0);
    }
    return true;
  }

  /** Adds a refund or charge; false when it has to go in another call. */
  addMaintenance({ operation, buckets, weight, leased }: Maintenance): boolean {
    if (this.groups.length > 0 || !this.#hasRoom(buckets)) return false;
    this.maintenance += 1;
    this.returned.push(leased);
    this.operations.push(operation, 1, 0, buckets.length);
    for (const bucket of buckets) this.operations.push(this.#position(bucket), weight);
    return true;
  }

  onReply(reply: Reply): void {
    this.#owner.onReply(this, reply);
  }

  onFailure(kind: FailureKind, detail: string): void {
    this.#owner.onFailure(this, kind, detail);
  }

  /** Back to what a new call is. Only for a call that has had its answer: a late one would hit the next. */
  reset(): void {
    clear(this.keys);
    clear(this.limits);
    clear(this.operations);
    clear(this.groups);
    clear(this.starts);
    this.maintenance = 0;
    clear(this.returned);
    this.settled = false;
    this.reply = [];
    this.lane = undefined;
    this.breaker = undefined;
    this.#positions.clear();
  }

  #hasRoom(buckets: readonly KeyedBucket[]): boolean {
    if (this.keys.length === 0) return true;
    if (this.decisions >= MAX_DECISIONS_PER_CALL) return false;
    if (this.keys.length + buckets.length > MAX_KEYS_PER_CALL) return false;
    for (const bucket of buckets) {
      const at = this.#positions.find(bucket);
      // A call names one limit per key. Two bundles meet here only while one replaces the other.
      if (at > 0 && this.limits[at - 1]?.text !== bucket.origin.bucket.stored.text) {
        return false;
      }
    }
    return true;
  }

  #position(bucket: KeyedBucket | undefined): number {
    if (bucket === undefined) throw new RangeError('a group with a hole');
    const known = this.#positions.find(bucket);
    if (known > 0) return known;
    this.keys.push(bucket.key);
    this.limits.push(bucket.origin.bucket.stored);
    return this.#positions.add(bucket);
  }
}
