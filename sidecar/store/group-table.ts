// Hot path. Finds the group a request belongs to, by what it asks for, and keeps idle groups for reuse.
import type { Ask } from './ask.ts';
import { Group, type PendingCount } from './group.ts';
import type { Lane } from './lane.ts';

/** Groups kept for reuse: what a busy turn needs; beyond it the garbage collector may have them. */
const MAX_SPARE = 512;
/** A power of two; twice the groups of a busy turn, so that chains are short. */
const CHAINS = 1_024;

export class GroupTable {
  readonly #count: PendingCount;
  /**
   * Groups with somebody waiting or on a call, or with a lease, chained by hash. A Map would make a new table every few
   * dozen requests, because each of them comes and goes.
   */
  readonly #chains: (Group | undefined)[] = new Array<Group | undefined>(CHAINS).fill(undefined);
  readonly #spare: Group[] = [];

  constructor(count: PendingCount) {
    this.#count = count;
  }

  /** The group that asks for the same, if one is under way, else a new one. */
  join(lane: Lane, ask: Ask): Group {
    const hash = hashOf(ask);
    const first = this.#chains[hash];
    const group = firstThatAsks(first, ask);
    if (group !== undefined) return group;
    const opened = this.open(lane, ask);
    opened.hash = hash;
    opened.next = first;
    opened.isRegistered = true;
    this.#chains[hash] = opened;
    return opened;
  }

  /** The group that asks for the same, if there is one. */
  find(ask: Ask): Group | undefined {
    return firstThatAsks(this.#chains[hashOf(ask)], ask);
  }

  /** A group that nobody else can join. */
  open(lane: Lane, ask: Ask): Group {
    const group = this.#spare.pop() ?? new Group(this.#count);
    group.open(lane, ask);
    return group;
  }

  /** The group is idle. */
  close(group: Group): void {
    if (group.isRegistered) this.#unlink(group);
    group.close();
    if (this.#spare.length < MAX_SPARE) this.#spare.push(group);
  }

  /** All groups that others can join, as a list of its own: it may change while it is walked. */
  all(): Group[] {
    const all: Group[] = [];
    for (const first of this.#chains) {
      for (let group: Group | undefined = first; group !== undefined; group = group.next) {
        all.push(group);
      }
    }
    return all;
  }

  #unlink(group: Group): void {
    const first = this.#chains[group.hash];
    if (first === group) {
      this.#chains[group.hash] = group.next;
      return;
    }
    let previous = first;
    while (previous !== undefined && previous.next !== group) previous = previous.next;
    if (previous !== undefined) previous.next = group.next;
  }
}

function firstThatAsks(first: Group | undefined, ask: Ask): Group | undefined {
  let group = first;
  while (group !== undefined && !group.asks(ask)) group = group.next;
  return group;
}

function hashOf(ask: Ask): number {
  let hash = ask.shadow ? 1 : 0;
  for (let i = 0; i < ask.count; i += 1) {
    hash = (Math.imul(hash, 31) + (ask.parts[i]?.id ?? 0)) | 0;
    hash = (Math.imul(hash, 31) + (ask.weights[i] ?? 0)) | 0;
  }
  return hash & (CHAINS - 1);
}
