import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CompiledPolicy } from '../../contract/bundle.ts';
import { createCelCompiler } from '../../crds/cel-environment.ts';
import {
  namespaceObject,
  ownedBy,
  podObject,
  policyObject,
  replicaSetObject,
  serviceObject,
} from '../../test/support/world-objects.ts';
import { COMPILED_MAX } from '../../crds/compile.ts';
import { PodBundles, type PodBundle } from './pod-bundle.ts';
import { readPod, type PodObject, type PodRecord } from './pod-record.ts';
import type { PolicyObject } from './policy-record.ts';
import { World, type PodView } from './world.ts';

const cel = createCelCompiler();
const KEYS = [{ kty: 'EC' }];
const WITH_URI = {
  jwt: { issuer: 'i', jwks: { uri: 'https://id.example.com/jwks.json' } },
};
const FAULTY = {
  rules: [{ name: 'all', match: [{ cel: { expression: 'request.nothing' } }], buckets: [] }],
};

function addPod(world: World, object: PodObject): ReturnType<World['apply']> {
  const { namespace = '', name = '' } = object.metadata;
  return world.apply({ kind: 'Pod', key: `${namespace}/${name}`, object });
}

function addPolicy(world: World, object: PolicyObject): ReturnType<World['apply']> {
  const { namespace = '', name = '' } = object.metadata;
  return world.apply({ kind: 'RateLimitPolicy', key: `${namespace}/${name}`, object });
}

function bundleOf(world: World, uid: string): PodBundle | undefined {
  return new PodBundles(world).bundleFor(uid);
}

function policiesOf(world: World, uid: string): readonly CompiledPolicy[] {
  return bundleOf(world, uid)?.bundle.policies ?? assert.fail('no bundle');
}

describe('the bundle of a pod', () => {
  it('holds the policies of its namespace that select it', () => {
    const world = new World(cel);
    addPod(world, podObject('a', { mode: 'takeover' }));
    addPolicy(world, policyObject('one'));
    addPolicy(world, policyObject('other-labels', { selector: { matchLabels: { app: 'web' } } }));
    addPolicy(world, policyObject('elsewhere', {}, { namespace: 'store' }));

    assert.deepEqual(
      policiesOf(world, 'uid-a').map(({ name }) => name),
      ['one'],
    );
  });

  it('is none for a pod that is unknown, has no sidecar or has ended', () => {
    const world = new World(cel);
    addPod(world, podObject('bare'));
    addPod(world, podObject('ended', { mode: 'takeover', phase: 'Succeeded' }));
    addPod(world, podObject('ending', { mode: 'takeover', isDeleting: true }));

    assert.deepEqual(
      ['uid-bare', 'uid-ended', 'uid-nobody'].map((uid) => bundleOf(world, uid)),
      [undefined, undefined, undefined],
    );
    assert.deepEqual(policiesOf(world, 'uid-ending'), []);
  });

  it('is the same object when it is asked for again, until something changed', () => {
    const world = new World(cel);
    addPod(world, podObject('a', { mode: 'takeover' }));
    const bundles = new PodBundles(world);
    const first = bundles.bundleFor('uid-a');

    const again = bundles.bundleFor('uid-a');
    addPolicy(world, policyObject('one'));
    const changed = bundles.bundleFor('uid-a');

    assert.equal(first, again);
    assert.notEqual(first?.bundle.version, changed?.bundle.version);
  });

  it('is the same object for pods of one kind', () => {
    const world = new World(cel);
    addPod(world, podObject('a', { mode: 'takeover' }));
    addPod(world, podObject('b', { mode: 'takeover' }));
    addPolicy(world, policyObject('one'));
    const bundles = new PodBundles(world);

    const [a, b] = ['uid-a', 'uid-b'].map((uid) => bundles.bundleFor(uid));

    assert.equal(a, b);
  });

  it('names ports by the number the app has, also where the sidecar took the name', () => {
    const world = new World(cel);
    addPod(world, podObject('a', { mode: 'takeover' }));
    addPolicy(world, policyObject('by-name', { ports: ['http'] }));
    addPolicy(world, policyObject('by-number', { ports: [8080] }));
    addPolicy(world, policyObject('other-port', { ports: ['metrics', 15100] }));

    assert.deepEqual(
      policiesOf(world, 'uid-a').map(({ name, ports }) => [name, ports]),
      [
        ['by-name', [8080]],
        ['by-number', [8080]],
      ],
    );
  });

  it('counts the live pods that share a bucket, by scope', () => {
    const world = new World(cel);
    addPod(world, podObject('a', { mode: 'takeover', owner: ownedBy('StatefulSet', 'x') }));
    addPod(world, podObject('b', { mode: 'takeover', owner: ownedBy('StatefulSet', 'x') }));
    addPod(world, podObject('c', { mode: 'takeover', owner: ownedBy('StatefulSet', 'y') }));
    addPod(world, podObject('bare'));
    addPod(world, podObject('ended', { mode: 'takeover', phase: 'Failed' }));
    addPod(world, podObject('ending', { mode: 'takeover', isDeleting: true }));
    for (const scope of ['Policy', 'Workload', 'Pod']) {
      addPolicy(world, policyObject(scope.toLowerCase(), { scope }));
    }

    assert.deepEqual(
      policiesOf(world, 'uid-a').map(({ scope, workload, replicas }) => [
        scope,
        workload,
        replicas,
      ]),
      [
        ['Pod', undefined, 1],
        ['Policy', undefined, 3],
        ['Workload', 'statefulset.x', 2],
      ],
    );
  });

  it('counts itself alone where every pod that counts is gone', () => {
    const world = new World(cel);
    addPod(world, podObject('a', { mode: 'takeover', isDeleting: true }));
    addPolicy(world, policyObject('one'));

    assert.equal(policiesOf(world, 'uid-a')[0]?.replicas, 1);
  });
});

