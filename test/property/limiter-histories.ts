// Random histories of calls, run through the script in a real Redis, through its TypeScript twin and through the
// BigInt model: every grant, wait, level and stored state has to agree. The clock is injected into a test build
// of the script, and expiry is emulated on that clock; nothing else of the script is changed.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { StoredLimit } from '../../sidecar/limiter/stored-limit.ts';
import type { Batch, BucketState, BucketTable, Reply } from '../../sidecar/limiter/token-bucket.ts';
import { encodeCall } from '../../sidecar/store/script-arguments.ts';
import { LimiterModel, type ModelDecision, type ModelLimit } from './limiter-model.ts';

const START_US = 1_758_000_000_000_000;
const KEYS = 5;
const DAY_MS = 86_400_000;

/** The twin's class, so that a mutant can take its place. */
export type TwinClass = new (table: BucketTable) => {
  decide(batch: Batch, nowUs: number, reply: Reply): void;
};

export interface Voices {
  readonly redis: Redis;
  readonly script: string;
  readonly Twin: TwinClass;
}

/** What the histories went through, so that a test can tell that nothing important was missed. */
export class HistoryCounts {
  calls = 0;
  decisions = 0;
  denied = 0;
  partial = 0;
  foreign = 0;
  newer = 0;
  expired = 0;
  probes = 0;
}

type Limits = readonly [ModelLimit, ModelLimit, ModelLimit];

interface HistoryCall {
  readonly step: number;
  readonly decisions: readonly ModelDecision[];
  /** Which of its three limits each key is asked under. */
  readonly generations: readonly number[];
  readonly damage: { readonly key: number; readonly kind: Damage } | null;
  readonly probe: boolean;
}

type Damage = keyof typeof foreignTexts | 'list' | 'delete';

interface History {
  readonly limits: readonly Limits[];
  readonly raises: readonly number[];
  readonly isClean: boolean;
  readonly calls: readonly HistoryCall[];
}

const foreignTexts = {
  text: 'hello',
  big: '99999999999999999999 1 1 1 1 1 1',
  zeroRate: '1 1 1 1 1 0 1',
  overfull: '11 5 1 10 1 1 1',
  short: '1 1 1 1 1 1',
  noTick: '1 1 1 1 1 1 0',
  bigStamp: '1 9000000000000001 1 1 1 1 1',
  bigCapacity: '1 1 1 9000000000000001 1 1 1',
  bigRate: '1 1 1 1 1 9000000000000001 1',
  bigTick: '1 1 1 1 1 1 9000000000000001',
  bigGeneration: '1 1 9000000000000001 1 1 1 1',
  nothing: '1 1 1 0 1 1 1',
} as const;

const foreignKinds = Object.keys(foreignTexts).filter(isForeignKind);

function isForeignKind(kind: string): kind is keyof typeof foreignTexts {
  return kind in foreignTexts;
}

/** Policy numbers to the exact integers, as the compiler does it. */
function compile(capacity: number, tokens: number, everyMs: number): ModelLimit | undefined {
  for (const tickUs of [1, 1_000, 1_000_000]) {
    const every = everyMs * 1_000;
    if (every % tickUs !== 0) return undefined;
    const divisor = greatestCommonDivisor(tokens, every / tickUs);
    const unitsPerToken = every / tickUs / divisor;
    if (BigInt(capacity) * BigInt(unitsPerToken) > 9_000_000_000_000_000n) continue;
    return { generation: 1, capacity, unitsPerToken, unitsPerTick: tokens / divisor, tickUs };
  }
  return undefined;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

const limit = fc
  .tuple(
    fc.oneof(
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 3_000 }),
      fc.constantFrom(1_000_000, 100_000_000, 999_983),
    ),
    fc.oneof(
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 5_000 }),
      fc.constantFrom(100_000_000, 999_983),
    ),
    fc.constantFrom(
      1,
      7,
      100,
      1_000,
      60_000,
      3_600_000,
      DAY_MS,
      30 * DAY_MS,
      366 * DAY_MS,
      366 * DAY_MS - 1,
    ),
  )
  .map(([capacity, tokens, everyMs]) => compile(capacity, tokens, everyMs))
  .filter((found) => found !== undefined);

const step = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 3_000 }) },
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 3_000_000 }) },
  { weight: 2, arbitrary: fc.integer({ min: -8_000_000, max: 8_000_000 }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(0, 1, -1, 5e6, -5e6, -5_000_001, 3.6e9, -3.6e9, 8.64e10, 3.2e13),
  },
);

