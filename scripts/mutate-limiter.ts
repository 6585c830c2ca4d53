// Breaks the script and its twin one line at a time and runs the property test over each: a mutant that survives
// is arithmetic nobody checks. Run: npm run mutate:limiter [-- --out FILE]. On demand; it takes some minutes.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { readArguments } from './arguments.ts';
import { TokenBuckets } from '../sidecar/limiter/token-bucket.ts';
import { readScript } from '../sidecar/store/script-source.ts';
import { checkHistories, type TwinClass } from '../test/property/limiter-histories.ts';
import { openRedisServer } from '../test/support/redis.ts';

/** Histories per mutant. The real ones pass thousands; a mutant that lives through these is looked at by hand. */
const RUNS = 600;
const SEED = 20_260_101;
const TWIN = path.join(import.meta.dirname, '..', 'sidecar', 'limiter', 'token-bucket.ts');

/** What to replace by what; the text has to occur exactly once. */
type Mutant = readonly [original: string, mutated: string];

const scriptMutants: readonly Mutant[] = [
  ['q.full = q.capacity * q.upt', 'q.full = q.capacity * q.upt + 1'],
  ['q.full > MAX or q.rate', 'q.rate'],
  ['q.generation > MAX or', ''],
  ['q.full < 1 or', ''],
  ['or q.rate > MAX', ''],
  ['or q.tick > MAX', ''],
  ['q.rate < 1 or', ''],
  ['q.tick < 1 or', ''],
  ['floor(now / q.tick), ceil(now / q.tick)', 'floor(now / q.tick), floor(now / q.tick)'],
  ['floor(now / q.tick), ceil(now / q.tick)', 'ceil(now / q.tick), ceil(now / q.tick)'],
  ['if a * b <= MAX then return floor(a * b / c) end', 'do return floor(a * b / c) end'],
  ['rest - (c - rest), quotient + 1 else', 'rest - (c - rest), quotient else'],
  ['rest - (c - a), quotient + 1 else', 'rest - (c - a), quotient else'],
  ["if call('EXISTS', KEYS[i]) == 1 then lim[i] = false return end", ''],
  [
    'level[i], stamp[i], lim[i] = mine.full, mine.ended, mine',
    'level[i], stamp[i], lim[i] = mine.full, mine.begun, mine',
  ],
  [
    'level[i], stamp[i], lim[i] = mine.full, mine.ended, mine',
    'level[i], stamp[i], lim[i] = 0, mine.ended, mine',
  ],
  ['l > q.full or s > MAX', 's > MAX'],
  ['l > q.full or s > MAX', 'l > q.full'],
  ['if q.begun > s then', 'if q.begun ~= s then'],
  ['elapsed >= ceil((q.full - l) / q.rate)', 'elapsed > ceil((q.full - l) / q.rate)'],
  ['elapsed >= ceil((q.full - l) / q.rate)', 'elapsed >= floor((q.full - l) / q.rate)'],
  ['l = l + elapsed * q.rate end', 'l = l + (elapsed - 1) * q.rate end'],
  ['    s = q.begun\n', ''],
  ['* q.tick > MAX_CLOCK_AHEAD_US then', '* q.tick >= MAX_CLOCK_AHEAD_US then'],
  ['    s = q.ended\n    dirty[i] = true', '    s = q.ended'],
  ['    s = q.ended\n    dirty[i] = true', '    s = q.begun\n    dirty[i] = true'],
  ['q.generation <= mine.generation then', 'q.generation < mine.generation then'],
  ['q.generation <= mine.generation then', 'true then'],
  ['local whole = floor(l / q.upt)', 'local whole = ceil(l / q.upt)'],
  ['scale(l - whole * q.upt, mine.upt, q.upt)', '0'],
  ['if q.generation < mine.generation and mine.capacity', 'if mine.capacity'],
  ['whole = whole + mine.capacity - q.capacity', 'whole = mine.capacity'],
  ['if whole >= mine.capacity then l = mine.full else', 'if false then else'],
  ['s = max(mine.ended, ceil(s * q.tick / mine.tick)) end', 's = ceil(s * q.tick / mine.tick) end'],
  ['s = max(mine.ended, ceil(s * q.tick / mine.tick)) end', 's = mine.ended end'],
  [
    '      -- Kept even if denied: else an empty bucket lives on at its old rate.\n      dirty[i] = true',
    '',
  ],
  ['if l == q.full and s < q.ended then s = q.ended end', ''],
  ['want = min(want, max(0, out[2 * after]))', 'want = max(0, out[2 * after])'],
  ['want = min(want, max(0, out[2 * after]))', 'want = min(want, out[2 * after])'],
  ['floor(level[i] / (q.upt * weight[b]))', 'ceil(level[i] / (q.upt * weight[b]))'],
  ['op ~= PEEK and granted > 0', 'granted > 0'],
  ['units = min(q.full, l + units)', 'units = l + units'],
  ['units = max(0, l - units)', 'units = l - units'],
  ['if units ~= l then level[i] = units dirty[i] = true end', 'level[i] = units dirty[i] = true'],
  ['local ahead = op == PEEK and granted or 0', 'local ahead = 0'],
  ['if w > q.capacity then wait = -1 break end', 'if w >= q.capacity then wait = -1 break end'],
  ['if w > q.capacity then wait = -1 break end', ''],
  ['ceil(need / q.rate) * q.tick', 'floor(need / q.rate) * q.tick'],
  ['(max(stamp[i], q.begun) * q.tick - now)', '(q.begun * q.tick - now)'],
  ['(max(stamp[i], q.begun) * q.tick - now)', '0'],
  ['wait = max(wait, min(MAX,', 'wait = max(0, min(MAX,'],
  ['out[levels + i] = q and level[i] or -1', 'out[levels + i] = q and level[i] or 0'],
  [
    '(q.full - level[i]) / q.rate * q.tick + max(0, stamp[i] * q.tick - now)',
    '(q.full - level[i]) / q.rate * q.tick',
  ],
  ['(q.full - level[i]) / q.rate * q.tick + max(0, stamp[i] * q.tick - now)', '0'],
];

