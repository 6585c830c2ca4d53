import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createCelCompiler } from '../../crds/cel-environment.ts';
import { ownedBy, podObject, policyObject } from '../../test/support/world-objects.ts';
import type { PodOptions } from '../../test/support/world-objects.ts';
import { World } from './world.ts';

const TIGHTER = [{ name: 'all', buckets: [{ capacity: 1, refill: { tokens: 1, every: '1h' } }] }];
const ELSEWHERE = [
  { name: 'all', match: [{ path: { type: 'Exact', value: '/x' } }], buckets: TIGHTER[0]?.buckets },
];

/** Policies `one` and `two` of the pods `a` and `b`, which say the same. */
function openWorld(): World {
  const world = new World(createCelCompiler());
  addPod(world, 'a');
  addPod(world, 'b');
  setRules(world, 'one', 1);
  setRules(world, 'two', 1);
  return world;
}

function addPod(world: World, name: string, options: PodOptions = {}): void {
  const object = podObject(name, { mode: 'takeover', ...options });
  world.apply({ kind: 'Pod', key: `shop/${name}`, object });
}

function setRules(world: World, name: string, generation: number, rules?: object): void {
  const object = policyObject(name, rules === undefined ? {} : { rules }, { generation });
  world.apply({ kind: 'RateLimitPolicy', key: `shop/${name}`, object });
}

function kindsOf(world: World, pod: string): readonly string[] {
  const view = world.pod(`uid-${pod}`) ?? assert.fail(`no pod ${pod}`);
  return world.conflicts.of(view).map(({ kind }) => kind);
}

describe('conflicts among the policies of a pod', () => {
  it('are found', () => {
    assert.deepEqual(kindsOf(openWorld(), 'a'), ['equal']);
  });

  it('are found anew after a policy has changed', () => {
    const world = openWorld();
    const before = kindsOf(world, 'a');

    setRules(world, 'two', 2, TIGHTER);
    const tighter = kindsOf(world, 'a');
    setRules(world, 'two', 3, ELSEWHERE);
    const elsewhere = kindsOf(world, 'a');

    assert.deepEqual([before, tighter, elsewhere], [['equal'], ['contradictory'], []]);
  });

  it('are gone with the policy', () => {
    const world = openWorld();
    const before = kindsOf(world, 'a');

    world.apply({ kind: 'RateLimitPolicy', key: 'shop/two', object: undefined });

    assert.deepEqual([before, kindsOf(world, 'a')], [['equal'], []]);
  });

  it('are not those of a pod with other labels', () => {
    const world = openWorld();
    const before = kindsOf(world, 'b');

    addPod(world, 'b', { labels: { app: 'web' } });

    assert.deepEqual(
      [before, kindsOf(world, 'b'), kindsOf(world, 'a')],
      [['equal'], [], ['equal']],
    );
  });

  it('are looked for once for all pods of a kind, while nothing changes', () => {
    const world = openWorld();
    const owner = ownedBy('ReplicaSet', 'api');
    for (const name of ['a', 'b']) addPod(world, name, { owner });
    const [a, b] = ['uid-a', 'uid-b'].map((uid) => world.pod(uid) ?? assert.fail('no pod'));
    assert(a !== undefined && b !== undefined);

    const conflicts = world.conflicts.of(a);

    assert.equal(world.conflicts.of(b), conflicts);
  });
});