const bucket = fc.record({
  key: fc.integer({ min: 0, max: KEYS - 1 }),
  weight: fc.oneof(
    { weight: 6, arbitrary: fc.constant(1) },
    { weight: 3, arbitrary: fc.integer({ min: 1, max: 12 }) },
    { weight: 1, arbitrary: fc.constantFrom(1_000, 1_000_000, 100_000_000) },
  ),
});

const decision = fc.record({
  operation: fc.constantFrom(
    ...([
      'acquire',
      'acquire',
      'acquire',
      'acquire',
      'acquire',
      'peek',
      'refund',
      'charge',
    ] as const),
  ),
  want: fc.oneof(
    { weight: 5, arbitrary: fc.integer({ min: 1, max: 3 }) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 50 }) },
  ),
  after: fc.integer({ min: 0, max: 6 }),
  buckets: fc.uniqueArray(bucket, { minLength: 1, maxLength: 4, selector: ({ key }) => key }),
});

const history: fc.Arbitrary<History> = fc.record({
  limits: fc.array(fc.tuple(limit, limit, limit), { minLength: KEYS, maxLength: KEYS }),
  raises: fc.array(fc.constantFrom(0, 1, 1), { minLength: 2, maxLength: 2 }),
  isClean: fc.boolean(),
  calls: fc.array(
    fc.record({
      step,
      decisions: fc.array(decision, { minLength: 1, maxLength: 8 }),
      generations: fc.array(fc.integer({ min: 0, max: 2 }), { minLength: KEYS, maxLength: KEYS }),
      damage: fc.oneof(
        { weight: 9, arbitrary: fc.constant(null) },
        {
          weight: 1,
          arbitrary: fc.record({
            key: fc.integer({ min: 0, max: KEYS - 1 }),
            kind: fc.constantFrom<Damage>('delete', 'list', ...foreignKinds),
          }),
        },
      ),
      probe: fc.boolean(),
    }),
    { minLength: 1, maxLength: 40 },
  ),
});

export interface HistoryRange {
  readonly seed: number;
  readonly runs: number;
  /** Rejects with the first mismatch instead of looking for the smallest. */
  readonly isQuick?: boolean;
}

/** Runs `runs` random histories from `seed`. Rejects with the smallest one in which the voices disagree. */
export async function checkHistories(
  voices: Voices,
  { seed, runs, isQuick = false }: HistoryRange,
): Promise<HistoryCounts> {
  const counts = new HistoryCounts();
  const digest = String(await voices.redis.script('LOAD', testBuild(voices.script)));
  let run = 0;
  const property = fc.asyncProperty(history, async (story) => {
    run += 1;
    await new HistoryRun(voices, digest, counts, `t:{${seed}.${run}}`).play(story);
  });
  await fc.assert(property, { numRuns: runs, seed, endOnFailure: isQuick });
  return counts;
}

/** The script with the last argument as its clock; it also returns what it stored, and the TTLs it chose. */
function testBuild(script: string): string {
  const built = script
    .replace(
      /local time = call\('TIME'\)\nlocal now = .*\n/,
      'local now = tonumber(table.remove(ARGV))\nlocal ttls = {}\n',
    )
    .replace(
      "'PX', ttl)",
      "'PX', '100000000000') ttls[#ttls + 1] = i ttls[#ttls + 1] = format('%d', ttl)",
    )
    .replace(/\nreturn out\s*$/, "\nreturn {out, call('MGET', unpack(KEYS)), ttls}\n");
  assert.ok(
    built.includes('table.remove') && built.includes('ttls[#ttls') && built.includes('return {out'),
  );
  return built;
}

interface Answer {
  readonly results: readonly { readonly granted: bigint; readonly wait: bigint }[];
  readonly levels: readonly bigint[];
  /** Keys under another limit than they were asked under, with its text. */
  readonly others: readonly (string | number)[];
}

/** The keys of one call, by position, and what each is asked under. */
interface Frame {
  readonly used: readonly number[];
  readonly limits: readonly ModelLimit[];
  readonly isClean: boolean;
}

const CODES = { acquire: 0, peek: 1, refund: 2, charge: 3 } as const;

class HistoryRun {
  readonly #voices: Voices;
  readonly #digest: string;
  readonly #counts: HistoryCounts;
  readonly #names: readonly string[];
  readonly #model = new LimiterModel();
  readonly #table = new MapTable();
  readonly #twin: InstanceType<TwinClass>;
  /** When each key expires, by position, in µs. */
  readonly #expiry = new Map<number, bigint>();
  #nowUs = START_US;

