// `failureMode: Local`: what one pod may admit while the store is away. N pods that share a bucket each get
// an N-th of it, so that together they admit no more than the policy's rate.
import { MAX_INTEGER, StoredLimit } from './stored-limit.ts';

/**
 * The limit of one of `replicas` pods (≥ 1): capacity / N (at least one token), N units where there was one,
 * the same rate. Never more than the share: where the exact integers would leave the range, both sides are
 * coarsened in the direction that refills more slowly.
 */
export function localShare(limit: StoredLimit, replicas: number): StoredLimit {
  const capacity = Math.max(1, Math.floor(limit.capacity / replicas));
  let unitsPerToken = BigInt(limit.unitsPerToken) * BigInt(replicas);
  let unitsPerTick = BigInt(limit.unitsPerTick);
  const most = BigInt(Math.floor(MAX_INTEGER / capacity));
  if (unitsPerToken > most) {
    const coarser = (unitsPerToken + most - 1n) / most;
    const rate = unitsPerTick / coarser;
    unitsPerTick = rate > 0n ? rate : 1n;
    // With a rate of one unit the largest bucket already takes 285 years to give a token back.
    unitsPerToken = rate > 0n ? (unitsPerToken + coarser - 1n) / coarser : most;
  }
  return new StoredLimit(limit.generation, {
    capacity,
    unitsPerToken: Number(unitsPerToken),
    unitsPerTick: Number(unitsPerTick),
    tickUs: limit.tickUs,
  });
}
