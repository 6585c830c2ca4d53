import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createCelCompiler } from '../../crds/cel-environment.ts';
import { conditionsOf } from '../../operator/policy/conditions.ts';
import { NOT_FETCHED } from '../../operator/policy/key-set-state.ts';
import { PodBundles } from '../../operator/policy/pod-bundle.ts';
import { observePolicy, type Surroundings } from '../../operator/policy/policy-observation.ts';
import { planStatus } from '../../operator/policy/policy-status.ts';
import { World, type WorldChange } from '../../operator/policy/world.ts';
import {
  namespaceObject,
  ownedBy,
  podObject,
  policyObject,
  replicaSetObject,
  serviceObject,
} from '../support/world-objects.ts';

const cel = createCelCompiler();
const URI = 'https://id.example.com/jwks.json';
const SURROUNDINGS: Surroundings = {
  reportOf: () => undefined,
  keySetOf: () => NOT_FETCHED,
  store: { kind: 'configured' },
  isSettling: false,
};

const namespace = fc.constantFrom('shop', 'store');
const labels = fc.constantFrom({ app: 'api' }, { app: 'web' }, { app: 'api', tier: 'a' });
const owner = fc.constantFrom(
  undefined,
  ownedBy('ReplicaSet', 'rs-1'),
  ownedBy('StatefulSet', 'db'),
);

const podChange: fc.Arbitrary<WorldChange> = fc
  .record({
    name: fc.constantFrom('a', 'b', 'c'),
    namespace,
    generation: fc.constantFrom('1', '2'),
    labels,
    owner,
    mode: fc.constantFrom(undefined, 'takeover' as const, 'redirect' as const),
    phase: fc.constantFrom('Pending', 'Running', 'Failed'),
    isDeleting: fc.boolean(),
    isGone: fc.integer({ min: 0, max: 3 }).map((n) => n === 0),
  })
  .map(({ name, generation, isGone, mode, owner: controller, ...rest }) => {
    const uid = `${rest.namespace}-${name}-${generation}`;
    const options = {
      ...rest,
      uid,
      ...(mode === undefined ? {} : { mode }),
      ...(controller === undefined ? {} : { owner: controller }),
    };
    const object = isGone ? undefined : podObject(name, options);
    return { kind: 'Pod', key: `${rest.namespace}/${name}`, object };
  });

// Faulty ones have a last good version or not, by what was seen; so none here.
const policyChange: fc.Arbitrary<WorldChange> = fc
  .record({
    name: fc.constantFrom('one', 'two', 'three'),
    namespace,
    generation: fc.integer({ min: 1, max: 3 }),
    selector: fc.constantFrom({}, { matchLabels: { app: 'api' } }, { matchLabels: { tier: 'a' } }),
    scope: fc.constantFrom('Policy', 'Workload', 'Pod'),
    ports: fc.constantFrom(undefined, ['http'], [9090]),
    isGone: fc.integer({ min: 0, max: 3 }).map((n) => n === 0),
  })
  .map(({ name, generation, isGone, ports, ...rest }) => {
    const spec = { selector: rest.selector, scope: rest.scope, ...(ports && { ports }) };
    // One generation is one document.
    const uid = JSON.stringify([rest.namespace, name, spec]);
    const metadata = { namespace: rest.namespace, uid, generation };
    const object = isGone ? undefined : policyObject(name, spec, metadata);
    return { kind: 'RateLimitPolicy', key: `${rest.namespace}/${name}`, object };
  });

const otherChange: fc.Arbitrary<WorldChange> = fc.constantFrom<WorldChange>(
  { kind: 'Service', key: 'shop/api', object: serviceObject('api') },
  {
    kind: 'Service',
    key: 'shop/api',
    object: serviceObject('api', { ports: [{ port: 80, targetPort: 8080 }] }),
  },
  { kind: 'Service', key: 'shop/api', object: undefined },
  {
    kind: 'Namespace',
    key: 'shop',
    object: namespaceObject('shop', { 'weir.dev/inject': 'enabled' }),
  },
  { kind: 'Namespace', key: 'shop', object: undefined },
  { kind: 'ReplicaSet', key: 'shop/rs-1', object: replicaSetObject('rs-1', 'api') },
  { kind: 'ReplicaSet', key: 'shop/rs-1', object: undefined },
  { kind: 'KeySet', key: URI, object: [{ kty: 'EC' }] },
);

const history = fc.array(fc.oneof(podChange, policyChange, otherChange), { maxLength: 40 });

/** The last state of each object, in an order of choice. */
function lastStates(changes: readonly WorldChange[]): WorldChange[] {
  const last = new Map(changes.map((change) => [`${change.kind} ${change.key}`, change]));
  return [...last.values()].filter(({ object }) => object !== undefined);
}

function worldOf(changes: readonly WorldChange[]): World {
  const world = new World(cel);
  for (const change of changes) world.apply(change);
  return world;
}