  constructor(voices: Voices, digest: string, counts: HistoryCounts, prefix: string) {
    this.#voices = voices;
    this.#digest = digest;
    this.#counts = counts;
    this.#names = Array.from({ length: KEYS }, (_, i) => `${prefix}:${i}`);
    this.#twin = new voices.Twin(this.#table);
  }

  async play(story: History): Promise<void> {
    for (const call of story.calls) {
      this.#nowUs = Math.max(START_US - 10_000_000_000, this.#nowUs + call.step);
      await this.#expire();
      if (call.damage !== null) await this.#damage(call.damage, story.isClean);
      await this.#playCall(story, call);
    }
    await this.#voices.redis.del(...this.#names);
  }

  async #playCall(story: History, call: HistoryCall): Promise<void> {
    const ordered = call.decisions.map((d, i) => ({ ...d, after: d.after <= i ? d.after : 0 }));
    const used = [...new Set(ordered.flatMap(({ buckets }) => buckets.map(({ key }) => key)))];
    const limits = used.map((key) => limitOf(story, key, call.generations));
    const decisions = ordered.map((d) => ({
      ...d,
      buckets: d.buckets.map(({ key, weight }) => ({ key: used.indexOf(key), weight })),
    }));
    const frame = { used, limits, isClean: story.isClean };
    const answer = await this.#ask(this.#nowUs, frame, decisions);
    this.#count(decisions, answer);
    const last = decisions.at(-1);
    const result = answer.results.at(-1);
    if (
      call.probe &&
      last?.operation === 'acquire' &&
      last.after === 0 &&
      last.want > 0 &&
      result?.granted === 0n
    ) {
      await this.#probe(frame, last, result.wait);
    }
  }

  /** Refused again one µs before the wait is over, admitted when it is. */
  async #probe(frame: Frame, last: ModelDecision, wait: bigint): Promise<void> {
    if (wait <= 0n || wait > 4_000_000_000_000_000n) return;
    this.#counts.probes += 1;
    const peek: ModelDecision = { ...last, operation: 'peek', want: 1, after: 0 };
    const due = this.#nowUs + Number(wait);
    const early = await this.#ask(due - 1, frame, [peek]);
    const punctual = await this.#ask(due, frame, [peek]);
    assert.equal(early.results[0]?.granted, 0n, `admitted before its wait of ${wait} µs`);
    assert.equal(punctual.results[0]?.granted, 1n, `refused after its wait of ${wait} µs`);
  }

  /** Asks all voices the same and holds their answers together. */
  async #ask(
    nowUs: number,
    { used, limits, isClean }: Frame,
    decisions: readonly ModelDecision[],
  ): Promise<Answer> {
    const keys = used.map((key) => this.#names[key] ?? '');
    const texts = limits.map(textOf);
    const model = this.#model.call(BigInt(nowUs), keys, limits, decisions);
    const { answer, states, ttls } = await this.#askScript(nowUs, keys, texts, decisions);
    this.#counts.calls += 1;
    assert.deepEqual(answer.results, model.results, 'grants and waits: script ≠ model');
    assert.deepEqual(answer.levels, model.levels, 'levels: script ≠ model');
    keys.forEach((key, i) => {
      const state = this.#model.stateText(key);
      if (state !== 'foreign')
        assert.equal(states[i] ?? undefined, state, 'stored state: script ≠ model');
    });
    for (let i = 0; i + 1 < ttls.length; i += 2) {
      const key = used[Number(ttls[i]) - 1] ?? 0;
      this.#expiry.set(key, BigInt(nowUs) + BigInt(ttls[i + 1] ?? 0) * 1_000n);
    }
    if (isClean) {
      const twin = this.#askTwin(nowUs, keys, limits, decisions);
      assert.deepEqual(twin, answer, 'twin ≠ script');
      keys.forEach((key, i) => {
        assert.equal(this.#table.text(key), states[i] ?? undefined, 'stored state: twin ≠ script');
      });
    }
    return answer;
  }

  async #askScript(
    nowUs: number,
    keys: readonly string[],
    texts: readonly string[],
    decisions: readonly ModelDecision[],
  ): Promise<{
    answer: Answer;
    states: readonly (string | null)[];
    ttls: readonly (string | number)[];
  }> {
    const operations = decisions.flatMap(({ operation, want, after, buckets }) => [
      ...[CODES[operation], want, after, buckets.length],
      ...buckets.flatMap(({ key, weight }) => [key + 1, weight]),
    ]);
    const limits = texts.map((text) => ({ text }));
    const args = encodeCall({ keys, limits, operations }, this.#digest);
    const raw: unknown = await this.#voices.redis.call('evalsha', ...args, nowUs);
    assert.ok(Array.isArray(raw));
    const [reply, states, ttls] = raw as [
      (string | number)[],
      (string | null)[],
      (string | number)[],
    ];
    return { answer: readReply(reply, decisions.length, keys.length), states, ttls };
  }

  #askTwin(
    nowUs: number,
    keys: readonly string[],
    limits: readonly ModelLimit[],
    decisions: readonly ModelDecision[],
  ): Answer {
    const operations: number[] = [];
    for (const { operation, want, after, buckets } of decisions) {
      operations.push(CODES[operation], want, after, buckets.length);
      for (const { key, weight } of buckets) operations.push(key + 1, weight);
    }
    const stored = limits.map((numbers) => new StoredLimit(numbers.generation, numbers));
    const reply: Reply = [];
    this.#twin.decide({ keys, limits: stored, operations }, nowUs, reply);
    return readReply(reply, decisions.length, keys.length);
  }

  async #expire(): Promise<void> {
    for (const [key, due] of this.#expiry) {
      if (BigInt(this.#nowUs) < due) continue;
      const name = this.#names[key] ?? '';
      this.#counts.expired += 1;
      // Gone must mean full, or expiry would give tokens away.
      assert.ok(this.#model.isFull(name, BigInt(this.#nowUs)), 'a key expired before it was full');
      await this.#delete(key);
    }
  }

  async #damage({ key, kind }: { key: number; kind: Damage }, isClean: boolean): Promise<void> {
    const name = this.#names[key] ?? '';
    await this.#delete(key);
    // The twin's memory holds nothing foreign, so histories it takes part in only lose keys.
    if (kind === 'delete' || isClean) return;
    this.#model.setForeign(name);
    if (kind === 'list') await this.#voices.redis.lpush(name, 'x');
    else await this.#voices.redis.set(name, foreignTexts[kind]);
  }

  async #delete(key: number): Promise<void> {
    const name = this.#names[key] ?? '';
    await this.#voices.redis.del(name);
    this.#model.delete(name);
    this.#table.delete(name);
    this.#expiry.delete(key);
  }

  #count(decisions: readonly ModelDecision[], answer: Answer): void {
    const counts = this.#counts;
    counts.decisions += decisions.length;
    counts.newer += answer.others.length / 2;
    decisions.forEach(({ operation, want }, i) => {
      const granted = answer.results[i]?.granted ?? 0n;
      if (granted < 0n) counts.foreign += 1;
      else if (operation === 'acquire' && granted === 0n) counts.denied += 1;
      else if (operation === 'acquire' && granted < BigInt(want)) counts.partial += 1;
    });
  }
}

