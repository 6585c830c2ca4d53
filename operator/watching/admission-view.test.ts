import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodeSeed } from '../../contract/seed.ts';
import { createCelCompiler } from '../../crds/cel-environment.ts';
import { simplePod } from '../../test/support/pods.ts';
import {
  namespaceObject,
  ownedBy,
  podObject,
  policyObject,
  replicaSetObject,
  serviceObject,
  type PodOptions,
} from '../../test/support/world-objects.ts';
import type { OwnerReference } from '../kube/object.ts';
import type { Pod } from '../injection/pod.ts';
import { PodBundles } from '../policy/pod-bundle.ts';
import { World } from '../policy/world.ts';
import { AdmissionView } from './admission-view.ts';

const cel = createCelCompiler();

interface Scene {
  readonly world: World;
  readonly view: AdmissionView;
}

function openScene(): Scene {
  const world = new World(cel);
  const bundles = new PodBundles(world);
  const bundleForNew = bundles.bundleForNew.bind(bundles);
  return { world, view: new AdmissionView({ world, bundleForNew }) };
}

function addPod(world: World, name: string, options: PodOptions): void {
  const object = podObject(name, options);
  world.apply({ kind: 'Pod', key: `${object.metadata.namespace ?? ''}/${name}`, object });
}

/** A pod that is about to be created. */
function newPod(owner?: OwnerReference, labels: Readonly<Record<string, string>> = {}): Pod {
  const ownerReferences = owner === undefined ? [] : [owner];
  return simplePod({ metadata: { ownerReferences, labels: { app: 'api', ...labels } } });
}

function again(owner: OwnerReference): OwnerReference {
  return { ...owner, uid: `${owner.uid}-again` };
}

describe('what the webhook is told about the place of a new pod', () => {
  it('are the Services of its namespace that select it', () => {
    const { world, view } = openScene();
    const objects = [
      serviceObject('by-name'),
      serviceObject('others', { selector: { app: 'web' } }),
      serviceObject('elsewhere', {}, 'store'),
      serviceObject('headless', { clusterIP: 'None', ports: [{ port: 8080 }] }),
    ];
    for (const object of objects) {
      const { namespace = '', name = '' } = object.metadata;
      world.apply({ kind: 'Service', key: `${namespace}/${name}`, object });
    }

    const { services, namespace } = view.surroundingsOf('shop', newPod());

    assert.equal(namespace, 'shop');
    assert.deepEqual(
      services.map(({ name, isHeadless, ports }) => [name, isHeadless, ports]),
      [
        ['by-name', false, [{ port: 80, targetPort: 'http' }]],
        ['headless', true, [{ port: 8080 }]],
      ],
    );
  });

  it('are the labels of the namespace, as they are now', () => {
    const { world, view } = openScene();
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    const before = view.surroundingsOf('shop', newPod()).namespaceLabels;

    world.apply({ kind: 'Namespace', key: 'shop', object: namespaceObject('shop', labels) });

    assert.deepEqual(before, {});
    assert.deepEqual(view.surroundingsOf('shop', newPod()).namespaceLabels, labels);
    assert.deepEqual(view.surroundingsOf('store', newPod()).namespaceLabels, {});
  });
});

