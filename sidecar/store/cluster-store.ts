// The store on a Redis Cluster. Connections to its masters are ours, one each, so that every redirection is
// decided here: ioredis' own Cluster client would send a call again after a lost connection and charge twice.
import { Attempt, type Router } from './attempt.ts';
import { RedisNode, optionsFor } from './redis-node.ts';
import { Readiness, type RemoteStore, type RemoteStoreContext } from './remote-store.ts';
import { slotOf } from './slot.ts';
import { decideOneByOne } from './split-call.ts';
import type { HostPort, StoreSettings } from '../../contract/store-settings.ts';
import type { StoreCall, StoreLane, StoreListener, StoreNode } from './store.ts';

/** How soon the map of slots is asked for again while something is missing from it. */
const REFRESH_MS = 250;
/** How often it is asked for although nothing seems wrong. */
const REVIEW_MS = 15_000;
/** Masters of one Cluster; the same bound as the addresses in the settings would be too tight, Redis' own is 1 000. */
const MAX_NODES = 1_000;

type ClusterSettings = Extract<StoreSettings, { readonly kind: 'cluster' }>;

export class ClusterStore implements RemoteStore, Router {
  readonly partitions: number;
  readonly script: string;
  readonly digest: string;
  /** Stands for the master of a slot before it is known. */
  readonly nobody: StoreNode = { name: 'cluster' };
  listener: StoreListener | undefined = undefined;
  readonly #settings: ClusterSettings;
  readonly #context: RemoteStoreContext;
  readonly #nodes = new Map<string, RedisNode>();
  readonly #lanes = new Map<number, SlotLane>();
  /** Which master holds a slot, by slot. */
  readonly #masters: (RedisNode | undefined)[] = [];
  readonly #readiness = new Readiness();
  readonly #review: NodeJS.Timeout;
  #refresh: NodeJS.Timeout | undefined = undefined;
  #isAsking = false;
  #isDisposed = false;