/** Generations 1, 2 and 3 of a key; a raise of 0 is the same generation with other numbers. */
function limitOf(story: History, key: number, generations: readonly number[]): ModelLimit {
  const which = generations[key] ?? 0;
  const numbers = story.limits[key]?.[which];
  assert.ok(numbers !== undefined);
  const generation = 1 + story.raises.slice(0, which).reduce((sum, raise) => sum + raise, 0);
  return { ...numbers, generation };
}

function textOf(numbers: ModelLimit): string {
  const { generation, capacity, unitsPerToken, unitsPerTick, tickUs } = numbers;
  return `${generation} ${capacity} ${unitsPerToken} ${unitsPerTick} ${tickUs}`;
}

function readReply(reply: Reply, decisions: number, keys: number): Answer {
  const levels = 1 + 2 * decisions;
  return {
    results: Array.from({ length: decisions }, (_, d) => ({
      granted: BigInt(reply[1 + 2 * d] ?? -9),
      wait: BigInt(reply[2 + 2 * d] ?? -9),
    })),
    levels: reply.slice(levels, levels + keys).map(BigInt),
    others: reply.slice(levels + keys),
  };
}

class MapTable implements BucketTable {
  readonly #states = new Map<string, BucketState>();

  open(key: string): BucketState | undefined {
    return this.#states.get(key);
  }

  insert(key: string, state: BucketState): void {
    this.#states.set(key, state);
  }

  delete(key: string): void {
    this.#states.delete(key);
  }

  text(key: string): string | undefined {
    const state = this.#states.get(key);
    return state && `${state.level} ${state.stamp} ${state.limit.text}`;
  }
}
