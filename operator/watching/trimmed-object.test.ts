import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podObject } from '../../test/support/world-objects.ts';
import { readPod } from '../policy/pod-record.ts';
import { isExcludedNamespace } from './excluded-namespace.ts';
import { trimPod, trimToMetadata } from './trimmed-object.ts';

describe('what is kept of a pod', () => {
  const annotations = {
    'weir.dev/inject': 'enabled',
    'weir.dev/seed': 'H4sI',
    'kubectl.kubernetes.io/last-applied-configuration': '{}',
  };

  it('is all that its record is read from', () => {
    const whole = podObject('a', { mode: 'takeover', annotations });

    assert.deepEqual(readPod(trimPod(whole)), readPod(whole));
  });

  it('is nothing else: neither what others wrote on it, nor the seed, nor what containers are', () => {
    const whole = podObject('a', { annotations });
    const [container] = whole.spec?.containers ?? [];
    const large = { name: 'app', image: 'app:1', env: [{ name: 'A', value: 'x' }] };

    const { metadata, spec, status } = trimPod({
      ...whole,
      spec: { containers: [container ?? large, large] },
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    });

    assert.deepEqual(metadata.annotations, { 'weir.dev/inject': 'enabled' });
    assert.deepEqual(spec?.containers, [container, { name: 'app' }]);
    assert.deepEqual(status, { phase: 'Running' });
  });

  it('is a pod also where the server says no more than its name', () => {
    assert.deepEqual(trimPod({ metadata: { name: 'a' } }), {
      metadata: { name: 'a', annotations: {} },
      spec: { containers: [], initContainers: [], hostNetwork: false },
      status: {},
    });
  });
});

describe('what is kept of an owner', () => {
  it('is its metadata', () => {
    const object = { metadata: { name: 'a', labels: { b: 'c' } }, spec: { replicas: 3 } };

    assert.deepEqual(trimToMetadata(object), {
      metadata: { name: 'a', labels: { b: 'c' }, annotations: {} },
    });
  });
});

describe('a namespace that is left alone', () => {
  it("is the operator's own and those of the cluster, and no other", () => {
    const names = ['weir-system', 'kube-system', 'kube-public', 'kube-node-lease', 'shop'];

    assert.deepEqual(
      names.map((name) => isExcludedNamespace(name, 'weir-system')),
      [true, true, true, true, false],
    );
  });
});