describe('the bundle of a pod that does not exist yet', () => {
  function newPod(labels = { app: 'api' }): PodRecord {
    return readPod(podObject('new', { mode: 'takeover', labels }));
  }

  it('is that of the pods like it, but for how many share a bucket: it will be one more', () => {
    const world = new World(cel);
    addPod(world, podObject('a', { mode: 'takeover' }));
    addPolicy(world, policyObject('one', { ports: ['http'] }));
    addPolicy(world, policyObject('alone', { scope: 'Workload' }));
    addPolicy(world, policyObject('other-labels', { selector: { matchLabels: { app: 'web' } } }));
    addPolicy(world, policyObject('other-port', { ports: ['metrics'] }));
    addPolicy(world, policyObject('waits', WITH_URI));

    const { bundle, held } = new PodBundles(world).bundleForNew(newPod(), 'deployment.api');

    assert.deepEqual(
      bundle.policies.map(({ name, ports, replicas, workload }) => [
        ...[name, ports, replicas, workload],
      ]),
      [
        ['alone', undefined, 1, 'deployment.api'],
        ['one', [8080], 2, undefined],
      ],
    );
    assert.deepEqual(held, ['uid-waits']);
  });

  it('is empty where no policy selects it', () => {
    const world = new World(cel);
    addPolicy(world, policyObject('one'));

    const { bundle } = new PodBundles(world).bundleForNew(newPod({ app: 'web' }), 'pod.new');

    assert.deepEqual(bundle.policies, []);
  });
});

describe('a policy that is faulty now', () => {
  it('keeps its last good version in force, selector and ports included', () => {
    const world = new World(cel);
    addPod(world, podObject('a', { mode: 'takeover' }));
    addPolicy(world, policyObject('one'));
    const before = bundleOf(world, 'uid-a');

    const elsewhere = { selector: { matchLabels: { app: 'web' } }, ...FAULTY };
    addPolicy(world, policyObject('one', elsewhere, { generation: 2 }));

    assert.deepEqual(bundleOf(world, 'uid-a'), before);
    assert.equal(world.policy('shop/one')?.judgement.kind, 'refused');
  });

  it('is held on every pod of the namespace while no good version is known', () => {
    const world = new World(cel);
    addPod(world, podObject('a', { mode: 'takeover', labels: { app: 'web' } }));
    const plain = bundleOf(world, 'uid-a')?.bundle.version;

    const affected = addPolicy(world, policyObject('one', FAULTY));

    const { bundle, held } = bundleOf(world, 'uid-a') ?? assert.fail();
    assert.deepEqual([held, bundle.policies, [...affected.pods]], [['uid-one'], [], ['uid-a']]);
    assert.notEqual(bundle.version, plain);
  });

  it('is no longer held when it is put right or deleted', () => {
    for (const object of [policyObject('one', {}, { generation: 2 }), undefined]) {
      const world = new World(cel);
      addPod(world, podObject('a', { mode: 'takeover' }));
      addPolicy(world, policyObject('one', FAULTY));

      const affected = world.apply({ kind: 'RateLimitPolicy', key: 'shop/one', object });

      assert.deepEqual([bundleOf(world, 'uid-a')?.held, affected.pods.has('uid-a')], [[], true]);
    }
  });

  it('is found to be when its definition shows a field of the same generation', () => {
    const world = new World(cel);
    addPolicy(world, policyObject('one'));
    const good = world.policy('shop/one')?.good;

    addPolicy(world, policyObject('one', { jitter: '5s' }));

    const record = world.policy('shop/one');
    assert.equal(record?.judgement.kind, 'refused');
    assert.equal(record.good, good);
  });

  it('has no last good version when it was deleted and made anew', () => {
    const world = new World(cel);
    addPolicy(world, policyObject('one'));

    addPolicy(world, policyObject('one', FAULTY, { uid: 'uid-2' }));

    assert.equal(world.policy('shop/one')?.good, undefined);
  });
});

