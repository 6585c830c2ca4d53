import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createCelCompiler } from '../../crds/cel-environment.ts';
import { SteppedClock } from '../../test/support/stepped-clock.ts';
import { podObject, policyObject, type PodOptions } from '../../test/support/world-objects.ts';
import { QUIET_MS } from '../policy/replica-counts.ts';
import { World } from '../policy/world.ts';
import { BundleProvision } from './bundle-provision.ts';

const cel = createCelCompiler();

class Bed implements Disposable {
  readonly world = new World(cel);
  readonly clock = new SteppedClock();
  readonly told: (readonly string[] | 'all')[] = [];
  isSynced = true;
  readonly provision = new BundleProvision({
    world: this.world,
    clock: this.clock,
    isSynced: () => this.isSynced,
    settings: {},
  });
  readonly #listening = this.provision.onChange((pods) => {
    this.told.push(pods === 'all' ? 'all' : [...pods].toSorted());
  });

  addPod(name: string, options: PodOptions = {}): void {
    const object = podObject(name, { mode: 'takeover', ...options });
    this.provision.changed(this.world.apply({ kind: 'Pod', key: `shop/${name}`, object }));
  }

  addPolicy(name: string, spec: object = {}): void {
    const object = policyObject(name, spec);
    const key = `shop/${name}`;
    this.provision.changed(this.world.apply({ kind: 'RateLimitPolicy', key, object }));
  }

  replicasOf(name: string): number | undefined {
    return this.provision.bundleFor(`uid-${name}`)?.bundle.policies[0]?.replicas;
  }

  [Symbol.dispose](): void {
    this.#listening[Symbol.dispose]();
    this.provision[Symbol.dispose]();
  }
}

describe('what sidecars are told', () => {
  it('is nothing before every cache is read', () => {
    using bed = new Bed();
    bed.addPod('a');
    bed.isSynced = false;

    const early = bed.provision.bundleFor('uid-a');
    bed.isSynced = true;

    assert.equal(early, undefined);
    assert.deepEqual(bed.provision.bundleFor('uid-a')?.bundle.policies, []);
  });

  it('changes at once with a policy, for the pods it selects', () => {
    using bed = new Bed();
    bed.addPod('a');
    bed.addPod('web', { labels: { app: 'web' } });
    bed.told.splice(0);

    bed.addPolicy('one');

    assert.deepEqual(bed.told, [['uid-a']]);
  });

  it('follows the number of pods once it rests, for all of them together', async () => {
    using bed = new Bed();
    bed.addPolicy('one');
    bed.addPod('a');
    assert.equal(bed.replicasOf('a'), 1);
    bed.told.splice(0);

    bed.addPod('b');
    bed.addPod('c');
    const early = [bed.told.splice(0), bed.replicasOf('a')];
    await bed.clock.advance(QUIET_MS - 1);
    const stillQuiet = bed.told.length;
    await bed.clock.advance(1);

    assert.deepEqual(early, [[['uid-b'], ['uid-c']], 1]);
    assert.deepEqual([stillQuiet, bed.told], [0, [['uid-a', 'uid-b', 'uid-c']]]);
    assert.equal(bed.replicasOf('a'), 3);
    assert.equal(bed.clock.timers, 0);
  });

  it('follows the settings of the store, for everybody', () => {
    using bed = new Bed();
    bed.addPod('a');
    bed.told.splice(0);
    const settings = { store: { url: 'redis://h' } };

    bed.provision.configure({ settings, ca: 'PEM' });

    const told = bed.provision.bundleFor('uid-a');
    assert.deepEqual(bed.told, ['all']);
    assert.deepEqual([told?.settings, told?.ca], [settings, 'PEM']);
    assert.equal(bed.provision.bundleFor('uid-a')?.settings, settings);
  });
});

describe('the directory of pods', () => {
  it('finds pods with a sidecar, and says which have ended', () => {
    using bed = new Bed();
    bed.addPod('a');
    bed.addPod('ended', { phase: 'Succeeded' });
    bed.world.apply({ kind: 'Pod', key: 'shop/bare', object: podObject('bare') });

    const found = ['a', 'ended', 'bare', 'nobody'].map(
      (name) => bed.provision.find(`uid-${name}`)?.isTerminal,
    );

    assert.deepEqual(found, [false, true, undefined, undefined]);
  });
});
