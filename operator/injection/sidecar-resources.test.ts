import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { injectionConfig, simplePod, surroundings } from '../../test/support/pods.ts';
import { mutate } from './mutate.ts';
import { allContainers, type Pod, type Resources } from './pod.ts';

function resourcesOf(pod: Pod, container: string): Resources | undefined {
  const outcome = mutate(pod, injectionConfig(), surroundings());
  assert.equal(outcome.kind, 'injected', 'message' in outcome ? outcome.message : '');
  return allContainers(outcome.pod.spec).find(({ name }) => name === container)?.resources;
}

describe('the resources of the sidecar', () => {
  it('are what the annotations ask for, each on its own', () => {
    const annotations = { 'weir.dev/cpu-request': '70m', 'weir.dev/memory-request': '100Mi' };

    assert.deepEqual(resourcesOf(simplePod({ annotations }), 'weir'), {
      requests: { cpu: '70m', memory: '100Mi' },
      limits: { memory: '256Mi' },
    });
  });
});

describe('the resources of the container that writes the rules', () => {
  const annotations = { 'weir.dev/mode': 'redirect' };

  it('are small, and left to the pod where that has bounds as a whole', () => {
    const bounded = { resources: { limits: { cpu: '1', memory: '512Mi' } } };

    assert.deepEqual(resourcesOf(simplePod({ annotations }), 'weir-redirect'), {
      requests: { cpu: '10m', memory: '32Mi' },
      limits: { memory: '128Mi' },
    });
    assert.equal(
      resourcesOf(simplePod({ annotations, spec: bounded }), 'weir-redirect'),
      undefined,
    );
  });
});