describe('a policy with a key set of an address', () => {
  it('waits for the keys, and is in force with them', () => {
    const world = new World(cel);
    addPod(world, podObject('a', { mode: 'takeover' }));
    addPolicy(world, policyObject('one', WITH_URI));
    const waiting = world.policy('shop/one')?.judgement.kind;

    const uris = [...world.keySetUris()];
    const affected = world.apply({ kind: 'KeySet', key: uris[0] ?? '', object: KEYS });

    assert.equal(waiting, 'waiting');
    assert.deepEqual(policiesOf(world, 'uid-a')[0]?.jwt?.keys, KEYS);
    assert.deepEqual([...affected.pods], ['uid-a']);
  });

  it('touches nobody when the same keys are fetched again', () => {
    const world = new World(cel);
    addPod(world, podObject('a', { mode: 'takeover' }));
    addPolicy(world, policyObject('one', WITH_URI));
    const change = { kind: 'KeySet', key: WITH_URI.jwt.jwks.uri, object: KEYS } as const;
    world.apply(change);

    const affected = world.apply({ ...change, object: structuredClone(KEYS) });

    assert.deepEqual([affected.pods.size, affected.policies.size], [0, 0]);
  });

  it('gives new keys to the last good version of a policy that is faulty now', () => {
    const world = new World(cel);
    addPod(world, podObject('a', { mode: 'takeover' }));
    addPolicy(world, policyObject('one', WITH_URI));
    world.apply({ kind: 'KeySet', key: WITH_URI.jwt.jwks.uri, object: KEYS });
    addPolicy(world, policyObject('one', FAULTY, { generation: 2 }));

    const rotated = [{ kty: 'RSA' }];
    world.apply({ kind: 'KeySet', key: WITH_URI.jwt.jwks.uri, object: rotated });

    const [policy] = policiesOf(world, 'uid-a');
    assert.deepEqual([policy?.jwt?.keys, policy?.generation], [rotated, 1]);
  });
});

describe('fetched keys', () => {
  const uri = WITH_URI.jwt.jwks.uri;

  it('put a newer version into force, and leave one that names no address as it is', () => {
    const world = new World(cel);
    addPod(world, podObject('a', { mode: 'takeover' }));
    addPolicy(world, policyObject('one'));
    addPolicy(world, policyObject('one', WITH_URI, { generation: 2 }));
    const before = policiesOf(world, 'uid-a').map(({ generation }) => generation);

    world.apply({ kind: 'KeySet', key: uri, object: KEYS });

    const after = policiesOf(world, 'uid-a').map(({ generation }) => generation);
    assert.deepEqual([before, after], [[1], [2]]);
  });

  it('that make a policy too large leave the last ones in use', () => {
    const world = new World(cel);
    addPod(world, podObject('a', { mode: 'takeover' }));
    addPolicy(world, policyObject('one', WITH_URI));
    world.apply({ kind: 'KeySet', key: uri, object: KEYS });

    world.apply({
      kind: 'KeySet',
      key: uri,
      object: [{ kty: 'RSA', n: 'x'.repeat(COMPILED_MAX) }],
    });

    assert.deepEqual(policiesOf(world, 'uid-a')[0]?.jwt?.keys, KEYS);
    assert.equal(world.policy('shop/one')?.judgement.kind, 'refused');
  });

  it('are forgotten once no policy needs them, and not before', () => {
    const world = new World(cel);
    addPolicy(world, policyObject('one', WITH_URI));
    world.apply({ kind: 'KeySet', key: uri, object: KEYS });
    const forget = { kind: 'KeySet', key: uri, object: undefined } as const;
    const isKnown = (name: string): boolean => {
      addPolicy(world, policyObject(name, WITH_URI));
      return world.policy(`shop/${name}`)?.judgement.kind === 'accepted';
    };

    world.apply(forget);
    const whileNeeded = isKnown('two');
    for (const name of ['one', 'two']) {
      world.apply({ kind: 'RateLimitPolicy', key: `shop/${name}`, object: undefined });
    }
    world.apply(forget);

    assert.deepEqual(
      [whileNeeded, isKnown('three'), [...world.keySetUris()]],
      [true, false, [uri]],
    );
  });
});

