// Asks a real limiter as a gate does, but with a promise, for tests where time is real.
import { setTimeout as delay } from 'node:timers/promises';
import type { KeyedBuckets } from '../../sidecar/limiter/bucket.ts';
import type { Limiter } from '../../sidecar/store/limiter.ts';
import { RecordingWaiter, type Told } from './limiter-fixture.ts';

/** Asks for one request over `parts`, one token each or as `weights` says. */
export async function ask(
  limiter: Limiter,
  parts: readonly KeyedBuckets[],
  weights: readonly number[] = parts.map(() => 1),
): Promise<Told> {
  return new Promise((resolve) => {
    limiter.acquire(parts, weights, parts.length, new RecordingWaiter(resolve));
  });
}

/** Asks `count` times, one after the other. */
export async function askInTurn(
  limiter: Limiter,
  parts: readonly KeyedBuckets[],
  count: number,
): Promise<Told[]> {
  const told: Told[] = [];
  for (let i = 0; i < count; i += 1) told.push(await ask(limiter, parts));
  return told;
}

/** How many were admitted by the store, by a failure mode, or not. */
export interface Tally {
  admitted: number;
  degraded: number;
  refused: number;
  unavailable: number;
  /** Requests that heard twice, or not at all. */
  unsettled: number;
}

/**
 * Keeps `clients` asking, each again after its answer, until `isOver` says so; resolves when the last one has heard.
 * `pauseMs` is how long a client waits after an answer that came at once, so that a refusal is not a busy loop.
 */
export async function keepAsking(
  limiter: Limiter,
  partsOf: (client: number) => readonly KeyedBuckets[],
  {
    clients,
    pauseMs,
    isOver,
  }: {
    readonly clients: number;
    readonly pauseMs: number;
    readonly isOver: (tally: Readonly<Tally>) => boolean;
  },
): Promise<Tally> {
  const tally: Tally = { admitted: 0, degraded: 0, refused: 0, unavailable: 0, unsettled: 0 };
  const one = async (client: number): Promise<void> => {
    while (!isOver(tally)) {
      tally.unsettled += 1;
      const told = await ask(limiter, partsOf(client));
      tally.unsettled -= 1;
      count(tally, told);
      await delay(pauseMs);
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, client) => one(client)));
  return tally;
}

function count(tally: Tally, told: Told): void {
  if (told.kind === 'unavailable') tally.unavailable += 1;
  else if (told.kind === 'denied') tally.refused += 1;
  else if (told.degraded) tally.degraded += 1;
  else tally.admitted += 1;
}
