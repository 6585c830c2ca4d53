// What the webhook writes into a pod is read by the sidecar's own parser: the two know each other only by names.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseDuration, parseHostPort } from '../../contract/setting.ts';
import { mutate } from '../../operator/injection/mutate.ts';
import { allContainers, type Container, type Pod } from '../../operator/injection/pod.ts';
import { parseRunConfig } from '../../sidecar/config.ts';
import { injectionConfig, simplePod, surroundings } from '../support/pods.ts';

function sidecarOf(pod: Pod, serverMinor = 36): Container {
  const outcome = mutate(pod, injectionConfig({ serverMinor }), surroundings());
  assert.equal(outcome.kind, 'injected');
  const found = allContainers(outcome.pod.spec).find(({ name }) => name === 'weir');
  assert.ok(found);
  return found;
}

/** The environment as the kubelet would give it; what comes of the pod itself is made up. */
function environmentOf(container: Container): Record<string, string> {
  const env: unknown = Reflect.get(container, 'env');
  assert.ok(Array.isArray(env));
  const made: Record<string, string> = {
    WEIR_POD_NAMESPACE: 'shop',
    WEIR_POD_NAME: 'api-7d9f-x',
    WEIR_POD_UID: '705ab4f5-6393-11e8-b7cc-42010a800002',
  };
  for (const { name, value } of env as { name: string; value?: string }[]) {
    made[name] = value ?? made[name] ?? '';
  }
  return made;
}

describe('the settings of an injected sidecar', () => {
  it('are read by the sidecar as they were meant', () => {
    const ports = [
      { name: 'http', containerPort: 8080 },
      { name: 'grpc', containerPort: 9090 },
    ];
    const pod = simplePod({
      annotations: { 'weir.dev/upstream-host': '::1', 'weir.dev/on-no-config': 'allow' },
      container: { ports },
      spec: { terminationGracePeriodSeconds: 45 },
    });

    const config = parseRunConfig({}, environmentOf(sidecarOf(pod)));

    assert.deepEqual(config.listen, [
      { host: '::', port: 15_100 },
      { host: '::', port: 15_101 },
    ]);
    assert.deepEqual(config.upstream, [
      { host: '::1', port: 8080 },
      { host: '::1', port: 9090 },
    ]);
    assert.deepEqual(config.admin, { host: '::', port: 15_090 });
    assert.equal(config.operator, 'https://weir-operator.weir-system.svc:9444');
    assert.match(config.operatorCa ?? '', /^-----BEGIN CERTIFICATE/);
    assert.equal(config.operatorToken, '/var/run/secrets/kubernetes.io/serviceaccount/token');
    assert.equal(config.seed, '/var/run/secrets/kubernetes.io/serviceaccount/seed');
    assert.equal(config.configCache, '/var/lib/weir');
    assert.equal(config.onNoConfig, 'allow');
    assert.equal(config.podName, 'api-7d9f-x');
    assert.equal(config.grace, 45_000);
    assert.deepEqual(config.policy, []);
  });

  it('are within bounds for every grace period that a pod may have', () => {
    for (const seconds of [0, 1, 30, 86_400, 10_000_000]) {
      const pod = simplePod({ spec: { terminationGracePeriodSeconds: seconds } });

      for (const minor of [32, 36]) {
        const { grace } = parseRunConfig({}, environmentOf(sidecarOf(pod, minor)));
        assert.ok(grace >= 1_000 && grace <= 86_400_000, `${grace} of ${seconds}`);
      }
    }
  });

  it('give hooks whose flags the command line takes', () => {
    const { lifecycle } = sidecarOf(simplePod(), 32);

    const commands = [lifecycle?.postStart, lifecycle?.preStop].map((hook) =>
      JSON.stringify(hook?.exec),
    );
    assert.deepEqual(commands, [
      '{"command":["weir","wait","--admin","127.0.0.1:15090"]}',
      '{"command":["weir","drain","--admin","127.0.0.1:15090","--hold","5s"]}',
    ]);
    assert.equal(parseDuration('5s'), 5_000);
    assert.deepEqual(parseHostPort(1)('127.0.0.1:15090'), { host: '127.0.0.1', port: 15_090 });
  });
});
