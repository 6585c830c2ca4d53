// The store that a configuration asks for. The Redis client is loaded only when there is a Redis.
import { readFile } from 'node:fs/promises';
import { WeirError } from '../contract/errors.ts';
import { redactUrl } from './config.ts';
import type { Log } from './log.ts';
import type { RunConfig } from './run-config.ts';
import { systemClock } from './store/clock.ts';
import { MemoryStore } from './store/memory-store.ts';
import type { Store } from './store/store.ts';
import type { TlsSettings } from '../contract/store-settings.ts';

/**
 * How long the start waits for a first connection, so that the first requests need no failure mode. An unreachable
 * store must not keep a sidecar from serving: that is what failure modes are for.
 */
const FIRST_CONNECTION_MS = 1_000;

/** Throws STORE_SETTINGS_INVALID naming what cannot be used. */
export async function openConfiguredStore(config: RunConfig, log: Log): Promise<Store> {
  if (config.redis === undefined) return new MemoryStore(systemClock);
  const [{ openStore }, { parseStoreSettings }] = await Promise.all([
    import('./store/open-store.ts'),
    import('../contract/store-settings.ts'),
  ]);
  const tls = await readTls(config);
  const { redis: url, redisPartitions: partitions } = config;
  const settings = named(() =>
    parseStoreSettings({ url, partitions, ...(tls === undefined ? {} : { tls }) }),
  );
  const store = openStore(settings);
  await store.connected(AbortSignal.timeout(FIRST_CONNECTION_MS)).catch((error: unknown) => {
    const cause = describe(error);
    log.warn(
      { event: 'store-unreachable', url: redactUrl(config.redis ?? ''), cause },
      'the store is not reachable yet; failure modes decide until it is',
    );
  });
  return store;
}

/** As the store tells it: the node, and what its client last heard. */
function describe(error: unknown): string {
  if (!(error instanceof WeirError)) return error instanceof Error ? error.message : 'unknown';
  return Object.values(error.details).map(String).join(': ');
}

const FLAGS: Readonly<Record<string, string>> = {
  url: '--redis',
  partitions: '--redis-partitions',
  tls: '--redis-cert',
};

/** Names the flag instead of the store's own setting. */
function named<Settings>(parse: () => Settings): Settings {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof WeirError)) throw error;
    const { setting, wrong, right } = error.details;
    const where = FLAGS[String(setting)] ?? setting;
    throw new WeirError('STORE_SETTINGS_INVALID', { where, given: wrong, right }, { cause: error });
  }
}

async function readTls(config: RunConfig): Promise<TlsSettings | undefined> {
  const { redisCa, redisCert, redisKey } = config;
  if (redisCa === undefined && redisCert === undefined && redisKey === undefined) return undefined;
  return {
    ...(redisCa === undefined ? {} : { ca: await readPem('--redis-ca', redisCa) }),
    ...(redisCert === undefined ? {} : { cert: await readPem('--redis-cert', redisCert) }),
    ...(redisKey === undefined ? {} : { key: await readPem('--redis-key', redisKey) }),
  };
}

async function readPem(where: string, path: string): Promise<string> {
  const right = 'a readable PEM file';
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new WeirError('STORE_SETTINGS_INVALID', { where, given: path, right }, { cause });
  });
  if (text.includes('-----BEGIN ')) return text;
  throw new WeirError('STORE_SETTINGS_INVALID', {
    where,
    given: `${path}, which holds no PEM`,
    right,
  });
}
