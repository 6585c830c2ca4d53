import { systemClock, type Clock } from './clock.ts';
import { ClusterStore } from './cluster-store.ts';
import { restoreFastStrings } from './fast-strings.ts';
import { RedisStore } from './redis-store.ts';
import type { RemoteStore } from './remote-store.ts';
import { readScript, scriptDigest } from './script-source.ts';
import type { StoreSettings } from '../../contract/store-settings.ts';

/** Opens a store. Connecting goes on in the background, for as long as the store lives. */
export function openStore(settings: StoreSettings, clock: Clock = systemClock): RemoteStore {
  restoreFastStrings();
  const script = readScript();
  const shared = { script, digest: scriptDigest(script), clock };
  if (settings.kind === 'cluster') return new ClusterStore(settings, shared);
  return new RedisStore(settings, shared);
}