const twinMutants: readonly Mutant[] = [
  [
    'this.stamp = Math.ceil(nowUs / limit.tickUs);',
    'this.stamp = Math.floor(nowUs / limit.tickUs);',
  ],
  [
    'if (bringToNow(this.#state(i), limit, nowUs)) this.#changed[slot] = true;',
    'bringToNow(this.#state(i), limit, nowUs);',
  ],
  [
    'want = Math.min(want, Math.max(0, Number(reply[2 * after - 1])))',
    'want = Math.max(0, Number(reply[2 * after - 1]))',
  ],
  ['operation === REFUND ? want : -want', '-want'],
  ['if (operation === ACQUIRE) this.#move(pairs, -granted);', 'this.#move(pairs, -granted);'],
  ['const ahead = operation === PEEK ? granted : 0;', 'const ahead = 0;'],
  ['Math.floor(state.level / units)', 'Math.ceil(state.level / units)'],
  [
    'Math.min(state.limit.full, Math.max(0, state.level + units))',
    'Math.max(0, state.level + units)',
  ],
  [
    'Math.min(state.limit.full, Math.max(0, state.level + units))',
    'Math.min(state.limit.full, state.level + units)',
  ],
  [
    'if (weight > state.limit.capacity) return -1;',
    'if (weight >= state.limit.capacity) return -1;',
  ],
  ['if (weight > state.limit.capacity) return -1;', ''],
  [
    'Math.max(state.stamp, Math.floor(nowUs / tickUs)) * tickUs',
    'Math.floor(nowUs / tickUs) * tickUs',
  ],
  ['Math.ceil(need / unitsPerTick) * tickUs', 'Math.floor(need / unitsPerTick) * tickUs'],
  ['state.limit.generation <= mine.generation', 'state.limit.generation < mine.generation'],
  ['      keep = true;\n', ''],
  ['if (state.level === state.limit.full) {', 'if (false) {'],
  ['const tick = Math.floor(nowUs / tickUs);', 'const tick = Math.ceil(nowUs / tickUs);'],
  [
    'elapsed >= Math.ceil((full - state.level) / unitsPerTick)',
    'elapsed >= Math.floor((full - state.level) / unitsPerTick)',
  ],
  ['state.level + elapsed * unitsPerTick', 'state.level + (elapsed - 1) * unitsPerTick'],
  ['    state.stamp = tick;\n', ''],
  [
    '(state.stamp - end) * tickUs <= MAX_CLOCK_AHEAD_US',
    '(state.stamp - end) * tickUs < MAX_CLOCK_AHEAD_US',
  ],
  ['  state.stamp = end;\n', ''],
  ['Math.floor(state.level / old.unitsPerToken)', 'Math.ceil(state.level / old.unitsPerToken)'],
  ['if (old.generation < mine.generation) whole', 'whole'],
  ['Math.max(0, mine.capacity - old.capacity)', 'mine.capacity - old.capacity'],
  ['whole >= mine.capacity\n', 'whole > mine.capacity\n'],
  ['Math.max(Math.ceil(nowUs / mine.tickUs), stampInMine)', 'stampInMine'],
  [
    'Math.ceil((state.stamp * old.tickUs) / mine.tickUs)',
    'Math.floor((state.stamp * old.tickUs) / mine.tickUs)',
  ],
  ['if (a * b <= MAX_INTEGER) return', 'return'],
  ['if (double >= 0) quotient += 1;', ''],
  ['if (sum >= 0) quotient += 1;', ''],
  ['double >= 0 ? double : remainder + remainder', 'double > 0 ? double : remainder + remainder'],
];

