import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createCelCompiler } from '../../crds/cel-environment.ts';
import {
  namespaceObject,
  ownedBy,
  podObject,
  type PodOptions,
} from '../../test/support/world-objects.ts';
import { remedyEvent } from './failed-creation.ts';
import {
  EVICT_AFTER_MS,
  EVICT_AGAIN_AFTER_MS,
  EVICTIONS_PER_MINUTE,
  planEvictions,
  uninjectedEvents,
  uninjectedPods,
  type EvictionHistory,
  type UninjectedPod,
} from './watchdog.ts';
import { World } from './world.ts';

const cel = createCelCompiler();
const ASKED: PodOptions = { annotations: { 'weir.dev/inject': 'enabled' } };
const CREATED = Date.parse('2026-01-01T00:00:00Z');
const OLD = CREATED + EVICT_AFTER_MS;
const NO_HISTORY: EvictionHistory = { at: [], lastOfOwner: new Map() };

function bare(
  pods: readonly (readonly [string, PodOptions])[],
  namespaceLabels: Record<string, string> = {},
): readonly UninjectedPod[] {
  const world = new World(cel);
  world.apply({ kind: 'Namespace', key: 'shop', object: namespaceObject('shop', namespaceLabels) });
  for (const [name, options] of pods) {
    world.apply({ kind: 'Pod', key: `shop/${name}`, object: podObject(name, options) });
  }
  return uninjectedPods(world, (namespace) => namespace === 'kube-system');
}

function namesOf(found: readonly UninjectedPod[]): readonly string[] {
  return found.map(({ pod }) => pod.name);
}

describe('a pod without sidecar', () => {
  it('is found when it asked, by annotation, label or namespace', () => {
    const label = { labels: { app: 'api', 'weir.dev/inject': 'required' } };

    assert.deepEqual(
      namesOf(
        bare([
          ['b', label],
          ['a', ASKED],
          ['c', {}],
        ]),
      ),
      ['a', 'b'],
    );
    assert.deepEqual(namesOf(bare([['c', {}]], { 'weir.dev/inject': 'enabled' })), ['c']);
  });

  it('is not looked for where it did not ask, ended, or the webhook never looks', () => {
    const off = { annotations: { 'weir.dev/inject': 'disabled' } };
    const pods = [
      ['has', { ...ASKED, mode: 'takeover' }],
      ['off', off],
      ['ended', { ...ASKED, phase: 'Succeeded' }],
      ['ending', { ...ASKED, isDeleting: true }],
      ['system', { ...ASKED, namespace: 'kube-system' }],
    ] as const;

    assert.deepEqual(namesOf(bare(pods, { 'weir.dev/inject': 'enabled' })), []);
    assert.deepEqual(bare([['a', ASKED]], { 'weir.dev/admission-webhooks': 'disabled' }), []);
  });

  it('is told once on its owner, with the command that helps', () => {
    const owner = ownedBy('StatefulSet', 'db');
    const found = bare([
      ['a', { ...ASKED, owner }],
      ['b', { ...ASKED, owner }],
      ['lone', ASKED],
    ]);

    const [of2, of1] = uninjectedEvents(found);

    assert.deepEqual([of2?.regarding.kind, of1?.regarding.kind], ['StatefulSet', 'Pod']);
    assert.match(
      of2?.note ?? '',
      /^2 pods \(a, b\) ask .*kubectl -n shop rollout restart statefulset\/db/,
    );
    assert.match(of1?.note ?? '', /^1 pod \(lone\) asks .*delete and create it again/);
  });

  it('is told that the network of its host is in the way', () => {
    const world = new World(cel);
    const owner = ownedBy('DaemonSet', 'agent');
    const object = podObject('a', { ...ASKED, owner });
    const onHost = { ...object, spec: { ...object.spec, hostNetwork: true } };
    world.apply({ kind: 'Pod', key: 'shop/a', object: onHost });
    const found = uninjectedPods(world, () => false);

    const [event] = uninjectedEvents(found);

    assert.match(event?.note ?? '', /1 pod \(a\) asks .*remove hostNetwork\.$/);
    assert.deepEqual(planEvictions(found, NO_HISTORY, OLD), []);
  });

  it('is told what to write where the value is none of ours', () => {
    const [event] = uninjectedEvents(bare([['a', { annotations: { 'weir.dev/inject': 'yes' } }]]));

    assert.match(
      event?.note ?? '',
      /metadata\.annotations\[weir\.dev\/inject\] is "yes", write enabled/,
    );
  });
});

