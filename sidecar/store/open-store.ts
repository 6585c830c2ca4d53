// The store that a configuration asks for. The Redis client is loaded only when there is a Redis.
import type { Log } from '../log.ts';
import type { RunConfig } from '../run-settings.ts';
import { systemClock } from './clock.ts';
import { MemoryStore } from './memory-store.ts';
import type { Store } from './store.ts';

/** Throws STORE_SETTINGS_INVALID naming what cannot be used. Does not wait for a Redis to be reachable. */
export async function openStore(config: RunConfig, _log: Log): Promise<Store> {
  if (config.redis === undefined) return new MemoryStore(systemClock);
  throw new Error('not yet');
}
