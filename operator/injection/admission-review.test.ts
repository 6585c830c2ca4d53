import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { describe, it } from 'node:test';
import { applyPatch, type Operation } from 'rfc6902';
import { injectionConfig, simplePod, surroundings } from '../../test/support/pods.ts';
import { reviewAdmission, WARNING_LENGTH_MAX, WARNINGS_MAX } from './admission-review.ts';
import type { Reviewed, WorldView } from './admission-review.ts';
import type { PodSurroundings } from './injection-config.ts';
import type { Pod } from './pod.ts';

function worldOf(changes: Partial<PodSurroundings> = {}): WorldView {
  return {
    surroundingsOf: (namespace) => surroundings({ ...changes, namespace }),
    workloadOf: (namespace, { name }) => ({
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', namespace },
      name: name.replace(/-[a-z0-9]+$/, ''),
    }),
  };
}

function reviewOf(object: unknown, request: Readonly<Record<string, unknown>> = {}): unknown {
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: '705ab4f5',
      kind: { group: '', version: 'v1', kind: 'Pod' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      namespace: 'shop',
      operation: 'CREATE',
      object,
      ...request,
    },
  };
}

type Answered = Extract<Reviewed, { kind: 'answered' }>;

function answer(body: unknown, world = worldOf()): Answered {
  const reviewed = reviewAdmission(body, { world, config: injectionConfig() });
  assert.equal(reviewed.kind, 'answered', JSON.stringify(reviewed));
  return reviewed;
}

const owned = (pod: Pod): unknown => ({
  ...pod,
  metadata: {
    ...pod.metadata,
    ownerReferences: [
      { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'api-7d9f', uid: 'u', controller: true },
    ],
  },
});

const impossible = (inject: string): Pod =>
  simplePod({ annotations: { 'weir.dev/inject': inject }, spec: { hostNetwork: true } });