describe('a change', () => {
  function smallWorld(): World {
    const world = new World(cel);
    addPod(world, podObject('a', { mode: 'takeover' }));
    addPod(world, podObject('web', { mode: 'takeover', labels: { app: 'web' } }));
    addPolicy(world, policyObject('one'));
    addPolicy(world, policyObject('two'));
    addPolicy(world, policyObject('web', { selector: { matchLabels: { app: 'web' } } }));
    return world;
  }

  it('of a policy touches its pods and the policies beside it', () => {
    const affected = addPolicy(
      smallWorld(),
      policyObject('one', { mode: 'Shadow' }, { generation: 2 }),
    );

    assert.deepEqual([...affected.pods], ['uid-a']);
    assert.deepEqual([...affected.policies].toSorted(), ['shop/one', 'shop/two']);
  });

  it('of a status touches that policy only', () => {
    const object = { ...policyObject('one'), status: { rules: 1 } };

    const affected = addPolicy(smallWorld(), object);

    assert.deepEqual([[...affected.policies], affected.pods.size], [['shop/one'], 0]);
  });

  it('that changes nothing touches nothing', () => {
    const world = smallWorld();

    const again = [
      addPolicy(world, policyObject('one')),
      addPod(world, podObject('a', { mode: 'takeover' })),
    ];

    assert.deepEqual(
      again.map(({ policies, pods, groups }) => policies.size + pods.size + groups.size),
      [0, 0],
    );
  });

  it('of how many pods there are touches groups, and no bundle at once', () => {
    const world = smallWorld();

    const affected = addPod(world, podObject('b', { mode: 'takeover' }));

    assert.deepEqual([...affected.pods], ['uid-b']);
    assert.deepEqual([...affected.groups].toSorted(), ['shop/one|', 'shop/two|']);
  });

  it('of a Service touches the policies of the pods it selected and selects', () => {
    const world = smallWorld();
    const key = 'shop/api';
    world.apply({ kind: 'Service', key, object: serviceObject('api') });

    const object = serviceObject('api', { selector: { app: 'web' } });
    const affected = world.apply({ kind: 'Service', key, object });

    assert.deepEqual(
      [[...affected.policies].toSorted(), affected.pods.size],
      [['shop/one', 'shop/two', 'shop/web'], 0],
    );
  });

  it('of the labels of a namespace touches its policies', () => {
    const world = smallWorld();
    const object = namespaceObject('shop', { 'weir.dev/inject': 'enabled' });

    const affected = world.apply({ kind: 'Namespace', key: 'shop', object });
    const again = world.apply({ kind: 'Namespace', key: 'shop', object });

    assert.deepEqual([affected.policies.size, again.policies.size], [3, 0]);
  });

  it('of a pod that was deleted and made anew under its name forgets the old one', () => {
    const world = smallWorld();

    const affected = addPod(world, podObject('a', { mode: 'takeover', uid: 'uid-new' }));

    assert.deepEqual([...affected.pods].toSorted(), ['uid-a', 'uid-new']);
    assert.equal(world.pod('uid-a'), undefined);
    assert.equal(world.groupSize('shop/one|'), 1);
  });
});

