import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createCelCompiler } from '../../crds/cel-environment.ts';
import { SteppedClock } from '../../test/support/stepped-clock.ts';
import {
  ownedBy,
  podObject,
  policyObject,
  serviceObject,
} from '../../test/support/world-objects.ts';
import { NOT_FETCHED } from '../policy/key-set-state.ts';
import type { EventPlan } from '../policy/policy-event.ts';
import type { PolicyStatus } from '../policy/policy-status.ts';
import type { SidecarReport } from '../policy/sidecar-report.ts';
import { WRITE_INTERVAL_MS } from '../policy/status-pace.ts';
import { World } from '../policy/world.ts';
import { CACHE_LAG_MS, PolicyStatusController, SETTLING_MS } from './policy-status.ts';

const cel = createCelCompiler();
const KEY = 'shop/one';
const { signal } = new AbortController();

class Bed {
  readonly world = new World(cel);
  readonly clock = new SteppedClock();
  readonly written: PolicyStatus[] = [];
  readonly events: EventPlan[] = [];
  readonly reports = new Map<string, SidecarReport>();
  failure: Error | undefined;
  readonly controller = new PolicyStatusController({
    world: this.world,
    surroundings: () => ({
      reportOf: (uid) => this.reports.get(uid),
      keySetOf: () => NOT_FETCHED,
      store: { kind: 'configured' },
    }),
    writer: {
      write: async (_policy, status) => {
        if (this.failure !== undefined) throw this.failure;
        this.written.push(status);
      },
    },
    events: { record: (event) => this.events.push(event) },
    clock: this.clock,
  });

  reconcile(): ReturnType<PolicyStatusController['reconcile']> {
    return this.controller.reconcile(KEY, signal);
  }

  addPod(name: string, generation?: number): void {
    const object = podObject(name, { mode: 'takeover', owner: ownedBy('StatefulSet', 'db') });
    this.world.apply({ kind: 'Pod', key: `shop/${name}`, object });
    if (generation !== undefined) this.report(name, generation);
  }

  report(name: string, generation: number): void {
    this.reports.set(`uid-${name}`, {
      generations: new Map([['uid-one', generation]]),
      refusals: [],
      tooOld: [],
      store: 'up',
      clientIpIsProxy: [],
    });
  }

  addPolicy(generation = 1, status?: unknown): void {
    const object = { ...policyObject('one', {}, { generation }), status };
    this.world.apply({ kind: 'RateLimitPolicy', key: KEY, object });
  }

  get summaries(): readonly string[] {
    return this.written.map(({ pods }) => pods.summary);
  }
}

describe('the status of a policy', () => {
  it('is written at once, and then when it has been some seconds', async () => {
    const bed = new Bed();
    bed.addPod('a', 1);
    bed.addPolicy();
    await bed.reconcile();

    bed.addPod('b', 1);
    const again = await bed.reconcile();
    await bed.clock.advance(WRITE_INTERVAL_MS);
    await bed.reconcile();

    assert.deepEqual(again, { requeueAfterMs: WRITE_INTERVAL_MS });
    assert.deepEqual(bed.summaries, ['1/1', '2/2']);
  });

  it('is not written again while the cache still shows the older one', async () => {
    const bed = new Bed();
    bed.addPod('a', 1);
    bed.addPolicy();
    await bed.reconcile();
    await bed.clock.advance(CACHE_LAG_MS - 1);

    await bed.reconcile();

    assert.equal(bed.written.length, 1);
  });

  it('is put right when somebody else changed it', async () => {
    const bed = new Bed();
    bed.addPod('a', 1);
    bed.addPolicy();
    await bed.reconcile();
    bed.addPolicy(1, structuredClone(bed.written[0]));
    await bed.reconcile();

    bed.addPolicy(1, { rules: 99 });
    await bed.clock.advance(WRITE_INTERVAL_MS);
    await bed.reconcile();

    assert.deepEqual(bed.summaries, ['1/1', '1/1']);
  });

  it('waits for sidecars to come back after a start, and says so when they do not', async () => {
    const before = new Bed();
    before.addPod('a', 1);
    before.addPolicy();
    await before.reconcile();
    const bed = new Bed();
    bed.addPod('a');
    bed.addPolicy(1, before.written[0]);

    const again = await bed.reconcile();
    const early = bed.written.length;
    await bed.clock.advance(SETTLING_MS);
    await bed.reconcile();

    assert.deepEqual([again, early], [{ requeueAfterMs: SETTLING_MS }, 0]);
    assert.deepEqual(bed.summaries, ['0/1']);
  });

  it('is told as Events when it changes, once', async () => {
    const bed = new Bed();
    bed.addPod('a', 1);
    bed.addPolicy();
    await bed.reconcile();
    await bed.reconcile();
    const first = bed.events.map(({ action, reason, type }) => [action, reason, type]);
    bed.addPolicy(1, structuredClone(bed.written[0]));

    bed.report('a', 0);
    await bed.clock.advance(SETTLING_MS);
    await bed.reconcile();

    assert.deepEqual(first, [
      ['Accepted', 'Accepted', 'Normal'],
      ['Programmed', 'Programmed', 'Normal'],
      ['Enforced', 'Enforced', 'Normal'],
    ]);
    assert.deepEqual(
      bed.events.slice(3).map(({ reason }) => reason),
      ['Pending', 'NotProgrammed'],
    );
  });

  it('tells a bypass on the Service and the owner, and again when it comes back', async () => {
    const bed = new Bed();
    bed.addPod('a', 1);
    bed.addPolicy();
    const numeric = serviceObject('api', { ports: [{ port: 80, targetPort: 8080 }] });
    const told: (readonly string[])[] = [];
    for (const object of [numeric, numeric, serviceObject('api'), numeric]) {
      bed.world.apply({ kind: 'Service', key: 'shop/api', object });
      await bed.clock.advance(WRITE_INTERVAL_MS);
      await bed.reconcile();
      const found = bed.events.splice(0).filter(({ action }) => action === 'Bypass');
      told.push(found.map(({ regarding }) => `${regarding.kind}/${regarding.name}`));
    }

    const both = ['Service/api', 'StatefulSet/db'];
    assert.deepEqual(told, [both, [], [], both]);
  });

  it('is planned anew after a write that failed', async () => {
    const bed = new Bed();
    bed.addPod('a', 1);
    bed.addPolicy();
    bed.failure = new Error('away');
    await assert.rejects(bed.reconcile(), /away/);
    bed.failure = undefined;

    await bed.reconcile();

    assert.deepEqual([bed.summaries, bed.events.length], [['1/1'], 3]);
  });

  it('of a policy that is gone is not asked for', async () => {
    const bed = new Bed();

    assert.equal(await bed.reconcile(), undefined);
  });
});