describe('an admission review', () => {
  it('is answered with its uid and a patch that gives the pod its sidecar', () => {
    const raw = {
      ...simplePod(),
      status: null,
      metadata: { ...simplePod().metadata, creationTimestamp: null },
    };

    const { answer: body, result } = answer(reviewOf(raw));

    assert.equal(body.response.uid, '705ab4f5');
    assert.equal(body.response.allowed, true);
    assert.equal(body.response.patchType, 'JSONPatch');
    assert.equal(result, 'injected');
    const patch = JSON.parse(
      Buffer.from(body.response.patch ?? '', 'base64').toString(),
    ) as Operation[];
    const patched = structuredClone(raw);
    assert.ok(applyPatch(patched, patch).every((fault) => fault === null));
    assert.equal(patched.spec.initContainers?.[0]?.name, 'weir');
    assert.equal(patched.metadata.creationTimestamp, null);
  });

  it('lets a pod pass that only wished for a sidecar, and refuses one that requires it', () => {
    const wished = answer(reviewOf(impossible('enabled'))).answer.response;
    const required = answer(reviewOf(impossible('required'))).answer.response;

    assert.equal(wished.allowed, true);
    assert.match(wished.warnings?.[0] ?? '', /^weir: no sidecar: spec.hostNetwork/);
    assert.equal(required.allowed, false);
    assert.match(required.status?.message ?? '', /required: spec.hostNetwork/);
    assert.equal(required.status?.code, 403);
  });

  it('tells the owner, and for a dry run nobody', () => {
    const pod = owned(impossible('enabled'));

    assert.deepEqual(
      answer(reviewOf(pod)).events.map(({ about, reason }) => [about.kind, about.name, reason]),
      [['Deployment', 'api', 'HostNetwork']],
    );
    assert.deepEqual(answer(reviewOf(pod, { dryRun: true })).events, []);
    assert.equal(answer(reviewOf(pod, { dryRun: true })).result, 'refused');
  });

  it('tells the pod itself where it has a name and no owner', () => {
    const events = answer(reviewOf(impossible('enabled'))).events;

    assert.deepEqual(events[0]?.about, {
      apiVersion: 'v1',
      kind: 'Pod',
      namespace: 'shop',
      name: 'api',
    });
    const nameless = {
      ...impossible('enabled'),
      metadata: { ...impossible('enabled').metadata, name: null, generateName: 'api-' },
    };
    assert.deepEqual(answer(reviewOf(nameless)).events, []);
  });

  it('takes the namespace from the request', () => {
    const seen: string[] = [];
    const world = worldOf();
    const noting: WorldView = {
      ...world,
      surroundingsOf: (namespace, pod) => {
        seen.push(namespace);
        return world.surroundingsOf(namespace, pod);
      },
    };

    answer(reviewOf(simplePod({ metadata: { namespace: '', annotations: {} } })), noting);

    assert.deepEqual(seen, ['shop']);
  });

  it('says what is left open as warnings, not too many and not too long', () => {
    const services = Array.from({ length: WARNINGS_MAX + 1 }, (_, index) => ({
      ...{ name: `s${index}-${'x'.repeat(200)}`, isHeadless: true, ports: [] },
    }));
    const namespaceLabels = { 'pod-security.kubernetes.io/enforce': 'baseline' };

    const { response } = answer(
      reviewOf(simplePod()),
      worldOf({ services, namespaceLabels }),
    ).answer;

    assert.equal(response.warnings?.length, WARNINGS_MAX);
    assert.ok(response.warnings.every((one) => one.length === WARNING_LENGTH_MAX));
  });

  it('leaves what it was not asked for alone', () => {
    const others = [
      reviewOf(simplePod(), { operation: 'UPDATE' }),
      reviewOf(
        { kind: 'Deployment' },
        { kind: { group: 'apps', version: 'v1', kind: 'Deployment' } },
      ),
      reviewOf(simplePod({ metadata: { annotations: {} } })),
    ];

    for (const body of others) {
      const { response } = answer(body).answer;
      assert.deepEqual(response, { uid: '705ab4f5', allowed: true });
    }
  });

  it('does not let a strange pod pass that requires a sidecar', () => {
    const strange = (inject: string): unknown => ({
      metadata: { annotations: { 'weir.dev/inject': inject } },
      spec: { containers: 'none' },
    });

    assert.equal(answer(reviewOf(strange('required'))).answer.response.allowed, false);
    assert.equal(answer(reviewOf(strange('enabled'))).answer.response.allowed, true);
  });

  it('is not answered when it is none, with what is wrong', () => {
    const table: readonly (readonly [unknown, RegExp])[] = [
      [undefined, /the body/],
      ['text', /the body/],
      [{ apiVersion: 'admission.k8s.io/v1beta1', kind: 'AdmissionReview' }, /apiVersion/],
      [{ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' }, /request/],
      [reviewOf(simplePod(), { uid: '' }), /request.uid/],
    ];

    for (const [body, problem] of table) {
      const reviewed = reviewAdmission(body, { world: worldOf(), config: injectionConfig() });
      assert.equal(reviewed.kind, 'unreadable');
      assert.match(reviewed.problem, problem);
    }
  });
});

describe('a body that is no review', () => {
  it('is answered with the field that is wrong, or that all of it is', () => {
    const problemOf = (body: unknown): string => {
      const reviewed = reviewAdmission(body, { world: worldOf(), config: injectionConfig() });
      return reviewed.kind === 'unreadable' ? reviewed.problem : assert.fail(reviewed.kind);
    };

    assert.match(problemOf('text'), /^the body: .*; expected an AdmissionReview/);
    assert.match(problemOf(reviewOf(simplePod(), { uid: '' })), /^request\.uid: .*; expected/);
  });
});

describe('a pod that was injected before', () => {
  it('is answered without a patch: there is nothing to add', () => {
    const { answer: first } = answer(reviewOf(simplePod()));
    const patch = JSON.parse(
      Buffer.from(first.response.patch ?? '', 'base64').toString(),
    ) as Operation[];
    const pod = structuredClone(simplePod());
    applyPatch(pod, patch);

    const { answer: again } = answer(reviewOf(pod));

    assert.equal(again.response.allowed, true);
    assert.equal(again.response.patch, undefined);
  });
});
