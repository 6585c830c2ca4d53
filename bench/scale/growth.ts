// What grows by repetition of one load: sidecars, rules, keys, connections. Each point is a fresh sidecar (or several)
// on the stage's Redis, so that no point inherits the memory of another.
import { contender } from '../contender.ts';
import type { Contender } from '../contender.ts';
import type { Meter } from '../meter.ts';
import { loadPaced } from '../paced.ts';
import { startSidecar, writePolicy } from '../sidecar.ts';
import type { Sidecar } from '../sidecar.ts';
import type { Stage } from '../stage.ts';
import { loadWithWrk, writeKeyScript } from '../wrk.ts';
import type { LoadOptions } from '../wrk.ts';
import type { HotKeyCell, KeysCell, RulesCell, SidecarsCell } from './scale-result.ts';

/** So little that eight sidecars, Redis, the load and the upstream leave two cores room: the rate is then kept. */
export const PER_SECOND_EACH = 1_000;
/** Requests that reach a sidecar together, as under load: alone, each would mostly cost the waking of two processes. */
export const BURST = 16;
const KEYS = 2_000;
const CONNECTIONS = 32;
const WARM_UP_SECONDS = 2;
const SECONDS = 3;

/** `count` sidecars on one Redis, all with the same keys, each with the same rate. */
export async function measureSidecars(
  stage: Stage,
  meter: Meter,
  { count, round }: { readonly count: number; readonly round: number },
): Promise<SidecarsCell> {
  await using stack = new AsyncDisposableStack();
  const { folder, upstream, redis } = stage;
  const policy = await writePolicy(folder, 'many-sidecars');
  const sidecars: Sidecar[] = [];
  for (let i = 0; i < count; i += 1) {
    sidecars.push(stack.use(await startSidecar({ policy, upstream, redis })));
  }
  const load = {
    ports: sidecars.map(({ port }) => port),
    perSecond: count * PER_SECOND_EACH,
    burst: BURST,
    keys: Array.from({ length: KEYS }, (_, i) => `client-${String(i)}`),
  };
  await loadPaced({ ...load, seconds: WARM_UP_SECONDS });
  const all = { processes: sidecars.map((one) => one.process), usesRedis: true };
  const measured = await meter.measure(all, () => loadPaced({ ...load, seconds: SECONDS }));
  return { sidecars: count, round, ...measured };
}

/** `count` rules of which one applies, many keys, a closed loop. */
export async function measureRules(
  stage: Stage,
  meter: Meter,
  { count, round }: { readonly count: number; readonly round: number },
): Promise<RulesCell> {
  await using stack = new AsyncDisposableStack();
  const options = { name: `rules-${String(count)}`, otherRules: count - 1 };
  const weir = await startAlone({ ...stage, stack }, options);
  const script = await writeKeyScript(stage.folder, KEYS);
  const load = closedLoop(weir, { script });
  await loadWithWrk({ ...load, seconds: WARM_UP_SECONDS });
  return { rules: count, round, ...(await meter.load(weir, load)) };
}

/** A machine that is slower than this sees not every key; the result then says how many requests there were. */
const SLOWEST_PER_SECOND = 20_000;

/** `count` keys in turns until each was used, at least for some seconds. */
export async function measureKeys(stage: Stage, meter: Meter, count: number): Promise<KeysCell> {
  await using stack = new AsyncDisposableStack();
  const weir = await startAlone({ ...stage, stack }, { name: 'many-keys' });
  const script = await writeKeyScript(stage.folder, count);
  const load = closedLoop(weir, { script });
  await loadWithWrk({ ...load, seconds: WARM_UP_SECONDS });
  const seconds = Math.max(SECONDS, Math.ceil(count / SLOWEST_PER_SECOND));
  return { keys: count, ...(await meter.load(weir, { ...load, seconds })) };
}

/** One key on `connections` connections. */
export async function measureHotKey(
  stage: Stage,
  meter: Meter,
  connections: number,
): Promise<HotKeyCell> {
  await using stack = new AsyncDisposableStack();
  const weir = await startAlone({ ...stage, stack }, { name: 'hot-key' });
  const load = { ...closedLoop(weir, { key: 'hot' }), connections };
  await loadWithWrk({ ...load, seconds: WARM_UP_SECONDS });
  return { connections, ...(await meter.load(weir, load)) };
}

function closedLoop({ port }: Contender, keys: LoadOptions['keys']): LoadOptions {
  return { port, connections: CONNECTIONS, seconds: SECONDS, keys };
}

/** One sidecar on the stage's Redis, which ends with the stage's stack. */
export async function startAlone(
  stage: Stage,
  {
    name,
    otherRules = 0,
    flags = [],
  }: {
    readonly name: string;
    readonly otherRules?: number;
    readonly flags?: readonly string[];
  },
): Promise<Contender> {
  const { folder, upstream, redis } = stage;
  const policy = await writePolicy(folder, name, { otherRules });
  const sidecar = stage.stack.use(await startSidecar({ policy, upstream, redis, flags }));
  return { ...contender('weir', sidecar.port, [sidecar.process]), usesRedis: true };
}
