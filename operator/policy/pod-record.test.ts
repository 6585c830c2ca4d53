import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { injected } from '../../contract/names.ts';
import { HTTP, podObject } from '../../test/support/world-objects.ts';
import { isLive, readPod, type PodObject } from './pod-record.ts';

const bare: PodObject = { metadata: { namespace: 'shop', name: 'a', uid: 'u' } };

describe('a pod', () => {
  it('of which the server says nothing yet waits, has no ports and no time', () => {
    assert.deepEqual(readPod(bare), {
      ...{ key: 'shop/a', namespace: 'shop', name: 'a', uid: 'u', labels: {} },
      ...{ hasChosenPorts: false, ports: [], isHostNetwork: false, createdAt: '' },
      ...{ isTerminal: false, isDeleting: false, isRunning: false },
    });
  });

  it('counts until it has ended or is about to', () => {
    const phases = ['Pending', 'Running', 'Unknown', 'Succeeded', 'Failed'];

    assert.deepEqual(
      phases.map((phase) => isLive(readPod({ ...bare, status: { phase } }))),
      [true, true, true, false, false],
    );
    assert.equal(isLive(readPod(podObject('a', { isDeleting: true }))), false);
  });

  it('has a sidecar only where both our container and what we wrote of it are there', () => {
    const whole = podObject('a', { mode: 'takeover' });
    const withoutContainer = { ...whole, spec: { ...whole.spec, initContainers: [] } };
    const withoutWord = { ...whole, metadata: { ...whole.metadata, annotations: {} } };
    const unreadable = { ...whole.metadata, annotations: { [injected.status]: '{' } };

    assert.deepEqual(readPod(whole).injection, { mode: 'takeover', ports: [HTTP] });
    for (const pod of [withoutContainer, withoutWord, { ...whole, metadata: unreadable }]) {
      assert.equal(readPod(pod).injection, undefined);
    }
  });

  it('has the TCP ports of all its containers; an empty name is none, and host port 0 is none', () => {
    const ports = [
      { name: 'http', containerPort: 80, hostPort: 8080 },
      { name: '', containerPort: 81, hostPort: 0, protocol: 'TCP' },
      { name: 'dns', containerPort: 53, protocol: 'UDP' },
    ];
    const spec = {
      initContainers: [{ name: 'first', ports: [{ containerPort: 82 }] }],
      containers: [{ name: 'app', ports }, { name: 'silent' }],
    };

    assert.deepEqual(readPod({ ...bare, spec }).ports, [
      { container: 'first', number: 82 },
      { container: 'app', name: 'http', number: 80, hostPort: 8080 },
      { container: 'app', number: 81 },
    ]);
  });
});