/** With bundles that were asked for after every change, as a stream does. */
function livedBundles(changes: readonly WorldChange[]): unknown {
  const world = new World(cel);
  const bundles = new PodBundles(world);
  const ask = (): unknown =>
    [...world.pods()]
      .map(({ record: { uid } }) => [uid, bundles.bundleFor(uid)] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1));
  let last = ask();
  for (const change of changes) {
    world.apply(change);
    last = ask();
  }
  return last;
}

function freshBundles(changes: readonly WorldChange[]): unknown {
  const world = worldOf(changes);
  const bundles = new PodBundles(world);
  return [...world.pods()]
    .map(({ record: { uid } }) => [uid, bundles.bundleFor(uid)] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** Everything that can be asked of a world, as plain data. */
function readingOf(world: World): unknown {
  const bundles = new PodBundles(world);
  const pods = [...world.pods()].toSorted((a, b) => (a.record.key < b.record.key ? -1 : 1));
  const policies = [...world.policies()].toSorted((a, b) => (a.key < b.key ? -1 : 1));
  return {
    pods: pods.map(({ record, workload }) => [
      record,
      workload,
      bundles.bundleFor(record.uid),
      world.servicesFor(record.namespace, record.labels),
    ]),
    policies: policies.map(({ key, good }) => [key, good?.hash, statusOf(world, key)]),
    held: ['shop', 'store'].map((name) => world.heldIn(name)),
    labels: world.namespaceLabels('shop'),
    uris: [...world.keySetUris()],
  };
}

function statusOf(world: World, key: string): unknown {
  const observation = observePolicy(world, key, SURROUNDINGS) ?? assert.fail('no policy');
  return [conditionsOf(observation), planStatus(observation, 0).status.pods];
}

describe('the index of the world', () => {
  it('is, after any history, what it is when built anew from what is left, in any order', () => {
    const cases = fc.record({ history, seed: fc.integer() });
    fc.assert(
      fc.property(cases, ({ history: changes, seed }) => {
        const left = lastStates(changes);
        const shuffled = fc.sample(fc.shuffledSubarray(left, { minLength: left.length }), {
          numRuns: 1,
          seed,
        });

        const fromHistory = readingOf(worldOf(changes));
        const anew = readingOf(worldOf(shuffled[0] ?? []));

        assert.deepEqual(fromHistory, anew);
      }),
      { numRuns: 150 },
    );
  });

  it('tells of every pod whose bundle reads differently, and every policy whose status does', () => {
    fc.assert(
      fc.property(history, (changes) => {
        const world = new World(cel);
        for (const change of changes) {
          const before = shownBy(world);
          const affected = world.apply(change);
          const after = shownBy(world);

          for (const uid of differing(before.bundles, after.bundles)) {
            assert.ok(affected.pods.has(uid), `bundle of ${uid} after ${change.kind}`);
          }
          for (const key of differing(before.statuses, after.statuses)) {
            assert.ok(affected.policies.has(key), `status of ${key} after ${change.kind}`);
          }
          for (const group of differing(before.sizes, after.sizes)) {
            assert.ok(affected.groups.has(group), `size of ${group} after ${change.kind}`);
          }
        }
      }),
      { numRuns: 60 },
    );
  });
});

interface Shown {
  /** With every number of pods taken as one: that number is told by groups. */
  readonly bundles: ReadonlyMap<string, string>;
  readonly statuses: ReadonlyMap<string, string>;
  readonly sizes: ReadonlyMap<string, string>;
}

function shownBy(world: World): Shown {
  const bundles = new PodBundles(world, { revision: 0, sizeOf: () => 1 });
  const groups = [...world.pods()].flatMap(({ record }) =>
    [...world.pairingsOf(record.uid).values()].flatMap(({ group }) => group ?? []),
  );
  return {
    bundles: new Map(
      [...world.pods()].map(({ record: { uid } }) => [uid, JSON.stringify(bundles.bundleFor(uid))]),
    ),
    statuses: new Map(
      [...world.policies()].map(({ key }) => [key, JSON.stringify(statusOf(world, key))]),
    ),
    sizes: new Map(groups.map((group) => [group, String(world.groupSize(group))])),
  };
}

function differing(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): string[] {
  return [...new Set([...before.keys(), ...after.keys()])].filter(
    (key) => before.get(key) !== after.get(key),
  );
}

describe('bundles that are kept', () => {
  it('are never out of date', () => {
    fc.assert(
      fc.property(history, (changes) => {
        assert.deepEqual(livedBundles(changes), freshBundles(changes));
      }),
      { numRuns: 60 },
    );
  });
});

describe('the plan of a status', () => {
  it('plans nothing on its own outcome', () => {
    fc.assert(
      fc.property(history, (changes) => {
        const world = worldOf(changes);
        for (const { key } of [...world.policies()]) {
          const observation = observePolicy(world, key, SURROUNDINGS) ?? assert.fail();
          const { status } = planStatus(observation, 1_000);
          const policy = { ...observation.policy, status: structuredClone(status) };

          const again = planStatus({ ...observation, policy }, 99_000);

          assert.deepEqual([again.change, again.transitions, again.status], ['none', [], status]);
        }
      }),
      { numRuns: 60 },
    );
  });
});