  constructor(settings: ClusterSettings, context: RemoteStoreContext) {
    this.#settings = settings;
    this.#context = context;
    this.partitions = settings.partitions;
    this.script = context.script;
    this.digest = context.digest;
    for (const address of settings.addresses) this.#open(address);
    this.#review = setInterval(() => {
      this.#askForSlots();
    }, REVIEW_MS);
    this.#review.unref();
  }

  laneOf(tag: string): StoreLane {
    const slot = slotOf(tag);
    let lane = this.#lanes.get(slot);
    if (lane === undefined) {
      lane = new SlotLane(slot, this);
      this.#lanes.set(slot, lane);
    }
    return lane;
  }

  masterOf(slot: number): RedisNode | undefined {
    return this.#masters[slot];
  }

  nodeFor(call: StoreCall): RedisNode | undefined {
    return this.masterOf(slotOfCall(call));
  }

  onMoved(call: StoreCall, address: string): RedisNode | undefined {
    const node = this.nodeAt(address);
    this.#masters[slotOfCall(call)] = node;
    this.onDoubt();
    return node;
  }

  nodeAt(address: string): RedisNode | undefined {
    const colon = address.lastIndexOf(':');
    const host = address.slice(0, colon);
    const port = Number(address.slice(colon + 1));
    return host === '' || !Number.isInteger(port) ? undefined : this.#open({ host, port });
  }

  decideOneByOne(call: StoreCall): void {
    decideOneByOne(call, this);
  }

  onDoubt(): void {
    if (this.#refresh !== undefined || this.#isDisposed) return;
    this.#refresh = setTimeout(() => {
      this.#refresh = undefined;
      this.#askForSlots();
    }, REFRESH_MS);
    this.#refresh.unref();
  }

  connected(signal: AbortSignal): Promise<void> {
    const reason = (): string =>
      [...this.#nodes.values()].map(({ name, lastError }) => `${name}: ${lastError}`).join(', ');
    return this.#readiness.wait(signal, reason);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    clearInterval(this.#review);
    clearTimeout(this.#refresh);
    for (const node of this.#nodes.values()) node[Symbol.dispose]();
    return Promise.resolve();
  }

  #open(address: HostPort): RedisNode | undefined {
    const name = `${address.host}:${address.port}`;
    const known = this.#nodes.get(name);
    if (known !== undefined || this.#isDisposed || this.#nodes.size >= MAX_NODES) return known;
    const { credentials, tls } = this.#settings;
    const node = new RedisNode({
      name,
      redis: optionsFor(address, credentials, tls),
      script: this.script,
      clock: this.#context.clock,
      onReady: (ready) => {
        this.listener?.onReconnect(ready);
        this.#askForSlots();
      },
      onLost: () => {
        this.onDoubt();
      },
    });
    this.#nodes.set(name, node);
    return node;
  }

  #askForSlots(): void {
    if (this.#isAsking) return;
    const node = [...this.#nodes.values()].find(({ isReady }) => isReady);
    if (node === undefined) {
      this.onDoubt();
      return;
    }
    this.#isAsking = true;
    const end = (): void => {
      this.#isAsking = false;
    };
    node.send('cluster', ['SLOTS'], {
      onReply: (reply) => {
        end();
        this.#apply(parseSlots(reply, node.name));
      },
      onError: () => {
        end();
        this.onDoubt();
      },
    });
  }

  #apply(ranges: readonly SlotRange[]): void {
    if (this.#isDisposed) return;
    const masters = new Set<RedisNode>();
    for (const { first, last, address } of ranges) {
      const node = this.#open(address);
      if (node === undefined) continue;
      masters.add(node);
      for (let slot = first; slot <= last; slot += 1) this.#masters[slot] = node;
    }
    if (masters.size === 0) {
      this.onDoubt();
      return;
    }
    if ([...masters].some(({ isReady }) => !isReady)) this.onDoubt();
    else this.#readiness.onReady();
    this.#closeAllBut(masters);
  }

  /** Replicas and servers that left. Those of the settings stay, as places to ask. */
  #closeAllBut(masters: ReadonlySet<RedisNode>): void {
    const named = new Set(this.#settings.addresses.map(({ host, port }) => `${host}:${port}`));
    for (const [name, node] of this.#nodes) {
      if (masters.has(node) || named.has(name)) continue;
      this.#nodes.delete(name);
      this.#masters.forEach((master, slot) => {
        if (master === node) this.#masters[slot] = undefined;
      });
      node[Symbol.dispose]();
      this.listener?.onDeparture(node);
    }
  }
}

/** All hash tags of one slot. */
class SlotLane implements StoreLane {
  readonly synchronous = false;
  readonly #slot: number;
  readonly #store: ClusterStore;

  constructor(slot: number, store: ClusterStore) {
    this.#slot = slot;
    this.#store = store;
  }

  get node(): StoreNode {
    return this.#store.masterOf(this.#slot) ?? this.#store.nobody;
  }

  decide(call: StoreCall): void {
    new Attempt(call, this.#store).start();
  }
}

interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly address: HostPort;
}

/** Reads CLUSTER SLOTS. A server that does not know its own host answers with an empty one: it is who was asked. */
function parseSlots(reply: unknown, askedName: string): SlotRange[] {
  const ranges: SlotRange[] = [];
  const asked = askedName.slice(0, askedName.lastIndexOf(':'));
  for (const range of asList(reply)) {
    const [first, last, master] = asList(range);
    const [host, port] = asList(master);
    if (typeof first !== 'number' || typeof last !== 'number' || typeof port !== 'number') continue;
    const name = typeof host === 'string' && host !== '' ? host : asked;
    ranges.push({ first, last, address: { host: name, port } });
  }
  return ranges;
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function slotOfCall(call: StoreCall): number {
  const [, tag = ''] = /\{([^}]*)\}/.exec(call.keys[0] ?? '') ?? [];
  return slotOf(tag);
}
