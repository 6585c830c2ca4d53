// The third voice beside the script and its twin: an independent model in BigInt, one bucket and one token at a
// time, written for being obviously right and sharing no code with either.

export interface ModelLimit {
  readonly generation: number;
  readonly capacity: number;
  readonly unitsPerToken: number;
  readonly unitsPerTick: number;
  readonly tickUs: number;
}

export interface ModelDecision {
  readonly operation: 'acquire' | 'peek' | 'refund' | 'charge';
  readonly want: number;
  /** An earlier decision, from 1; 0 = none. */
  readonly after: number;
  readonly buckets: readonly { readonly key: number; readonly weight: number }[];
}

interface Limit {
  readonly generation: bigint;
  readonly capacity: bigint;
  readonly upt: bigint;
  readonly rate: bigint;
  readonly tick: bigint;
}

interface State {
  level: bigint;
  stamp: bigint;
  limit: Limit;
}

interface Loaded extends State {
  exists: boolean;
  foreign: boolean;
  keep: boolean;
}

export interface ModelResult {
  readonly granted: bigint;
  readonly wait: bigint;
}

const MOST = 9_000_000_000_000_000n;
const FIVE_SECONDS_US = 5_000_000n;

export class LimiterModel {
  readonly #states = new Map<string, State | 'foreign'>();

  /** Decides a call at `nowUs`; `limits` per key. */
  call(
    nowUs: bigint,
    keys: readonly string[],
    limits: readonly ModelLimit[],
    decisions: readonly ModelDecision[],
  ): { readonly results: ModelResult[]; readonly levels: bigint[] } {
    const loaded = keys.map((key, i) => this.#load(nowUs, key, toLimit(at(limits, i))));
    const results: ModelResult[] = [];
    for (const decision of decisions) {
      results.push(decide(decision, loaded, results, nowUs));
    }
    keys.forEach((key, i) => {
      const { exists, foreign, keep, level, stamp, limit } = at(loaded, i);
      if (!foreign && exists && keep) this.#states.set(key, { level, stamp, limit });
    });
    return { results, levels: loaded.map(({ foreign, level }) => (foreign ? -1n : level)) };
  }

  /** The text the script would have stored; undefined = no key; 'foreign' as set. */
  stateText(key: string): string | undefined {
    const state = this.#states.get(key);
    if (state === undefined || state === 'foreign') return state;
    const { generation, capacity, upt, rate, tick } = state.limit;
    return [state.level, state.stamp, generation, capacity, upt, rate, tick].join(' ');
  }

  setForeign(key: string): void {
    this.#states.set(key, 'foreign');
  }

  delete(key: string): void {
    this.#states.delete(key);
  }

  /** Whether the bucket is full at `nowUs` under the limit it is stored with. */
  isFull(key: string, nowUs: bigint): boolean {
    const state = this.#states.get(key);
    if (state === undefined || state === 'foreign') return true;
    const { level, limit } = refilled(state, nowUs);
    return level === limit.capacity * limit.upt;
  }

  #load(nowUs: bigint, key: string, mine: Limit): Loaded {
    const state = this.#states.get(key);
    if (state === 'foreign') {
      return { level: 0n, stamp: 0n, limit: mine, exists: true, foreign: true, keep: false };
    }
    if (state === undefined) {
      const level = mine.capacity * mine.upt;
      const stamp = ceilDiv(nowUs, mine.tick);
      return { level, stamp, limit: mine, exists: false, foreign: false, keep: false };
    }
    const now = refilled(state, nowUs);
    const loaded = { ...now, exists: true, foreign: false };
    if (mine.generation >= loaded.limit.generation) convert(loaded, mine, nowUs);
    const { limit } = loaded;
    if (loaded.level === limit.capacity * limit.upt) {
      loaded.stamp = larger(loaded.stamp, ceilDiv(nowUs, limit.tick));
    }
    return loaded;
  }
}

function refilled(state: State, nowUs: bigint): State & { keep: boolean } {
  const { limit } = state;
  const tick = nowUs / limit.tick;
  if (tick > state.stamp) {
    const full = limit.capacity * limit.upt;
    const level = smaller(full, state.level + (tick - state.stamp) * limit.rate);
    return { level, stamp: tick, limit, keep: false };
  }
  const end = ceilDiv(nowUs, limit.tick);
  const isStepped = (state.stamp - end) * limit.tick > FIVE_SECONDS_US;
  return { ...state, stamp: isStepped ? end : state.stamp, keep: isStepped };
}

