// A sidecar whose store had come back called it away for as long as no request came: only a request ever looked. The
// operator repeated that in every policy's status, after a release with its Redis had been installed again.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FAILURES_TO_OPEN } from '../../sidecar/limiter/breaker.ts';
import { Limiter } from '../../sidecar/store/limiter.ts';
import { openStore } from '../../sidecar/store/open-store.ts';
import { parseStoreSettings } from '../../contract/store-settings.ts';
import { ask } from '../support/asking.ts';
import { bucketOf, tierOf } from '../support/limiter-fixture.ts';
import { eventually, openRedisServer } from '../support/redis.ts';

const CAPACITY = 10;

describe('a store that went away and came back', () => {
  it('is used again by a sidecar that nobody asks, and no bucket was charged for finding out', async () => {
    await using server = await openRedisServer();
    await using store = openStore(parseStoreSettings({ url: server.url }));
    await store.connected(AbortSignal.timeout(10_000));
    await using limiter = new Limiter({ store });
    const tier = tierOf({ buckets: [bucketOf(CAPACITY, 1)], policy: { failureMode: 'Open' } });
    const keyed = limiter.keyed(tier, 'client');
    const state = (): string | undefined => limiter.breakerStates()[0]?.state;
    await server.stop();
    for (let i = 0; i < FAILURES_TO_OPEN; i += 1) await ask(limiter, [keyed]);
    assert.equal(state(), 'open');

    await server.start();

    await eventually('the breaker has closed', () => state() === 'closed');
    // A missing key is a full bucket.
    assert.equal(await server.client().dbsize(), 0);
  });
});