describe('the world answers', () => {
  const namesOf = (pods: readonly PodView[]): readonly string[] =>
    pods.map(({ record }) => record.name).toSorted();

  it('which pod has a name, and none where it was deleted', () => {
    const world = new World(cel);
    addPod(world, podObject('a'));
    const known = world.podByName('shop', 'a')?.record.uid;

    world.apply({ kind: 'Pod', key: 'shop/a', object: undefined });
    world.apply({ kind: 'Pod', key: 'shop/never', object: undefined });

    assert.deepEqual(
      [known, world.podByName('shop', 'a'), [...world.pods()]],
      ['uid-a', undefined, []],
    );
  });

  it('which pods a ReplicaSet has, before that is known itself', () => {
    const world = new World(cel);
    addPod(world, podObject('a', { owner: ownedBy('ReplicaSet', 'api-5d9') }));
    addPod(world, podObject('b', { owner: ownedBy('Job', 'api-5d9') }));
    const key = 'shop/api-5d9';
    const before = world.ownerOf('ReplicaSet shop/api-5d9');

    world.apply({ kind: 'ReplicaSet', key, object: replicaSetObject('api-5d9', 'api') });

    assert.deepEqual(namesOf(world.podsOfOwner('ReplicaSet', 'shop', 'api-5d9')), ['a']);
    assert.deepEqual(
      [before, world.ownerOf('ReplicaSet shop/api-5d9')?.controller?.name],
      [undefined, 'api'],
    );
  });

  it('which Services select a pod, by name, whatever order they were seen in', () => {
    const world = new World(cel);
    for (const name of ['b', 'c', 'd', 'a']) {
      world.apply({ kind: 'Service', key: `shop/${name}`, object: serviceObject(name) });
    }
    world.apply({ kind: 'Service', key: 'shop/c', object: undefined });
    world.apply({ kind: 'Service', key: 'shop/none', object: { metadata: { name: 'none' } } });

    const found = world.servicesFor('shop', { app: 'api' }).map(({ name }) => name);

    assert.deepEqual([found, world.servicesFor('shop', {})], [['a', 'b', 'd'], []]);
  });

  it('which policies a namespace has', () => {
    const world = new World(cel);
    addPolicy(world, policyObject('one'));
    addPolicy(world, policyObject('two', {}, { namespace: 'store' }));

    assert.deepEqual(
      [world.policiesIn('store'), [...world.policies()]].map((all) => all.map(({ key }) => key)),
      [['store/two'], ['shop/one', 'store/two']],
    );
  });

  it('who shares the buckets of a group: all of a policy, or of one workload', () => {
    const world = new World(cel);
    for (const [name, owner] of [
      ['a', 'x'],
      ['b', 'y'],
    ] as const) {
      addPod(world, podObject(name, { mode: 'takeover', owner: ownedBy('StatefulSet', owner) }));
    }
    addPolicy(world, policyObject('one'));

    const groups = ['shop/one|', 'shop/one|statefulset.y', 'shop/gone|'];

    assert.deepEqual(
      groups.map((group) => world.podsInGroup(group)),
      [['uid-a', 'uid-b'], ['uid-b'], []],
    );
  });

  it('that pods are of one kind whatever order their labels are written in', () => {
    const world = new World(cel);
    const owner = ownedBy('StatefulSet', 'x');
    addPod(world, podObject('a', { owner, labels: { app: 'api', tier: 'gold' } }));
    addPod(world, podObject('b', { owner, labels: { tier: 'gold', app: 'api' } }));
    addPod(world, podObject('c', { owner, labels: { tier: 'base', app: 'api' } }));

    const [a, b, c] = ['uid-a', 'uid-b', 'uid-c'].map((uid) => world.pod(uid)?.kind);

    assert.equal(a, b);
    assert.notEqual(a, c);
  });
});

describe('the workload of a pod', () => {
  const pod = (labels: Record<string, string>): PodObject =>
    podObject('api-5d9-x', { mode: 'takeover', labels, owner: ownedBy('ReplicaSet', 'api-5d9') });

  it('is the Deployment of its ReplicaSet, in whatever order the two are seen', () => {
    const change = {
      kind: 'ReplicaSet',
      key: 'shop/api-5d9',
      object: replicaSetObject('api-5d9', 'api'),
    } as const;
    const first = new World(cel);
    const second = new World(cel);

    first.apply(change);
    addPod(first, pod({ app: 'api' }));
    addPod(second, pod({ app: 'api' }));
    second.apply(change);

    const ids = [first, second].map((world) => world.pod('uid-api-5d9-x')?.workload.id);
    assert.deepEqual(ids, ['deployment.api', 'deployment.api']);
  });

  it('is known from the name and hash before the ReplicaSet is', () => {
    const world = new World(cel);

    addPod(world, pod({ app: 'api', 'pod-template-hash': '5d9' }));

    assert.equal(world.pod('uid-api-5d9-x')?.workload.id, 'deployment.api');
  });

  it('is the ReplicaSet where that has no owner, and the pod where that has none', () => {
    const world = new World(cel);
    world.apply({ kind: 'ReplicaSet', key: 'shop/api-5d9', object: replicaSetObject('api-5d9') });
    addPod(world, pod({ app: 'api', 'pod-template-hash': '5d9' }));
    addPod(world, podObject('lonely'));

    const ids = ['uid-api-5d9-x', 'uid-lonely'].map((uid) => world.pod(uid)?.workload.id);
    assert.deepEqual(ids, ['replicaset.api-5d9', 'pod.lonely']);
  });
});