function convert(loaded: Loaded, mine: Limit, nowUs: bigint): void {
  const old = loaded.limit;
  loaded.limit = mine;
  const isSame =
    old.capacity === mine.capacity &&
    old.upt === mine.upt &&
    old.rate === mine.rate &&
    old.tick === mine.tick;
  if (isSame) return;
  let tokens = loaded.level / old.upt;
  const fraction = ((loaded.level % old.upt) * mine.upt) / old.upt;
  if (mine.generation > old.generation && mine.capacity > old.capacity) {
    tokens += mine.capacity - old.capacity;
  }
  loaded.level = tokens >= mine.capacity ? mine.capacity * mine.upt : tokens * mine.upt + fraction;
  if (mine.tick !== old.tick) {
    const stamp = ceilDiv(loaded.stamp * old.tick, mine.tick);
    loaded.stamp = larger(stamp, ceilDiv(nowUs, mine.tick));
  }
  loaded.keep = true;
}

interface Charged {
  readonly state: Loaded;
  readonly units: bigint;
  readonly weight: bigint;
}

function decide(
  decision: ModelDecision,
  loaded: Loaded[],
  earlier: readonly ModelResult[],
  nowUs: bigint,
): ModelResult {
  const buckets = decision.buckets.map(({ key, weight }) => {
    const state = at(loaded, key);
    return { state, units: BigInt(weight) * state.limit.upt, weight: BigInt(weight) };
  });
  if (buckets.some(({ state }) => state.foreign)) return { granted: -1n, wait: 0n };
  let want = BigInt(decision.want);
  if (decision.after > 0) want = smaller(want, larger(0n, at(earlier, decision.after - 1).granted));
  switch (decision.operation) {
    case 'refund':
      for (const bucket of buckets) put(bucket.state, bucket.state.level + want * bucket.units);
      return { granted: want, wait: 0n };
    case 'charge':
      for (const bucket of buckets) put(bucket.state, bucket.state.level - want * bucket.units);
      return { granted: want, wait: 0n };
    case 'acquire':
    case 'peek':
      return take(buckets, want, nowUs, decision.operation === 'acquire');
  }
}

function put(state: Loaded, total: bigint): void {
  const level = larger(0n, smaller(state.limit.capacity * state.limit.upt, total));
  if (level === state.level) return;
  state.level = level;
  state.exists = true;
  state.keep = true;
}

function take(
  buckets: readonly Charged[],
  want: bigint,
  nowUs: bigint,
  isCharged: boolean,
): ModelResult {
  const levels = buckets.map(({ state }) => state.level);
  let granted = 0n;
  while (granted < want && buckets.every(({ units }, i) => at(levels, i) >= units)) {
    buckets.forEach(({ units }, i) => (levels[i] = at(levels, i) - units));
    granted += 1n;
  }
  const wait = granted < want ? waitFor(buckets, levels, nowUs) : 0n;
  if (isCharged)
    buckets.forEach(({ state }, i) => {
      put(state, at(levels, i));
    });
  return { granted, wait };
}

function waitFor(buckets: readonly Charged[], levels: readonly bigint[], nowUs: bigint): bigint {
  if (buckets.some(({ state, weight }) => weight > state.limit.capacity)) return -1n;
  let wait = 0n;
  buckets.forEach(({ state, units }, i) => {
    const { tick, rate } = state.limit;
    const missing = units - at(levels, i);
    if (missing <= 0n) return;
    // The first tick at whose beginning the level suffices, seen from now.
    const due = larger(state.stamp, nowUs / tick) + ceilDiv(missing, rate);
    wait = larger(wait, smaller(MOST, due * tick - nowUs));
  });
  return wait;
}

function toLimit(limit: ModelLimit): Limit {
  return {
    generation: BigInt(limit.generation),
    capacity: BigInt(limit.capacity),
    upt: BigInt(limit.unitsPerToken),
    rate: BigInt(limit.unitsPerTick),
    tick: BigInt(limit.tickUs),
  };
}

function ceilDiv(a: bigint, b: bigint): bigint {
  return a <= 0n ? -(-a / b) : (a + b - 1n) / b;
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

function at<Item>(items: readonly Item[], i: number): Item {
  const item = items[i];
  if (item === undefined) throw new RangeError(`no item ${i}`);
  return item;
}
