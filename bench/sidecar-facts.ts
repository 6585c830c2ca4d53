// What the budget says about the sidecar alone: memory, start, and one bucket under many connections.
import { setTimeout as delay } from 'node:timers/promises';
import { contender } from './contender.ts';
import type { Meter } from './meter.ts';
import type { SidecarFacts } from './peers-result.ts';
import { residentMb } from './pinned-process.ts';
import { EXACT_CAPACITY, startSidecar, writePolicy } from './sidecar.ts';
import type { Stage } from './stage.ts';

const STARTS = 5;
/** Long enough for what a start leaves to settle. */
const IDLE_MS = 3_000;
const CONNECTIONS = 64;
/** The bucket is used up in half a second: whoever is still waiting for an answer at the end was refused. */
const SECONDS = 3;

export async function measureSidecar(
  stage: Stage,
  meter: Meter,
): Promise<Omit<SidecarFacts, 'loadMb'>> {
  const policy = await writePolicy(stage.folder, 'alone');
  const options = { policy, upstream: stage.upstream, redis: stage.redis };
  const readyMs: number[] = [];
  for (let i = 0; i < STARTS; i += 1) {
    await using sidecar = await startSidecar(options);
    readyMs.push(sidecar.readyMs);
  }
  await using sidecar = await startSidecar(options);
  await delay(IDLE_MS);
  const idleMb = await residentMb(sidecar.process.id);
  const alone = { ...contender('weir', sidecar.port, [sidecar.process]), usesRedis: true };
  const load = { port: sidecar.port, connections: CONNECTIONS };
  const exact = await meter.load(alone, { ...load, seconds: SECONDS, keys: { key: 'exact' } });
  const hot = await meter.load(alone, { ...load, seconds: SECONDS, keys: { key: 'hot' } });
  return {
    readyMs,
    idleMb,
    oneBucket: {
      capacity: EXACT_CAPACITY,
      admitted: exact.requests - exact.refused,
      redisCalls: hot.redisCalls,
    },
  };
}
