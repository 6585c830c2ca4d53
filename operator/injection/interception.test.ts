import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { injectionConfig, simplePod, surroundings } from '../../test/support/pods.ts';
import { mutate } from './mutate.ts';

describe('a port without a name that a Service names by number', () => {
  const pod = simplePod({ container: { ports: [{ containerPort: 8080 }] } });
  const ports = [{ port: 80, targetPort: 8080 }];
  const services = [{ name: 'api', isHeadless: false, ports }];

  it('is redirected, and where that is forbidden the pod is told to name it', () => {
    const namespaceLabels = { 'pod-security.kubernetes.io/enforce': 'baseline' };

    const free = mutate(pod, injectionConfig(), surroundings({ services }));
    const bound = mutate(pod, injectionConfig(), surroundings({ services, namespaceLabels }));

    assert.equal(free.kind === 'injected' && free.status.mode, 'redirect');
    assert.equal(bound.kind === 'refused' && bound.reason, 'UnnamedPort');
  });
});
