import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createCelCompiler } from '../../crds/cel-environment.ts';
import { SteppedClock } from '../../test/support/stepped-clock.ts';
import { ownedBy, podObject } from '../../test/support/world-objects.ts';
import type { EventPlan } from '../policy/policy-event.ts';
import { World } from '../policy/world.ts';
import { ROUND_MS, Watchdog } from './watchdog.ts';

const cel = createCelCompiler();
const { signal } = new AbortController();
/** More than a minute before the clock's start. */
const OLD = '2025-12-31T23:00:00Z';

class Bed {
  readonly world = new World(cel);
  readonly clock = new SteppedClock();
  readonly events: EventPlan[] = [];
  readonly evicted: string[] = [];
  count = 0;
  isServing = true;
  isAllowed = true;
  readonly watchdog = this.#open(true);

  withoutEvictions(): Watchdog {
    return this.#open(false);
  }

  addBare(name: string, owner: string): void {
    const annotations = { 'weir.dev/inject': 'enabled' };
    const options = { annotations, owner: ownedBy('StatefulSet', owner), createdAt: OLD };
    this.world.apply({ kind: 'Pod', key: `shop/${name}`, object: podObject(name, options) });
  }

  get reasons(): readonly string[] {
    return this.events.splice(0).map(({ reason }) => reason);
  }

  #open(mayEvict: boolean): Watchdog {
    const evict = async ({ name }: { readonly name: string }): Promise<boolean> => {
      this.evicted.push(name);
      return this.isAllowed;
    };
    return new Watchdog({
      world: this.world,
      isExcluded: () => false,
      events: { record: (event) => this.events.push(event) },
      evictor: mayEvict ? { evict } : undefined,
      isWebhookServing: () => this.isServing,
      quantities: ['256Mi'],
      clock: this.clock,
      onCount: (count) => {
        this.count = count;
      },
    });
  }
}

describe('the watchdog', () => {
  it('tells an owner once, counts, and comes again', async () => {
    const bed = new Bed();
    const watchdog = bed.withoutEvictions();
    bed.addBare('a', 'x');
    bed.addBare('b', 'x');

    const again = await watchdog.round(signal);
    const first = bed.reasons;
    await watchdog.round(signal);

    assert.deepEqual([first, bed.reasons, bed.count], [['NotInjected'], [], 2]);
    assert.deepEqual([again, bed.evicted], [{ requeueAfterMs: ROUND_MS }, []]);
  });

  it('tells again when other pods come bare', async () => {
    const bed = new Bed();
    const watchdog = bed.withoutEvictions();
    bed.addBare('a', 'x');
    await watchdog.round(signal);
    bed.addBare('b', 'x');
    await watchdog.round(signal);

    assert.deepEqual(bed.reasons, ['NotInjected', 'NotInjected']);
  });

  it('evicts one pod of a workload, says so, and leaves the workload alone then', async () => {
    const bed = new Bed();
    bed.addBare('a', 'x');
    bed.addBare('b', 'x');

    await bed.watchdog.round(signal);
    await bed.watchdog.round(signal);

    assert.deepEqual([bed.evicted, bed.reasons], [['a'], ['NotInjected', 'Evicted']]);
  });

  it('evicts nobody while the webhook does not answer', async () => {
    const bed = new Bed();
    bed.isServing = false;
    bed.addBare('a', 'x');

    await bed.watchdog.round(signal);

    assert.deepEqual(bed.evicted, []);
  });

  it('says nothing of an eviction that was not allowed', async () => {
    const bed = new Bed();
    bed.isAllowed = false;
    bed.addBare('a', 'x');

    await bed.watchdog.round(signal);

    assert.deepEqual([bed.evicted, bed.reasons], [['a'], ['NotInjected']]);
  });

  it('answers a failed creation that is about our container', () => {
    const bed = new Bed();
    const regarding = { apiVersion: 'apps/v1', kind: 'ReplicaSet', namespace: 'shop', name: 'r' };
    const note = 'failed quota: q: must specify limits.cpu for: weir';

    bed.watchdog.failed({ reason: 'FailedCreate', note, regarding });
    bed.watchdog.failed({ reason: 'FailedCreate', note: 'no room', regarding });

    assert.deepEqual(bed.reasons, ['SidecarRefused']);
  });
});
