// A process of its own that asks as one of many sidecars would: `share` keeps asking one bucket until it has run dry, `flood`
// asks once for each of many keys and says what its memory came to.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import process from 'node:process';
import type { CompiledBucket } from '../../contract/bundle.ts';
import type { TierBuckets } from '../../sidecar/limiter/bucket.ts';
import { Limiter } from '../../sidecar/store/limiter.ts';
import { openStore } from '../../sidecar/store/open-store.ts';
import { parseStoreSettings } from '../../contract/store-settings.ts';
import { keepAsking, type Tally } from './asking.ts';
import { RecordingWaiter, tierOf } from './limiter-fixture.ts';

export interface LimiterProcessInput {
  readonly url: string;
  readonly uid: string;
  readonly buckets: readonly CompiledBucket[];
  /** Absent = without. */
  readonly lease?: boolean;
  readonly work:
    /** Until so many were admitted and so many refused. */
    | {
        readonly kind: 'share';
        readonly clients: number;
        readonly admitted: number;
        readonly refused: number;
      }
    | { readonly kind: 'flood'; readonly keys: number };
}

export interface LimiterProcessOutput {
  readonly tally: Tally;
  /** Heap in use after a tenth and after all of a flood, garbage collected. */
  readonly heapBytes: readonly [number, number];
  /** After the limiter has ended. */
  readonly counted: LimiterCounted;
}

export interface LimiterCounted {
  readonly storeCalls: number;
  readonly leaseGranted: number;
  readonly leaseUsed: number;
  readonly leaseRefunded: number;
  readonly leaseLost: number;
}

/** Runs the process to its end; what it counted. */
export async function runLimiterProcess(input: LimiterProcessInput): Promise<LimiterProcessOutput> {
  const child = fork(fileURLToPath(import.meta.url), {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const messages: unknown[] = [];
  child.on('message', (message) => messages.push(message));
  child.send(input);
  await once(child, 'exit');
  const [output] = messages;
  if (!isOutput(output)) throw new TypeError('the process did not tell what it counted');
  return output;
}

function isOutput(value: unknown): value is LimiterProcessOutput {
  return typeof value === 'object' && value !== null && 'tally' in value && 'heapBytes' in value;
}

function isInput(value: unknown): value is LimiterProcessInput {
  return typeof value === 'object' && value !== null && 'url' in value && 'work' in value;
}

async function serve(input: LimiterProcessInput): Promise<LimiterProcessOutput> {
  await using store = openStore(parseStoreSettings({ url: input.url }));
  await store.connected(AbortSignal.timeout(10_000));
  const limiter = new Limiter({ store, deadlineMs: 30_000, lease: input.lease ?? false });
  const done = await perform(limiter, input);
  await limiter[Symbol.asyncDispose]();
  const { storeCalls, leaseGranted, leaseUsed, leaseRefunded, leaseLost } = limiter.counters;
  const counted = { storeCalls, leaseGranted, leaseUsed, leaseRefunded, leaseLost };
  return { ...done, counted };
}

async function perform(limiter: Limiter, input: LimiterProcessInput): Promise<Done> {
  const { uid, buckets, work } = input;
  const tier = tierOf({ policy: { uid, failureMode: 'Local' }, buckets });
  if (work.kind === 'flood') return await flood(limiter, tier, work.keys);
  const parts = [limiter.keyed(tier, 'client')];
  const { clients, admitted, refused } = work;
  const isOver = (tally: Readonly<Tally>): boolean =>
    tally.admitted >= admitted && tally.refused >= refused;
  const tally = await keepAsking(limiter, () => parts, { clients, pauseMs: 0, isOver });
  return { tally, heapBytes: [0, 0] };
}

type Done = Pick<LimiterProcessOutput, 'tally' | 'heapBytes'>;

/** Asks once per key, 256 at a time. */
async function flood(limiter: Limiter, tier: TierBuckets, keys: number): Promise<Done> {
  const tally: Tally = { admitted: 0, degraded: 0, refused: 0, unavailable: 0, unsettled: 0 };
  let heapAtTenth = 0;
  await new Promise<void>((resolve) => {
    let next = 0;
    const askNext = (): void => {
      if (next >= keys) {
        if (tally.unsettled === 0) resolve();
        return;
      }
      const waiter = new RecordingWaiter(({ kind, degraded }) => {
        tally.unsettled -= 1;
        if (kind !== 'allowed') tally.refused += 1;
        else if (degraded) tally.degraded += 1;
        else tally.admitted += 1;
        askNext();
      });
      if (next === keys / 10) heapAtTenth = heapInUse();
      tally.unsettled += 1;
      next += 1;
      limiter.acquire([limiter.keyed(tier, `client ${next}`)], [1], 1, waiter);
    };
    for (let i = 0; i < 256; i += 1) askNext();
  });
  return { tally, heapBytes: [heapAtTenth, heapInUse()] };
}

function heapInUse(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.once('message', (input: unknown) => {
    if (!isInput(input)) throw new TypeError('no input');
    void serve(input).then((output) => {
      process.send?.(output);
      process.disconnect?.();
    });
  });
}