const { values } = readArguments({
  command: 'npm run mutate:limiter',
  about: "Breaks each line of the limiter's arithmetic and shows that its property test notices.",
  lines: ['--out FILE   where to write the account as well'],
  config: { options: { out: { type: 'string' } } },
});
await using server = await openRedisServer();
const redis = server.client();
const script = readScript();
const twinSource = await readFile(TWIN, 'utf8');
const folder = await mkdtemp(path.join(path.dirname(TWIN), '.mutant-'));
const survivors: string[] = [];
const skipped: string[] = [];
let killed = 0;

try {
  await checkHistories({ redis, script, Twin: TokenBuckets }, { seed: SEED, runs: RUNS });
  for (const mutant of scriptMutants) {
    await judge('script', mutant, script, async (mutated) => {
      // A mutant that is no script at all would be killed by nothing but its syntax.
      await redis.script('LOAD', mutated);
      return { script: mutated, Twin: TokenBuckets };
    });
  }
  for (const [i, mutant] of twinMutants.entries()) {
    await judge('twin', mutant, twinSource, async (mutated) => ({
      script,
      Twin: await load(mutated, i),
    }));
  }
} finally {
  await rm(folder, { recursive: true });
}
await report();

async function judge(
  voice: string,
  [original, mutated]: Mutant,
  source: string,
  build: (mutated: string) => Promise<{ script: string; Twin: TwinClass }>,
): Promise<void> {
  const name = `${voice}: ${JSON.stringify(original)} → ${JSON.stringify(mutated)}`;
  if (source.split(original).length !== 2) {
    skipped.push(name);
    return;
  }
  const voices = await build(source.replace(original, () => mutated));
  const isKilled = await checkHistories(
    { redis, ...voices },
    { seed: SEED, runs: RUNS, isQuick: true },
  ).then(
    () => false,
    () => true,
  );
  if (isKilled) killed += 1;
  else survivors.push(name);
  process.stdout.write(isKilled ? '.' : 'S');
}

/** The twin's class from a mutated source beside the real one's neighbours. */
async function load(source: string, i: number): Promise<TwinClass> {
  const file = path.join(folder, `mutant-${i}.ts`);
  await writeFile(file, source.replaceAll("from './", "from '../"));
  const module: unknown = await import(pathToFileURL(file).href);
  if (typeof module === 'object' && module !== null && 'TokenBuckets' in module) {
    const { TokenBuckets: Twin } = module;
    if (isTwinClass(Twin)) return Twin;
  }
  throw new TypeError('the mutant exports no TokenBuckets');
}

function isTwinClass(value: unknown): value is TwinClass {
  return typeof value === 'function';
}

async function report(): Promise<void> {
  const total = killed + survivors.length;
  const lines = [
    `# Mutants of the limiter's arithmetic`,
    '',
    `\`npm run mutate:limiter\`: ${killed} of ${total} killed by ${RUNS} random histories (seed ${SEED}).`,
    '',
    ...(survivors.length === 0
      ? []
      : ['Survived:', ...survivors.map((name) => `- \`${name}\``), '']),
    ...(skipped.length === 0
      ? []
      : ['Not applied, the line is gone:', ...skipped.map((name) => `- \`${name}\``), '']),
  ];
  const text = lines.join('\n');
  console.log(`\n${text}`);
  if (values.out !== undefined) await writeFile(values.out, text);
  if (survivors.length > 0 || skipped.length > 0) process.exitCode = 1;
}