describe('evictions', () => {
  const owned = (name: string, owner: string, options: PodOptions = {}): [string, PodOptions] => [
    name,
    { ...ASKED, ...options, owner: ownedBy('StatefulSet', owner) },
  ];

  it('take pods that are old enough, one of a workload', () => {
    const found = bare([owned('a', 'x'), owned('b', 'x'), owned('c', 'y')]);

    assert.deepEqual(namesOf(planEvictions(found, NO_HISTORY, OLD - 1)), []);
    assert.deepEqual(namesOf(planEvictions(found, NO_HISTORY, OLD)), ['a', 'c']);
  });

  it('never take a pod without owner, or one that would come back as bare', () => {
    const invalid = { annotations: { 'weir.dev/inject': 'yes' } };

    const found = bare([['lone', ASKED], owned('invalid', 'x', invalid)]);

    assert.deepEqual(planEvictions(found, NO_HISTORY, OLD), []);
  });

  it('leave a workload alone for a while after one', () => {
    const found = bare([owned('a', 'x')]);
    const since = (ms: number): EvictionHistory => ({
      at: [],
      lastOfOwner: new Map([['shop/StatefulSet/x', OLD - ms]]),
    });

    assert.deepEqual(planEvictions(found, since(EVICT_AGAIN_AFTER_MS - 1), OLD), []);
    assert.equal(planEvictions(found, since(EVICT_AGAIN_AFTER_MS), OLD).length, 1);
  });

  it('are so many in a minute and no more', () => {
    const found = bare(
      Array.from({ length: 9 }, (_, index) => owned(`p${String(index)}`, `w${String(index)}`)),
    );
    const before = (count: number, ms: number): EvictionHistory => ({
      ...NO_HISTORY,
      at: Array.from({ length: count }, () => OLD - ms),
    });

    assert.equal(planEvictions(found, NO_HISTORY, OLD).length, EVICTIONS_PER_MINUTE);
    assert.equal(planEvictions(found, before(EVICTIONS_PER_MINUTE - 1, 59_999), OLD).length, 1);
    assert.equal(planEvictions(found, before(9, 59_999), OLD).length, 0);
    assert.equal(planEvictions(found, before(9, 60_000), OLD).length, EVICTIONS_PER_MINUTE);
  });
});

describe('a pod that could not be created', () => {
  const regarding = { apiVersion: 'apps/v1', kind: 'ReplicaSet', namespace: 'shop', name: 'api-1' };
  const noteOf = (note: string, reason = 'FailedCreate'): string | undefined =>
    remedyEvent({ reason, note, regarding }, ['256Mi', '50m'])?.note;

  const rows: readonly [string, string, RegExp][] = [
    [
      'a quota',
      'Error creating: pods "x" is forbidden: failed quota: q: must specify limits.cpu for: app,weir',
      /ResourceQuota .*weir\.dev\/cpu-limit/,
    ],
    [
      'a limit range',
      'Error creating: pods "x" is forbidden: maximum memory usage per Container is 220Mi, but limit is 256Mi',
      /LimitRange/,
    ],
    [
      'Pod Security',
      'violates PodSecurity "restricted:latest": (container "weir-redirect" must not include "NET_ADMIN")',
      /mode: takeover/,
    ],
    [
      'a name of ours',
      'Pod "x" is invalid: spec.containers[1].name: Duplicate value: "weir"',
      /remove it/,
    ],
  ];
  for (const [name, note, remedy] of rows) {
    it(`for ${name} is told what to do`, () => {
      assert.match(noteOf(note) ?? '', remedy);
    });
  }

  it('for another reason, or another container, is not ours to tell', () => {
    assert.equal(noteOf(rows[0]?.[1] ?? '', 'ScalingReplicaSet'), undefined);
    assert.equal(noteOf('failed quota: q: must specify limits.cpu for: app'), undefined);
    assert.equal(noteOf('maximum memory usage per Container is 1Gi, but limit is 2Gi'), undefined);
    assert.equal(noteOf('violates PodSecurity "baseline": host namespaces'), undefined);
  });
});
