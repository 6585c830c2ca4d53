import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createCelCompiler } from '../../crds/cel-environment.ts';
import type { ConditionState } from '../../contract/conditions.ts';
import {
  BUCKETS,
  ownedBy,
  podObject,
  policyObject,
  serviceObject,
} from '../../test/support/world-objects.ts';
import { NOT_FETCHED } from './key-set-state.ts';
import { observePolicy, type PolicyObservation } from './policy-observation.ts';
import {
  bypassEvents,
  conflictEvents,
  NOTE_MAX,
  transitionEvents,
  type EventPlan,
} from './policy-event.ts';
import { World } from './world.ts';

const POLICY = {
  ...{ apiVersion: 'weir.dev/v1alpha1', kind: 'RateLimitPolicy' },
  ...{ namespace: 'shop', name: 'one', uid: 'uid-one' },
};

function observe(): PolicyObservation {
  const world = new World(createCelCompiler());
  for (const name of ['a', 'b']) {
    const ports = [{ name: 'app-http', containerPort: 8080, hostPort: 80 }];
    const owner = ownedBy('StatefulSet', 'api');
    const object = podObject(name, { mode: 'takeover', ports, owner });
    world.apply({ kind: 'Pod', key: `shop/${name}`, object });
  }
  const rules = [{ name: 'all', buckets: [{ ...BUCKETS[0], capacity: 5 }] }];
  for (const object of [policyObject('one'), policyObject('two', { rules })]) {
    world.apply({ kind: 'RateLimitPolicy', key: `shop/${object.metadata.name ?? ''}`, object });
  }
  const service = serviceObject('api', { ports: [{ port: 80, targetPort: 8080 }] });
  world.apply({ kind: 'Service', key: 'shop/api', object: service });
  const surroundings = {
    reportOf: () => undefined,
    keySetOf: () => NOT_FETCHED,
    store: { kind: 'none' } as const,
    isSettling: false,
  };
  return observePolicy(world, 'shop/one', surroundings) ?? assert.fail();
}

function tell(
  condition: ConditionState,
  before?: { readonly status: string; readonly reason: string },
): readonly EventPlan[] {
  return transitionEvents(observe(), [{ condition, before }]);
}

const enforced = { type: 'Enforced', status: 'True', reason: 'Enforced', message: 'm' } as const;

describe('a condition that says something else', () => {
  it('is an Event on the policy, with its reason and its words', () => {
    assert.deepEqual(tell(enforced), [
      { regarding: POLICY, type: 'Normal', reason: 'Enforced', action: 'Enforced', note: 'm' },
    ]);
  });

  it('is cut to what the API server takes', () => {
    const noteOf = (length: number): number | undefined =>
      tell({ ...enforced, message: 'x'.repeat(length) })[0]?.note.length;

    assert.deepEqual([NOTE_MAX - 1, NOTE_MAX, NOTE_MAX + 1].map(noteOf), [
      NOTE_MAX - 1,
      NOTE_MAX,
      NOTE_MAX,
    ]);
  });

  const waits = { ...enforced, status: 'False', reason: 'NotProgrammed' } as const;
  const resolved = {
    type: 'ResolvedRefs',
    status: 'True',
    reason: 'ResolvedRefs',
    message: 'm',
  } as const;

  it('is no news of a new policy that is on its way, but is when it fell back', () => {
    const before = { status: 'True', reason: 'Enforced' };

    assert.deepEqual([tell(waits), tell(resolved)], [[], []]);
    assert.deepEqual(
      [tell(waits, before), tell(resolved, before)].map((events) => events.length),
      [1, 1],
    );
  });

  it('warns of what somebody has to put right, and not of what was wanted or only takes time', () => {
    const before = { status: 'True', reason: 'x' };
    const typeOf = (condition: ConditionState): string | undefined =>
      tell(condition, before)[0]?.type;
    const because = (reason: 'Shadow' | 'Disabled' | 'Bypassable'): string | undefined =>
      typeOf({ ...enforced, status: 'False', reason });

    assert.deepEqual(
      [typeOf(enforced), typeOf(waits), because('Shadow'), because('Disabled')],
      ['Normal', 'Normal', 'Normal', 'Normal'],
    );
    assert.deepEqual(
      [because('Bypassable'), typeOf({ ...enforced, reason: 'ClientIPIsProxy' })],
      ['Warning', 'Warning'],
    );
  });
});

describe('rules that conflict', () => {
  it('are told on the policy, both by name', () => {
    const [event, more] = conflictEvents(observe());

    assert.deepEqual([event?.regarding, event?.type, more], [POLICY, 'Warning', undefined]);
    assert.match(event?.note ?? '', /shop\/one\/all.*shop\/two\/all.*\.$/);
  });
});

describe('ways around the sidecar', () => {
  const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'api' };

  it('are told on the Service and once on each owner; a host port has no Service', () => {
    const observation = observe();

    const events = bypassEvents(observation, observation.bypasses, () => deployment);

    assert.deepEqual(
      events.map(({ regarding, type }) => [regarding.kind, regarding.name, type]),
      [
        ['Deployment', 'api', 'Warning'],
        ['Service', 'api', 'Warning'],
        ['Deployment', 'api', 'Warning'],
      ],
    );
    assert.match(
      events[1]?.note ?? '',
      /write targetPort: http, so policy shop\/one does not limit it for pod a, b\. /,
    );
  });

  it('are told on the Service alone where nobody knows who owns the pods', () => {
    const observation = observe();

    const events = bypassEvents(observation, observation.bypasses, () => undefined);

    assert.deepEqual(
      events.map(({ regarding }) => regarding.kind),
      ['Service'],
    );
  });
});