describe('the mode of the siblings of a new pod', () => {
  const modeOf = ({ view }: Scene, pod: Pod): unknown =>
    view.surroundingsOf('shop', pod).siblingMode;
  const set = ownedBy('ReplicaSet', 'api-7d9f');

  it('is that of a live pod of the same ReplicaSet or Job', () => {
    for (const owner of [set, ownedBy('Job', 'nightly')]) {
      const scene = openScene();
      addPod(scene.world, 'one', { mode: 'redirect', owner });

      assert.equal(modeOf(scene, newPod(owner)), 'redirect');
      assert.equal(modeOf(scene, newPod(ownedBy(owner.kind, 'another'))), undefined);
      assert.equal(modeOf(scene, newPod()), undefined);
    }
  });

  it('is not that of a ReplicaSet that had the name before', () => {
    const scene = openScene();
    addPod(scene.world, 'one', { mode: 'redirect', owner: set });

    assert.equal(modeOf(scene, newPod(again(set))), undefined);
  });

  it('is not that of pods that have ended, are ending, or have no sidecar', () => {
    const scene = openScene();
    addPod(scene.world, 'ended', { mode: 'redirect', owner: set, phase: 'Failed' });
    addPod(scene.world, 'ending', { mode: 'redirect', owner: set, isDeleting: true });
    addPod(scene.world, 'bare', { owner: set });
    const before = modeOf(scene, newPod(set));

    addPod(scene.world, 'live', { mode: 'takeover', owner: set });

    assert.equal(before, undefined);
    assert.equal(modeOf(scene, newPod(set)), 'takeover');
  });

  it('is that of the revision where the owner lives on from one to the next', () => {
    const scene = openScene();
    const owner = ownedBy('StatefulSet', 'db');
    const revision = (hash: string): Readonly<Record<string, string>> => ({
      'controller-revision-hash': hash,
    });
    addPod(scene.world, 'db-0', { mode: 'redirect', owner, labels: revision('one') });

    assert.equal(modeOf(scene, newPod(owner, revision('one'))), 'redirect');
    assert.equal(modeOf(scene, newPod(owner, revision('two'))), undefined);
    assert.equal(modeOf(scene, newPod(again(owner), revision('one'))), undefined);
    assert.equal(modeOf(scene, newPod(ownedBy('DaemonSet', 'db2'), revision('one'))), undefined);
  });

  it('is open where nobody tells the revisions of an owner apart', () => {
    const scene = openScene();
    const owner = ownedBy('Cluster', 'db');
    addPod(scene.world, 'db-0', { mode: 'redirect', owner });

    assert.equal(modeOf(scene, newPod(owner)), undefined);
  });
});

describe('the seed of a new pod', () => {
  const seedOf = ({ view }: Scene, pod: Pod): ReturnType<typeof decodeSeed> => {
    const { seed } = view.surroundingsOf('shop', pod);
    assert.equal(seed?.kind, 'seed');
    return decodeSeed(seed.text);
  };

  it('holds the rules that it will have, itself counted among those that share them', () => {
    const scene = openScene();
    addPod(scene.world, 'one', { mode: 'takeover' });
    const object = policyObject('all');
    scene.world.apply({ kind: 'RateLimitPolicy', key: 'shop/all', object });

    const decoded = seedOf(scene, newPod());

    assert.equal(decoded.kind, 'seed');
    assert.deepEqual(
      decoded.bundle.policies.map(({ name, replicas }) => [name, replicas]),
      [['all', 2]],
    );
  });

  it('counts by the Deployment, also while its ReplicaSet has not been seen', () => {
    const scene = openScene();
    const owner = ownedBy('ReplicaSet', 'api-7d9f');
    const hash = { 'pod-template-hash': '7d9f' };
    const object = policyObject('all', { scope: 'Workload' });
    scene.world.apply({ kind: 'RateLimitPolicy', key: 'shop/all', object });
    const workload = (): unknown => {
      const decoded = seedOf(scene, newPod(owner, hash));
      return decoded.kind === 'seed' && decoded.bundle.policies[0]?.workload;
    };
    const before = workload();

    const known = replicaSetObject('api-7d9f', 'api');
    scene.world.apply({ kind: 'ReplicaSet', key: 'shop/api-7d9f', object: known });

    assert.equal(before, 'deployment.api');
    assert.equal(workload(), 'deployment.api');
  });

  it('is none while a policy is held, or the caches are not filled', () => {
    const scene = openScene();
    const jwt = { issuer: 'i', jwks: { uri: 'https://id.example.com/jwks.json' } };
    const object = policyObject('waits', { jwt });
    scene.world.apply({ kind: 'RateLimitPolicy', key: 'shop/waits', object });
    const unfilled = new AdmissionView({ world: new World(cel), bundleForNew: () => undefined });

    assert.equal(scene.view.surroundingsOf('shop', newPod()).seed, undefined);
    assert.equal(unfilled.surroundingsOf('shop', newPod()).seed, undefined);
  });
});

describe('whom Events about a new pod are about', () => {
  it('is the Deployment behind a ReplicaSet that was seen, else the ReplicaSet', () => {
    const { world, view } = openScene();
    const owner = ownedBy('ReplicaSet', 'api-7d9f');
    const before = view.workloadOf('shop', owner);

    const object = replicaSetObject('api-7d9f', 'api');
    world.apply({ kind: 'ReplicaSet', key: 'shop/api-7d9f', object });

    assert.deepEqual([before.kind, before.name], ['ReplicaSet', 'api-7d9f']);
    const { kind, name, namespace } = view.workloadOf('shop', owner);
    assert.deepEqual([kind, name, namespace], ['Deployment', 'api', 'shop']);
    assert.equal(view.workloadOf('shop', again(owner)).kind, 'ReplicaSet');
  });
});
